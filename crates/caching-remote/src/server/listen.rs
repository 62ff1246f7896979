use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use super::builder::StoreServer;
use super::connection::Serving;
use super::metrics::Refusal;

/// How long to wait when the operating system gives no more sockets.
const PAUSE: Duration = Duration::from_millis(50);

/// A server that listens and, once it [runs](Self::run_until), serves.
#[derive(Debug)]
pub struct Server {
    server: StoreServer,
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    pub(super) fn new(server: StoreServer, listener: TcpListener, address: SocketAddr) -> Self {
        Self {
            server,
            listener,
            address,
        }
    }

    /// Where it listens, with the port that was taken for port 0.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is done, then shuts down gracefully.
    ///
    /// - First health says NOT_SERVING, for [`drain`](super::Limits::drain) with everything else
    ///   as usual. Then nothing new is accepted, connections are told to go away, waits and watches
    ///   end, sessions answer what has begun.
    /// - What runs has [`shutdown_timeout`](super::Limits::shutdown_timeout) to end; connections
    ///   that are left then are cut.
    ///
    /// # Cancellation safety
    /// Dropping the future cuts every connection. Mutations that have begun go on.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) {
        let shared = Arc::clone(self.server.shared());
        let accepting = Accepting {
            serving: Arc::new(Serving::new(&self.server)),
            connections: TaskTracker::new(),
            permits: Arc::new(Semaphore::new(
                shared.limits.max_connections.min(Semaphore::MAX_PERMITS),
            )),
        };
        let aborting = accepting.serving.aborting.clone();
        let _cut = aborting.clone().drop_guard();
        info!(address = %self.address, "the store is served");
        {
            let mut accept = pin!(accepting.accept(&self.listener));
            tokio::select! {
                () = &mut accept => {}
                () = shutdown => {}
            }
            shared.draining.cancel();
            if !shared.limits.drain.is_zero() {
                let _ = timeout(shared.limits.drain, accept).await;
            }
        }
        drop(self.listener);
        shared.closing.cancel();
        let connections = accepting.connections;
        connections.close();
        shared.running.close();
        let ended = async {
            connections.wait().await;
            shared.running.wait().await;
        };
        if timeout(shared.limits.shutdown_timeout, ended)
            .await
            .is_err()
        {
            warn!(
                connections = connections.len(),
                operations = shared.running.len(),
                "the shutdown cuts what has not ended in time"
            );
            aborting.cancel();
            connections.wait().await;
        }
        info!(address = %self.address, "the store is not served any more");
    }
}

struct Accepting {
    serving: Arc<Serving>,
    connections: TaskTracker,
    permits: Arc<Semaphore>,
}

impl Accepting {
    async fn accept(&self, listener: &TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => self.take(stream, peer),
                // A client that has gone away again is no reason to wait.
                Err(error) if is_of_the_client(&error) => {}
                Err(error) => {
                    warn!(%error, "no connection can be accepted at present");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            Refusal::TooManyConnections.count();
            debug!(%peer, "there are too many connections for another one");
            return;
        };
        let serving = Arc::clone(&self.serving);
        self.connections.spawn(async move {
            let _permit = permit;
            let aborting = serving.aborting.clone();
            tokio::select! {
                biased;
                () = serving.serve(stream, peer) => {}
                () = aborting.cancelled() => {}
            }
        });
    }
}

fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}
