//! Metrics and health over HTTP, for whoever watches the server.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use xihan_caching::CacheStore;

use super::cannot_listen;
use crate::failure::Failure;

/// How often histograms are folded, so that they take no more memory over time.
const UPKEEP: Duration = Duration::from_secs(5);
/// The buckets of latencies: from an operation in memory to one that ran into its time limit.
const SECONDS: [f64; 10] = [1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.025, 0.1, 0.5, 2.5];
/// How long a connection may take for the head of its next request.
const HEAD: Duration = Duration::from_secs(30);
/// Few ask for metrics. More connections wait until one of these has ended.
const CONNECTIONS: usize = 64;
/// How long the store may take to say that it is there.
const PING: Duration = Duration::from_secs(2);
/// How long to wait when the operating system gives no more sockets.
const PAUSE: Duration = Duration::from_millis(50);
/// What Prometheus wants to be told.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// A recorder of this process's metrics, and a socket for those who read them.
pub(super) struct Exporter {
    listener: TcpListener,
    address: SocketAddr,
    metrics: PrometheusHandle,
}

/// What is answered from.
struct Sources {
    metrics: PrometheusHandle,
    store: Arc<dyn CacheStore>,
    stopping: CancellationToken,
}

impl Exporter {
    /// Listens, and begins to record.
    pub(super) async fn bind(address: &str) -> Result<Self, Failure> {
        let failed = |error| cannot_listen("--metrics-listen", address, &error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let metrics = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .and_then(PrometheusBuilder::install_recorder)
            .map_err(|error| Failure::System(format!("cannot record metrics: {error}")))?;
        Ok(Self {
            listener,
            address,
            metrics,
        })
    }

    pub(super) fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Answers as long as the process lives. Once it is `stopping` it is not ready any more.
    pub(super) async fn run(self, store: Arc<dyn CacheStore>, stopping: CancellationToken) {
        let upkeep = self.metrics.clone();
        tokio::spawn(async move {
            loop {
                sleep(UPKEEP).await;
                upkeep.run_upkeep();
            }
        });
        let sources = Arc::new(Sources {
            metrics: self.metrics,
            store,
            stopping,
        });
        let permits = Arc::new(Semaphore::new(CONNECTIONS));
        while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let sources = Arc::clone(&sources);
                    tokio::spawn(async move {
                        sources.serve(stream).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "no connection for metrics can be accepted");
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

impl Sources {
    async fn serve(&self, stream: TcpStream) {
        let service = service_fn(async |request: Request<hyper::body::Incoming>| {
            Ok::<_, Infallible>(self.answer(request.method(), request.uri().path()).await)
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        if let Err(error) = served {
            tracing::debug!(%error, "a connection for metrics ended early");
        }
    }

    async fn answer(&self, method: &Method, path: &str) -> Response<String> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
            let allowed = HeaderValue::from_static("GET, HEAD");
            answer.headers_mut().insert(ALLOW, allowed);
            return answer;
        }
        match path {
            "/metrics" => text(StatusCode::OK, PROMETHEUS, self.metrics.render()),
            "/healthz" => text(StatusCode::OK, TEXT, "ok\n"),
            "/readyz" => match self.refuses().await {
                None => text(StatusCode::OK, TEXT, "ready\n"),
                Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, TEXT, why),
            },
            _ => text(
                StatusCode::NOT_FOUND,
                TEXT,
                "here are /metrics, /healthz and /readyz\n",
            ),
        }
    }

    /// Why no call should be sent to this server at present, if there is a reason.
    async fn refuses(&self) -> Option<&'static str> {
        if self.stopping.is_cancelled() {
            return Some("shutting down\n");
        }
        match timeout(PING, self.store.ping()).await {
            Ok(Ok(())) => None,
            Ok(Err(_)) | Err(_) => Some("the store does not answer\n"),
        }
    }
}

fn text(status: StatusCode, kind: &'static str, body: impl Into<String>) -> Response<String> {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
