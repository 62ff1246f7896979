use std::time::Duration;

use super::error::ServerError;

const MIB: usize = 1024 * 1024;

/// What a server grants its clients at most.
///
/// ```
/// use caching_remote::server::Limits;
///
/// let mut limits = Limits::default();
/// limits.max_connections = 200;
/// assert_eq!(limits.max_message_bytes, 16 * 1024 * 1024);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest message in either direction, in bytes. A larger one is refused unread with
    /// RESOURCE_EXHAUSTED. Default 16 MiB.
    pub max_message_bytes: usize,
    /// The calls that one connection may have open at a time; the client waits beyond that. A
    /// session counts as one. Default 1024.
    pub max_concurrent_streams: u32,
    /// The operations of one session that may run at a time; beyond that the server reads nothing
    /// more of it until one has ended. Default 1024.
    pub max_session_operations: usize,
    /// The connections; one beyond that is closed at once. Default 4096.
    pub max_connections: usize,
    /// The bytes of one call's metadata. Default 16 KiB.
    pub max_header_bytes: u32,
    /// How long a new connection may take to speak TLS and to begin HTTP/2. Default 5 s.
    pub handshake_timeout: Duration,
    /// How often a connection is asked whether its client is still there. Default 20 s.
    pub keep_alive_interval: Duration,
    /// How long the client may take to answer that. Default 10 s.
    pub keep_alive_timeout: Duration,
    /// How long a shutdown waits for what is running. Default 30 s.
    pub shutdown_timeout: Duration,
    /// How long a server that shuts down goes on accepting calls while its health already says
    /// NOT_SERVING, so that load balancers notice. Default none.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_bytes: 16 * MIB,
            max_concurrent_streams: 1024,
            max_session_operations: 1024,
            max_connections: 4096,
            max_header_bytes: 16 * 1024,
            handshake_timeout: Duration::from_secs(5),
            keep_alive_interval: Duration::from_secs(20),
            keep_alive_timeout: Duration::from_secs(10),
            shutdown_timeout: Duration::from_secs(30),
            drain: Duration::ZERO,
        }
    }
}

impl Limits {
    pub(super) fn check(&self) -> Result<(), ServerError> {
        let zero = [
            ("max_message_bytes", self.max_message_bytes == 0),
            ("max_concurrent_streams", self.max_concurrent_streams == 0),
            ("max_session_operations", self.max_session_operations == 0),
            ("max_connections", self.max_connections == 0),
            ("max_header_bytes", self.max_header_bytes == 0),
            ("handshake_timeout", self.handshake_timeout.is_zero()),
            ("keep_alive_interval", self.keep_alive_interval.is_zero()),
            ("keep_alive_timeout", self.keep_alive_timeout.is_zero()),
        ];
        match zero.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((name, _)) => Err(ServerError::Limit { name }),
            None => Ok(()),
        }
    }
}
