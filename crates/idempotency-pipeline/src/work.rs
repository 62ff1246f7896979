//! What an invocation is to run: an operation with its request, or a closure.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::context::InvocationContext;
use crate::operation::{ErasedOperation, Fingerprint, PathParameters, RequestSource};
use crate::outcome::{Completion, Exception, InvocationError, Success};
use crate::problem::Failure;
use crate::rendering::Renderer;

/// The handler with its decoded request, ready to run.
pub(crate) type Prepared = Box<dyn FnOnce(InvocationContext) -> Running + Send>;
pub(crate) type Running = BoxFuture<'static, Result<Success, InvocationError>>;

/// A request that is here, or that a transport reads once the caller is known and welcome: until
/// then an unknown caller costs no memory.
pub(crate) enum PendingRequest {
    Here(RequestSource),
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "only transports read")
    )]
    Arriving(BoxFuture<'static, Result<RequestSource, Failure>>),
}

/// What is at the end of the chain.
pub(crate) struct Work {
    operation: Option<Arc<dyn ErasedOperation>>,
    state: State,
    renderer: Option<Arc<dyn Renderer>>,
    wants_fingerprint: bool,
    fingerprint: Option<Fingerprint>,
}

enum State {
    Request(PendingRequest),
    Ready(Prepared),
    /// Refused by validation.
    Gone,
}

impl Work {
    pub(crate) fn operation(
        operation: Arc<dyn ErasedOperation>,
        request: PendingRequest,
        renderer: Option<Arc<dyn Renderer>>,
        wants_fingerprint: bool,
    ) -> Self {
        Self {
            operation: Some(operation),
            state: State::Request(request),
            renderer,
            wants_fingerprint,
            fingerprint: None,
        }
    }

    pub(crate) fn plain(work: Prepared) -> Self {
        Self {
            operation: None,
            state: State::Ready(work),
            renderer: None,
            wants_fingerprint: false,
            fingerprint: None,
        }
    }

    /// The operation, unless it is a plain call.
    pub(crate) fn called(&self) -> Option<&Arc<dyn ErasedOperation>> {
        self.operation.as_ref()
    }

    pub(crate) fn renderer(&self) -> Option<&Arc<dyn Renderer>> {
        self.renderer.as_ref()
    }

    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// Reads, decodes and validates the request: the end of the Validate stage.
    pub(crate) async fn prepare(
        mut self,
        context: &InvocationContext,
    ) -> Result<Self, InvocationError> {
        let Some(operation) = self.operation.clone() else {
            return Ok(self);
        };
        let State::Request(request) = std::mem::replace(&mut self.state, State::Gone) else {
            return Ok(self);
        };
        let request = match request {
            PendingRequest::Here(request) => request,
            PendingRequest::Arriving(request) => request.await?,
        };
        if self.wants_fingerprint {
            let path = context
                .extensions()
                .get::<PathParameters>()
                .unwrap_or_default();
            self.fingerprint = Some(Fingerprint::of(operation.id(), &path, &request));
        }
        self.state = State::Ready(operation.prepare(request)?);
        Ok(self)
    }

    /// Runs the handler; a panic ends as an exception (P6).
    pub(crate) async fn execute(self, context: &InvocationContext) -> Completion {
        let State::Ready(prepared) = self.state else {
            return Err(caching_abstractions::CachingError::internal(
                "the handler was reached with a request that was not validated",
            )
            .into());
        };
        let context = context.clone();
        // The closure itself may panic before it returns its future.
        let running = AssertUnwindSafe(async move { prepared(context).await });
        match running.catch_unwind().await {
            Ok(Ok(success)) => Ok(success.into()),
            Ok(Err(error)) => error.passed_on().into(),
            Err(panic) => Err(Exception::panicked(&*panic)),
        }
    }
}
