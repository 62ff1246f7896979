//! The pipeline that every call passes, whatever its transport (P1).

mod builder;

pub use builder::PipelineBuilder;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use caching_abstractions::{CachingError, IdempotencySettings};
use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::context::{EntryKind, InvocationContext, InvocationContextBuilder, was_replayed};
use crate::operation::{Operation, RequestSource};
use crate::outcome::{Completion, Exception, InvocationError, Success};
use crate::problem::Catalogues;
use crate::rendering::Renderer;
use crate::stage::{Next, Step};
use crate::work::{PendingRequest, Work};

/// The stages of every invocation, built once at startup; cheap to clone.
///
/// ```
/// # use caching_abstractions::CachingServices;
/// # use idempotency_pipeline::{Failure, InvocationContext, Operation, OperationInvoker, Pipeline};
/// # async fn example(caching: &dyn CachingServices) -> Result<(), Box<dyn std::error::Error>> {
/// let greet = Operation::new("greet")
///     .handler(|_context, name: String| async move { Ok(format!("hello {name}")) });
/// let pipeline = Pipeline::builder().build(caching);
/// let invoker = OperationInvoker::new(&pipeline);
/// # let _ = (invoker, greet);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pipeline(Arc<Shared>);

struct Shared {
    steps: Arc<[Step]>,
    settings: IdempotencySettings,
    challenge: String,
    catalogues: Arc<Catalogues>,
    tasks: TaskTracker,
    cancellation: CancellationToken,
}

impl Pipeline {
    /// Begins a pipeline.
    pub fn builder() -> PipelineBuilder {
        PipelineBuilder::new()
    }

    /// The settings of the Idempotency stage.
    pub fn settings(&self) -> &IdempotencySettings {
        &self.0.settings
    }

    /// What an unknown caller is asked for, as in `WWW-Authenticate`; empty if nobody asks.
    pub fn challenge(&self) -> &str {
        &self.0.challenge
    }

    /// The texts that problems are made from.
    pub fn catalogues(&self) -> &Arc<Catalogues> {
        &self.0.catalogues
    }

    /// The context of a call to `operation`.
    pub(crate) fn context<Request, Response>(
        &self,
        builder: InvocationContextBuilder,
        operation: &Operation<Request, Response>,
    ) -> InvocationContext {
        builder.build(Some(operation.shared_id()), self.0.cancellation.clone())
    }

    /// Runs one call to `operation` through all stages.
    pub(crate) async fn run<Request, Response>(
        &self,
        context: &InvocationContext,
        operation: &Operation<Request, Response>,
        request: PendingRequest,
        renderer: Option<Arc<dyn Renderer>>,
    ) -> Completion
    where
        Request: DeserializeOwned + Send + 'static,
        Response: Serialize + 'static,
    {
        let fingerprint = self.0.settings.fingerprint;
        let work = Work::operation(operation.erase(), request, renderer, fingerprint);
        self.pass(context, work).await
    }

