//! How the client library is set up, and what its errors mean.

use std::time::Duration;

use fred::clients::Client;
use fred::types::config::{
    Config, ConnectionConfig, PerformanceConfig, ServerConfig, TcpConfig, TlsConnector,
};
use fred::types::{Builder, RespVersion};

use crate::error::{Cause, Fault, Refusal};
use crate::url::{Address, Login};

/// What every connection of a store has in common.
#[derive(Clone)]
pub(crate) struct ConnectionSettings {
    pub(crate) login: Login,
    pub(crate) database: u8,
    pub(crate) tls: Option<TlsConnector>,
    /// The time limit of an operation, which is also that of opening.
    pub(crate) limit: Duration,
}

impl std::fmt::Debug for ConnectionSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionSettings")
            .field("database", &self.database)
            .field("is_tls", &self.tls.is_some())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// How many commands may wait to be sent.
pub(crate) const BUFFER: usize = 65_536;
/// No attempt to open waits longer for a network that says nothing.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Commands,
    /// Messages; plain commands work as well.
    Messages,
}

/// A client for one server that connects once.
pub(crate) fn client(
    address: &Address,
    settings: &ConnectionSettings,
    purpose: Purpose,
) -> Result<Client, fred::error::Error> {
    let config = Config {
        fail_fast: true,
        server: ServerConfig::new_centralized(address.host.clone(), address.port),
        username: settings.login.user.clone(),
        password: settings
            .login
            .password
            .as_ref()
            .map(|p| p.expose().to_owned()),
        database: (settings.database > 0).then_some(settings.database),
        tls: settings.tls.clone().map(Into::into),
        version: match purpose {
            Purpose::Commands => RespVersion::RESP2,
            // Messages and answers are told apart.
            Purpose::Messages => RespVersion::RESP3,
        },
        ..Config::default()
    };
    let connection = ConnectionConfig {
        connection_timeout: settings.limit.min(CONNECT_LIMIT),
        internal_command_timeout: settings.limit,
        max_command_attempts: 1,
        max_redirections: 0,
        max_command_buffer_len: BUFFER,
        tcp: TcpConfig {
            nodelay: Some(true),
            ..TcpConfig::default()
        },
        ..ConnectionConfig::default()
    };
    let mut builder = Builder::from_config(config);
    builder.set_connection_config(connection);
    builder.set_performance_config(PerformanceConfig {
        broadcast_channel_capacity: 1024,
        ..PerformanceConfig::default()
    });
    builder.build()
}

/// An error of opening: nothing was sent that matters.
pub(crate) fn not_sent(error: &fred::error::Error) -> Fault {
    match refusal(error) {
        Some(refusal) => Fault::Refused(refusal),
        None => Fault::NotSent(error.clone().into()),
    }
}

/// An error of a command.
pub(crate) fn fault(error: &fred::error::Error) -> Fault {
    if let Some(refusal) = refusal(error) {
        return Fault::Refused(refusal);
    }
    let never_left = [
        "Failed to send command to router",
        "Client is not initialized",
        "Failed to route command",
    ];
    let details = error.details();
    if never_left.iter().any(|text| details.contains(text)) {
        Fault::NotSent(Cause::new("the connection broke"))
    } else {
        Fault::Unknown(error.clone().into())
    }
}

/// The server's own error answer, where `error` is one.
///
/// `CLUSTERDOWN` is none: the client breaks the connection over it, and then says the same to
/// every command that was on its way.
fn refusal(error: &fred::error::Error) -> Option<Refusal> {
    let details = error.details();
    let first = details.split_whitespace().next().unwrap_or_default();
    let is_answer = first.len() > 2 && first.bytes().all(|byte| byte.is_ascii_uppercase());
    (is_answer && first != "CLUSTERDOWN").then(|| Refusal::new(details))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x3_a_connection_prints_no_login() {
        let login = Login {
            user: Some("shopkeeper".to_owned()),
            password: Some(caching_abstractions::Secret::new("s3cret")),
        };
        let settings = ConnectionSettings {
            login,
            database: 0,
            tls: None,
            limit: Duration::from_secs(2),
        };
        assert!(!format!("{settings:?}").contains("s3cret"));
    }
}
