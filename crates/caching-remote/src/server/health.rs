//! `grpc.health.v1.Health`, for load balancers and orchestrators.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use http_body::Body;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tonic::server::NamedService;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::access::Gate;
use super::body::Guarded;
use super::guard::StoreService;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long an answer of the store counts, so that checks do not become load.
const FRESH: Duration = Duration::from_secs(1);
/// How long the store may take to answer.
const PING_LIMIT: Duration = Duration::from_secs(2);
/// How often a watcher looks.
const LOOK: Duration = Duration::from_secs(2);
/// A request names one service.
const LARGEST_REQUEST: usize = 4096;

/// The service `grpc.health.v1.Health`, to be mounted in a tonic server.
///
/// - The services ``, the server as a whole, and `xihan.caching.v1.Store` are SERVING while the
///   store answers and the server does not shut down.
/// - It asks for no token: load balancers have none, and it tells nothing else.
///
/// Clones are one service.
#[derive(Clone)]
pub struct HealthService {
    served: HealthServer<Checks>,
}

impl HealthService {
    pub(super) fn new(gate: Arc<Gate>) -> Self {
        let checks = Checks(Arc::new(Checked {
            gate,
            last: Mutex::new(None),
        }));
        Self {
            served: HealthServer::new(checks).max_decoding_message_size(LARGEST_REQUEST),
        }
    }
}

impl fmt::Debug for HealthService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthService").finish_non_exhaustive()
    }
}

impl NamedService for HealthService {
    const NAME: &'static str = "grpc.health.v1.Health";
}

impl<B> tower::Service<http::Request<B>> for HealthService
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let limited = |body| Guarded::new(body, LARGEST_REQUEST, None);
        self.served.call(request.map(limited))
    }
}

#[derive(Clone)]
struct Checks(Arc<Checked>);

struct Checked {
    gate: Arc<Gate>,
    /// What the store said last, and when. The lock is held while it is asked, so that many checks
    /// at a time are one question.
    last: Mutex<Option<(Instant, ServingStatus)>>,
}

impl Checks {
    /// The state of a service; none if it is not here.
    async fn of(&self, service: &str) -> Option<ServingStatus> {
        match service {
            "" | StoreService::NAME => Some(self.look().await),
            _ => None,
        }
    }

    async fn look(&self) -> ServingStatus {
        let gate = &self.0.gate;
        if gate.shared.draining.is_cancelled() {
            return ServingStatus::NotServing;
        }
        let mut last = self.0.last.lock().await;
        if let Some((asked, status)) = *last
            && asked.elapsed() < FRESH
        {
            return status;
        }
        let status = match timeout(PING_LIMIT, gate.store.ping()).await {
            Ok(Ok(())) => ServingStatus::Serving,
            Ok(Err(_)) | Err(_) => ServingStatus::NotServing,
        };
        *last = Some((Instant::now(), status));
        status
    }

    /// The state after the next look.
    async fn next(&self, service: &str) -> ServingStatus {
        tokio::select! {
            () = sleep(LOOK) => {}
            () = self.0.gate.shared.draining.cancelled() => {}
        }
        let status = self.of(service).await;
        status.unwrap_or(ServingStatus::ServiceUnknown)
    }
}

#[async_trait]
impl Health for Checks {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match self.of(&request.get_ref().service).await {
            Some(status) => Ok(Response::new(answer(status))),
            None => Err(Status::not_found("no such service is served here")),
        }
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let service = request.into_inner().service;
        let first = self.of(&service).await;
        let first = first.unwrap_or(ServingStatus::ServiceUnknown);
        let watch = (self.clone(), service, first);
        let changes = stream::unfold(watch, |(checks, service, known)| async move {
            loop {
                let status = checks.next(&service).await;
                if status != known {
                    return Some((Ok(answer(status)), (checks, service, status)));
                }
                if checks.0.gate.shared.draining.is_cancelled() {
                    // Nothing changes any more; the stream ends with the server.
                    checks.0.gate.shared.closing.cancelled().await;
                    return None;
                }
            }
        });
        let now = stream::once(std::future::ready(Ok(answer(first))));
        Ok(Response::new(now.chain(changes).boxed()))
    }
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}