    /// Runs a closure through all stages: a plain invocation, of which only the outcome is
    /// recorded (P9).
    ///
    /// # Errors
    /// The business failure or the exception that the call ended with; a refusal of the
    /// Idempotency stage is an exception.
    pub async fn invoke<F, Fut>(
        &self,
        context: InvocationContextBuilder,
        work: F,
    ) -> Result<InvocationContext, InvocationError>
    where
        F: FnOnce(InvocationContext) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), InvocationError>> + Send + 'static,
    {
        let context = context.build(None, self.0.cancellation.clone());
        let work = Work::plain(Box::new(move |context| {
            let end = work(context);
            Box::pin(async move { end.await.map(|()| Success::default()) })
        }));
        match self.pass(&context, work).await?.into_result() {
            Ok(_) => Ok(context),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn pass(&self, context: &InvocationContext, work: Work) -> Completion {
        let next = Next::new(Arc::clone(&self.0.steps), work);
        // A panic of a stage before the handler, such as a validator, ends as an exception too.
        match AssertUnwindSafe(next.run(context)).catch_unwind().await {
            Ok(completion) => completion,
            Err(panic) => Err(Exception::panicked(&*panic)),
        }
    }

    /// Waits for running work with an idempotency key to end, as long as `ShutdownSeconds` (P15).
    ///
    /// Call it after the transports have stopped taking calls. Gives `true` if everything ended;
    /// what did not is told so through [`InvocationContext::cancellation`], and its marker runs
    /// out.
    pub async fn shutdown(&self) -> bool {
        // Told at the end, and also if the caller gives this future up.
        let _told = self.0.cancellation.clone().drop_guard();
        self.0.tasks.close();
        let limit: Duration = self.0.settings.shutdown;
        let ended = tokio::time::timeout(limit, self.0.tasks.wait())
            .await
            .is_ok();
        if !ended {
            tracing::warn!(
                running = self.0.tasks.len(),
                "shutting down with work still running"
            );
        }
        ended
    }

    /// How many calls with an idempotency key are running, background recording included.
    pub fn running(&self) -> usize {
        self.0.tasks.len()
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("steps", &self.0.steps.len())
            .field("running", &self.running())
            .finish_non_exhaustive()
    }
}

/// Calls operations from code: typed, or with requests and responses as bytes.
#[derive(Clone, Debug)]
pub struct OperationInvoker {
    pipeline: Pipeline,
}

impl OperationInvoker {
    /// An invoker that passes `pipeline`.
    pub fn new(pipeline: &Pipeline) -> Self {
        Self {
            pipeline: pipeline.clone(),
        }
    }

    /// Calls `operation` with a request in its codec and gives the response in its codec, the same
    /// bytes each time for the same idempotency key.
    ///
    /// # Errors
    /// The business failure or the exception that the call ended with; a refusal of the
    /// Idempotency stage is an exception.
    pub async fn invoke<Request, Response>(
        &self,
        operation: &Operation<Request, Response>,
        context: InvocationContextBuilder,
        request: bytes::Bytes,
    ) -> Result<(bytes::Bytes, InvocationContext), InvocationError>
    where
        Request: DeserializeOwned + Send + 'static,
        Response: Serialize + 'static,
    {
        let context = self.pipeline.context(context, operation);
        let request = PendingRequest::Here(RequestSource::Json(request));
        let completion = self.pipeline.run(&context, operation, request, None).await;
        match completion?.into_result() {
            Ok(success) => Ok((success.response.unwrap_or_default(), context)),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Calls `operation` with a value and gives a value; a replay gives an equal one, decoded from
    /// the record (P9).
    ///
    /// # Errors
    /// As [`invoke`](Self::invoke); `CACHING_CONFLICT_003` if the recorded response is not of this
    /// type (P11).
    pub async fn invoke_typed<Request, Response>(
        &self,
        operation: &Operation<Request, Response>,
        context: InvocationContextBuilder,
        request: &Request,
    ) -> Result<(Response, InvocationContext), InvocationError>
    where
        Request: Serialize + DeserializeOwned + Send + 'static,
        Response: Serialize + DeserializeOwned + 'static,
    {
        let request = serde_json::to_vec(request).map_err(|error| {
            CachingError::internal("the request cannot be encoded").with_source(error)
        })?;
        let (response, context) = self.invoke(operation, context, request.into()).await?;
        match serde_json::from_slice(&response) {
            Ok(response) => Ok((response, context)),
            Err(error) if was_replayed(&context) => {
                let error = CachingError::response_unavailable().with_source(error);
                Err(InvocationError::Exception(error.into()))
            }
            Err(error) => {
                let detail = "the response does not decode as the type it was encoded from";
                Err(CachingError::internal(detail).with_source(error).into())
            }
        }
    }
}

impl EntryKind {
    /// A context builder for a call from code.
    pub fn context(self) -> InvocationContextBuilder {
        InvocationContext::builder(self)
    }
}
