//! The Idempotency stage: a call with a key is executed once, and its answer given again
//! (spec part 7).

mod background;
mod claim;
mod execution;
mod keeper;
mod metrics;
mod polling;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use caching_abstractions::{
    CacheEntryOptions, CacheKey, CacheStore, CachingError, IdempotencySettings,
};
use tokio_util::task::TaskTracker;

use self::claim::Claim;
use self::keeper::Keeper;
use self::metrics::Meters;
use crate::context::{InvocationContext, Replay};
use crate::operation::Fingerprint;
use crate::outcome::{Completion, Outcome};
use crate::record::{CompletedCall, ExecutionToken, IdempotencyRecord, Marker};
use crate::scope::record_key;
use crate::stage::Next;

/// The stage itself; a pipeline that is built on a store has it without asking (P3).
///
/// # What a call with an idempotency key meets
///
/// - Nothing recorded: it becomes the owner of the key, and runs to its end (P5, P15).
/// - A call in progress: `CACHING_CONFLICT_002` (P7).
/// - A completed call: the recorded answer (P8), or `CACHING_CONFLICT_003` (P11).
/// - No store: `CACHING_UNAVAILABLE_001`, and nothing runs (P14).
#[derive(Clone, Debug)]
pub struct IdempotencyMiddleware(Arc<Engine>);

#[derive(Debug)]
struct Engine {
    store: Arc<dyn CacheStore>,
    settings: IdempotencySettings,
    tasks: TaskTracker,
    keeper: Keeper,
    meters: Meters,
}

impl IdempotencyMiddleware {
    pub(crate) fn new(
        store: Arc<dyn CacheStore>,
        settings: IdempotencySettings,
        tasks: TaskTracker,
    ) -> Self {
        Self(Arc::new(Engine {
            store,
            settings,
            tasks,
            keeper: Keeper::default(),
            meters: Meters::default(),
        }))
    }

    pub(crate) async fn handle(&self, context: &InvocationContext, next: Next) -> Completion {
        let operation = next.work().called();
        if operation.is_some_and(|operation| operation.is_query()) {
            return next.run(context).await;
        }
        let Some(key) = context.baggage().idempotency_key() else {
            return match operation {
                Some(operation) if operation.requires_key() => {
                    Err(CachingError::key_required().into())
                }
                _ => next.run(context).await,
            };
        };
        let tenant = context.tenant();
        let principal = context.principal().map(|principal| principal.name());
        let key = match record_key(tenant, principal, key) {
            Ok(key) => key,
            Err(error) => return Err(self.0.meters.refused(error).into()),
        };
        let token = ExecutionToken::generate();
        let execution = Execution {
            engine: Arc::clone(&self.0),
            token,
            marker: IdempotencyRecord::marker(token),
            key,
            operation: operation.map(|operation| operation.shared_id()),
            fingerprint: next.work().fingerprint(),
        };
        match execution.claim().await {
            Ok(Claim::Won(ownership)) => {
                context.set_replay(Replay::Executed);
                execution.run(context.clone(), next, ownership).await
            }
            Ok(Claim::Taken(record)) => {
                match execution.replay(IdempotencyRecord::decode(&record)) {
                    Ok(outcome) => {
                        context.set_replay(Replay::Replayed);
                        Ok(outcome)
                    }
                    Err(error) => Err(self.0.meters.refused(error).into()),
                }
            }
            Err(error) => Err(self.0.meters.refused(error).into()),
        }
    }
}

/// One call with a key. Key, operation and token are fixed here, whatever a handler does (P20).
#[derive(Clone)]
struct Execution {
    engine: Arc<Engine>,
    key: CacheKey,
    token: ExecutionToken,
    marker: Marker,
    operation: Option<Arc<str>>,
    fingerprint: Option<Fingerprint>,
}

/// What a plain call is called where an operation's id would stand (P11).
const PLAIN: &str = "-";

impl Execution {
    fn store(&self) -> &dyn CacheStore {
        &*self.engine.store
    }

    fn in_progress_time(&self) -> Duration {
        self.engine.settings.in_progress_time_to_live.as_duration()
    }

    fn marker_options(&self) -> CacheEntryOptions {
        CacheEntryOptions::from(self.engine.settings.in_progress_time_to_live).essential()
    }

    fn record_options(&self) -> CacheEntryOptions {
        CacheEntryOptions::from(self.engine.settings.time_to_live)
    }

    /// Answers a repeat from what stands under its key.
    fn replay(&self, record: IdempotencyRecord) -> Result<Outcome, CachingError> {
        match record {
            IdempotencyRecord::InProgress(_) => Err(CachingError::in_progress()),
            IdempotencyRecord::Opaque => Err(CachingError::response_unavailable()),
            IdempotencyRecord::Completed(call) => self.replay_completed(*call),
        }
    }

    fn replay_completed(&self, call: CompletedCall) -> Result<Outcome, CachingError> {
        let (called, recorded) = (self.operation.as_deref(), call.operation.as_deref());
        if called != recorded {
            return Err(CachingError::key_reused(
                called.unwrap_or(PLAIN),
                recorded.unwrap_or(PLAIN),
            ));
        }
        // A record made while fingerprints were off has none, and says nothing about the request.
        if let (Some(ours), Some(theirs)) = (self.fingerprint, call.fingerprint)
            && ours != theirs
        {
            return Err(CachingError::request_mismatch());
        }
        let outcome = match call.result {
            Some(Ok(success)) if called.is_some() && success.response.is_none() => None,
            Some(Ok(success)) => Some(Outcome::from(success)),
            Some(Err(failure)) => Some(Outcome::from(failure)),
            None => None,
        };
        let outcome = outcome.ok_or_else(CachingError::response_unavailable)?;
        self.engine.meters.replayed();
        Ok(outcome.with_rendering(call.rendering))
    }
}
