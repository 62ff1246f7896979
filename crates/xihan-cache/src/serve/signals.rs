//! The signals that end a server.

use std::io;

use crate::failure::Failure;

/// TERM and INT; listened to from the beginning, so that none is missed.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn listen() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    /// The number of the next one.
    pub(super) async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => nix::libc::SIGINT,
            _ = self.terminate.recv() => nix::libc::SIGTERM,
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn listen() -> Result<Self, Failure> {
        Ok(Self)
    }

    /// The number that Unix gives it.
    pub(super) async fn next(&mut self) -> i32 {
        if tokio::signal::ctrl_c().await.is_err() {
            // It cannot be listened to; the server then ends when its process is ended.
            std::future::pending::<()>().await;
        }
        2
    }
}

#[cfg(unix)]
fn failed(error: io::Error) -> Failure {
    Failure::System(format!("cannot listen to signals: {error}"))
}
