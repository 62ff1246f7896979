//! What the tests of the pipeline share.

mod counts;
mod faulty;
#[cfg(feature = "http")]
pub(crate) mod http;
mod transactions;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheKey, CacheStore, CachingServices, CachingSettings, IdempotencySettings,
};
use conformance::ReferenceStore;
use futures_util::FutureExt;
use idempotency_pipeline::{
    Authenticator, Baggage, Completion, EntryKind, Failure, InvocationContext,
    InvocationContextBuilder, InvocationError, Middleware, Next, Operation, OperationInvoker,
    Pipeline, PipelineBuilder, Principal,
};
use serde::{Deserialize, Serialize};

pub(crate) use counts::Counts;
pub(crate) use faulty::{Fault, FaultyStore, Gate, Op};
pub(crate) use transactions::{End, Ledger};

/// The request of the operations here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Create {
    pub(crate) name: String,
}

impl Create {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
        }
    }
}

/// The response; the id is the number of the execution that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: usize,
    pub(crate) name: String,
}

/// How often a handler ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs(Arc<AtomicUsize>);

impl Runs {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Counts one more and gives its number, from 1.
    pub(crate) fn begin(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// Lines in the order in which things happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    /// The lines so far, which are forgotten.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// An operation that counts its runs and then does `work`, told which run it is.
pub(crate) fn operation<F, Fut>(id: &'static str, runs: &Runs, work: F) -> Operation<Create, Order>
where
    F: Fn(usize, InvocationContext, Create) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Order, InvocationError>> + Send + 'static,
{
    let runs = runs.clone();
    Operation::new(id).handler(move |context, request| work(runs.begin(), context, request))
}

/// An operation `orders.create` that always succeeds, with 201 and a location.
pub(crate) fn create_order(runs: &Runs) -> Operation<Create, Order> {
    operation("orders.create", runs, |id, _, request| async move {
        Ok(Order {
            id,
            name: request.name,
        })
    })
    .created(|order| format!("/orders/{}", order.id))
}

/// An operation that fails for business reasons; its text says which run it was.
pub(crate) fn refuse_order(runs: &Runs) -> Operation<Create, Order> {
    operation("orders.refuse", runs, |id, _, _| async move {
        Err(out_of_stock().with_parameter("run", id.to_string()).into())
    })
}

pub(crate) fn out_of_stock() -> Failure {
    Failure::new("ORDERS_CONFLICT_001").with_detail("out of stock")
}

/// An operation that waits at `gate`, then succeeds.
pub(crate) fn gated_order(runs: &Runs, gate: &Gate) -> Operation<Create, Order> {
    let gate = gate.clone();
    operation("orders.create", runs, move |id, _, request| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok(Order {
                id,
                name: request.name,
            })
        }
    })
}

/// A pipeline on a faulty store.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) pipeline: Pipeline,
    pub(crate) invoker: OperationInvoker,
    pub(crate) runs: Runs,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder, |_| {})
    }

    pub(crate) fn configured(settings: impl FnOnce(&mut IdempotencySettings)) -> Self {
        Self::with(|builder| builder, settings)
    }

    pub(crate) fn built(build: impl FnOnce(PipelineBuilder) -> PipelineBuilder) -> Self {
        Self::with(build, |_| {})
    }

    pub(crate) fn with(
        build: impl FnOnce(PipelineBuilder) -> PipelineBuilder,
        change: impl FnOnce(&mut IdempotencySettings),
    ) -> Self {
        Self::on(ReferenceStore::new(), build, change)
    }

    pub(crate) fn on(
        store: ReferenceStore,
        build: impl FnOnce(PipelineBuilder) -> PipelineBuilder,
        change: impl FnOnce(&mut IdempotencySettings),
    ) -> Self {
        let store = Arc::new(FaultyStore::new(store));
        let mut services = Services {
            store: Arc::clone(&store) as Arc<dyn CacheStore>,
            settings: CachingSettings::default(),
        };
        change(&mut services.settings.idempotency);
        let pipeline = build(Pipeline::builder()).build(&services);
        let invoker = OperationInvoker::new(&pipeline);
        Self {
            store,
            pipeline,
            invoker,
            runs: Runs::default(),
        }
    }

    /// Calls `operation` with the key `key`, as nobody in particular.
    pub(crate) async fn call(
        &self,
        operation: &Operation<Create, Order>,
        key: &str,
    ) -> Result<(Order, InvocationContext), InvocationError> {
        let context = keyed(EntryKind::Typed, key);
        self.invoker
            .invoke_typed(operation, context, &Create::new("Keyboard"))
            .await
    }

    /// The code that such a call ends with; fails if it succeeds.
    pub(crate) async fn refusal(&self, operation: &Operation<Create, Order>, key: &str) -> String {
        code(&self.call(operation, key).await.unwrap_err())
    }

    /// What stands under the key of a call of nobody in particular.
    pub(crate) fn stored(&self, key: &str) -> Option<Bytes> {
        let key = CacheKey::new(format!("idem:-:-:{key}")).unwrap();
        self.store
            .inner()
            .get(&key)
            .now_or_never()
            .unwrap()
            .unwrap()
    }

    /// Puts `value` under the key of a call of nobody in particular.
    pub(crate) fn put(&self, key: &str, value: impl Into<Bytes>) {
        let key = CacheKey::new(format!("idem:-:-:{key}")).unwrap();
        let options = caching_abstractions::CacheEntryOptions::default();
        self.store
            .inner()
            .set(&key, value.into(), options)
            .now_or_never()
            .unwrap()
            .unwrap();
    }

    /// What is left of the life of what stands there.
    pub(crate) fn left(&self, key: &str) -> Option<std::time::Duration> {
        let key = CacheKey::new(format!("idem:-:-:{key}")).unwrap();
        self.store
            .inner()
            .time_to_live(&key)
            .now_or_never()
            .unwrap()
            .unwrap()
    }

    /// Everything stored.
    pub(crate) async fn stored_keys(&self) -> Vec<String> {
        use futures_util::TryStreamExt;
        let keys: Vec<CacheKey> = self.store.inner().keys("").try_collect().await.unwrap();
        let mut keys: Vec<_> = keys.iter().map(|key| key.as_str().to_owned()).collect();
        keys.sort();
        keys
    }
}

