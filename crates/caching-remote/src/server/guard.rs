//! What every call of the store's service passes first.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tonic::server::NamedService;
use tonic::{Code, Status};
use tower::Service as _;
use tracing::Span;

use super::access::Gate;
use super::body::{Guarded, too_late};
use super::deadline::deadline;
use super::metrics::Rpc;
use super::work::panicked;
use crate::wire::error::to_status;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = Response<tonic::body::Body>;
type Serving = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

/// The service `xihan.caching.v1.Store`, to be mounted in a tonic server.
///
/// - A call is let in or refused by its metadata, before anything else of it is read.
/// - A message beyond the limit is refused at its announcement.
/// - Mutations run to their end when the client leaves.
/// - A panic of the store is `CACHING_INTERNAL_001`.
///
/// Clones are one service.
#[derive(Clone)]
pub struct StoreService {
    gate: Arc<Gate>,
}

impl StoreService {
    pub(super) fn new(gate: Arc<Gate>) -> Self {
        Self { gate }
    }
}

impl fmt::Debug for StoreService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreService").field(&self.gate).finish()
    }
}

impl NamedService for StoreService {
    const NAME: &'static str = "xihan.caching.v1.Store";
}

impl<B> tower::Service<Request<B>> for StoreService
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError> + Send + 'static,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        let method = request.uri().path().rsplit('/').next().unwrap_or_default();
        let mut answering = Answering {
            state: State::Refused(None),
            rpc: Rpc::of(method),
            started: self.gate.shared.instruments.start(),
            span: Span::none(),
            gate: Arc::clone(&self.gate),
        };
        answering.span = tracing::debug_span!("request", rpc = answering.rpc.name());
        let _entered = answering.span.clone().entered();
        answering.state = match self.begin(request) {
            Ok(serving) => State::Serving(serving),
            Err(status) => {
                tracing::debug!(code = ?status.code(), reason = status.message(), "refused");
                State::Refused(Some(status))
            }
        };
        answering
    }
}

impl StoreService {
    fn begin<B>(&self, request: Request<B>) -> Result<Serving, Status>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError> + Send + 'static,
    {
        let admitted = self.gate.admit(request.headers());
        let mut served = admitted.map_err(|error| to_status(&error))?;
        let deadline = deadline(request.headers());
        if deadline.is_some_and(|end| Instant::now() >= end) {
            return Err(too_late());
        }
        let limit = self.gate.shared.limits.max_message_bytes;
        Ok(served.call(request.map(|body| Guarded::new(body, limit, deadline))))
    }
}

/// The answer to one call.
pub struct Answering {
    state: State,
    rpc: Rpc,
    started: Option<Instant>,
    span: Span,
    gate: Arc<Gate>,
}

enum State {
    Serving(Serving),
    Refused(Option<Status>),
}

impl Answering {
    fn count(&mut self, code: Code) {
        if let Some(started) = self.started.take() {
            let instruments = &self.gate.shared.instruments;
            instruments.request(self.rpc, code, started);
        }
    }
}

impl Future for Answering {
    type Output = Result<Answer, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let entered = (!this.span.is_disabled()).then(|| this.span.clone().entered());
        let answer = match &mut this.state {
            State::Refused(status) => {
                let status = status.take();
                status.unwrap_or_else(|| Status::internal("")).into_http()
            }
            State::Serving(serving) => {
                // A future that has panicked is not polled again.
                let polled = catch_unwind(AssertUnwindSafe(|| serving.as_mut().poll(context)));
                match polled {
                    Ok(polled) => match ready!(polled) {
                        Ok(answer) => answer,
                        Err(never) => match never {},
                    },
                    Err(panic) => to_status(&panicked(&*panic)).into_http(),
                }
            }
        };
        // A failure is said in the headers; what fails later is a stream.
        let code = answer.headers().get(Status::GRPC_STATUS);
        this.count(code.map_or(Code::Ok, |code| Code::from_bytes(code.as_bytes())));
        drop(entered);
        Poll::Ready(Ok(answer))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        // Nobody waits for it any more.
        self.count(Code::Cancelled);
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering")
            .field("rpc", &self.rpc)
            .finish_non_exhaustive()
    }
}
