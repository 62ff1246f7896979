//! What an invocation is to run: an operation with its request, or a closure.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::context::InvocationContext;
use crate::operation::{ErasedOperation, Fingerprint, PathParameters, RequestSource};
use crate::outcome::{Completion, Exception, InvocationError, Success};
use crate::rendering::Renderer;

/// The handler with its decoded request, ready to run.
pub(crate) type Prepared = Box<dyn FnOnce(InvocationContext) -> Running + Send>;
pub(crate) type Running = BoxFuture<'static, Result<Success, InvocationError>>;

/// What is at the end of the chain.
pub(crate) struct Work {
    operation: Option<Arc<dyn ErasedOperation>>,
    state: State,
    renderer: Option<Arc<dyn Renderer>>,
    wants_fingerprint: bool,
    fingerprint: Option<Fingerprint>,
}

enum State {
    Request(RequestSource),
    Ready(Prepared),
    /// Refused by validation, or taken to be run.
    Gone,
}

impl Work {
    pub(crate) fn operation(
        operation: Arc<dyn ErasedOperation>,
        request: RequestSource,
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

    /// Decodes and validates the request: the end of the Validate stage.
    pub(crate) fn prepare(&mut self, context: &InvocationContext) -> Result<(), InvocationError> {
        let (Some(operation), State::Request(_)) = (&self.operation, &self.state) else {
            return Ok(());
        };
        let State::Request(request) = std::mem::replace(&mut self.state, State::Gone) else {
            return Ok(());
        };
        if self.wants_fingerprint {
            let path = context
                .extensions()
                .get::<PathParameters>()
                .unwrap_or_default();
            self.fingerprint = Some(Fingerprint::of(operation.id(), &path, &request));
        }
        self.state = State::Ready(Arc::clone(operation).prepare(request)?);
        Ok(())
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