/// A call with an idempotency key.
pub(crate) fn keyed(entry: EntryKind, key: &str) -> InvocationContextBuilder {
    entry
        .context()
        .baggage(Baggage::new().with_idempotency_key(CacheKey::new(key).unwrap()))
}

pub(crate) const IN_PROGRESS: &str = "CACHING_CONFLICT_002";
pub(crate) const NOT_REPLAYABLE: &str = "CACHING_CONFLICT_003";
pub(crate) const AWAY: &str = "CACHING_UNAVAILABLE_001";
pub(crate) const FULL: &str = "CACHING_UNAVAILABLE_002";
pub(crate) const INTERNAL: &str = "CACHING_INTERNAL_001";
pub(crate) const INVALID: &str = "CACHING_VALIDATION_001";

/// The code of an error, of whichever kind it is.
pub(crate) fn code(error: &InvocationError) -> String {
    match error {
        InvocationError::Failure(failure) => failure.code().to_owned(),
        InvocationError::Exception(exception) => exception.error().code().as_str().to_owned(),
    }
}

/// The message key of an error, of whichever kind it is.
pub(crate) fn message_key(error: &InvocationError) -> String {
    match error {
        InvocationError::Failure(failure) => failure.message_key().to_owned(),
        InvocationError::Exception(exception) => exception.error().message_key().to_owned(),
    }
}

/// Lets tasks that are ready run, without moving the clock.
pub(crate) async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// A store and settings, as an assembly hands them out.
#[derive(Debug)]
struct Services {
    store: Arc<dyn CacheStore>,
    settings: CachingSettings,
}

impl CachingServices for Services {
    fn store(&self) -> &Arc<dyn CacheStore> {
        &self.store
    }

    fn settings(&self) -> &CachingSettings {
        &self.settings
    }
}

/// Takes the caller from the metadata: `user` is the principal, `tenant` its tenant.
pub(crate) struct ByMetadata;

#[async_trait]
impl Authenticator for ByMetadata {
    fn challenge(&self) -> &'static str {
        "Test"
    }

    async fn authenticate(
        &self,
        context: &InvocationContext,
    ) -> Result<Option<Principal>, InvocationError> {
        let text = |name| {
            context
                .metadata(name)
                .map(|value| String::from_utf8_lossy(value))
        };
        Ok(text("user").map(|user| match text("tenant") {
            Some(tenant) => Principal::new(&*user).with_tenant(&*tenant),
            None => Principal::new(&*user),
        }))
    }
}

/// Metadata that [`ByMetadata`] reads.
pub(crate) fn caller(user: &str, tenant: Option<&str>) -> HashMap<String, String> {
    let mut metadata = HashMap::from([("user".to_owned(), user.to_owned())]);
    if let Some(tenant) = tenant {
        metadata.insert("tenant".to_owned(), tenant.to_owned());
    }
    metadata
}

/// Middleware made of a closure that gets the context before and decides what happens.
pub(crate) struct Step<F>(pub(crate) F);

/// What a [`Step`] wants.
pub(crate) enum Then {
    Continue,
    Answer(Completion),
    PanicNow,
    PanicAfterwards,
}

#[async_trait]
impl<F> Middleware for Step<F>
where
    F: Fn(&InvocationContext) -> Then + Send + Sync + 'static,
{
    async fn handle(&self, context: &InvocationContext, next: Next) -> Completion {
        match (self.0)(context) {
            Then::Continue => next.run(context).await,
            Then::Answer(completion) => completion,
            Then::PanicNow => panic!("a stage panicked"),
            Then::PanicAfterwards => {
                let _completion = next.run(context).await;
                panic!("a stage panicked afterwards")
            }
        }
    }
}

/// Middleware that logs `>name` before and `<name` after what is behind.
pub(crate) struct Traced(pub(crate) &'static str, pub(crate) Log);

#[async_trait]
impl Middleware for Traced {
    async fn handle(&self, context: &InvocationContext, next: Next) -> Completion {
        self.1.add(format!(">{}", self.0));
        let completion = next.run(context).await;
        self.1.add(format!("<{}", self.0));
        completion
    }
}
