//! Connections: how they are taken, and how they end.

use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout_at};

/// How long a connection may take for the head of its next request. Without a limit, clients that
/// say nothing would hold every connection the process may have.
const HEAD: Duration = Duration::from_secs(30);

/// The connections that are open after the last one was taken.
pub struct Connections(GracefulShutdown);

/// Serves until `stop` completes; new connections are refused from then on.
pub async fn serve(
    mut listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()>,
) -> Connections {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let open = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let (stream, _) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            () = &mut stop => return Connections(open),
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
}

impl Connections {
    /// Closes idle connections at once and the others after their answer; `false` if some are
    /// still open at `end`.
    pub async fn close(self, end: Instant) -> bool {
        timeout_at(end, self.0.shutdown()).await.is_ok()
    }
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connections")
    }
}
