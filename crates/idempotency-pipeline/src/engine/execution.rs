use std::panic::AssertUnwindSafe;

use caching_abstractions::CachingError;
use futures_util::FutureExt;
use tokio::time::Instant;
use tracing::Instrument;

use super::Execution;
use crate::context::{CommitState, InvocationContext};
use crate::outcome::{Completion, Exception};
use crate::stage::Next;

impl Execution {
    /// Runs the later stages on a task of their own, to their end, and records it.
    ///
    /// Dropping this future cancels nothing, and not polling it delays nothing: the client may go
    /// away, the work goes on (P15). The marker that was `asked` for is kept alive meanwhile (P16).
    pub(super) async fn run(
        self,
        context: InvocationContext,
        next: Next,
        asked: Instant,
    ) -> Completion {
        let tasks = self.engine.tasks.clone();
        let kept = self.engine.keep(&self, asked);
        let work = async move {
            let completion = execute(&context, next).await;
            drop(kept);
            self.settle(&context, completion).await
        };
        match tasks.spawn(work.in_current_span()).await {
            Ok(completion) => completion,
            Err(end) => Err(match end.try_into_panic() {
                // Settling panicked: the work is done, and its marker runs out.
                Ok(panic) => Exception::panicked(&*panic),
                // The runtime is going down and has cut the work; its marker runs out.
                Err(_) => CachingError::unavailable("the service is shutting down").into(),
            }),
        }
    }

    /// Whether an exception may have left committed work behind, so that no retry may run (P6).
    pub(super) fn may_be_committed(context: &InvocationContext) -> bool {
        context.commit() != CommitState::Nothing
    }
}

/// The later stages and the answer of their outcome.
async fn execute(context: &InvocationContext, next: Next) -> Completion {
    let renderer = next.work().renderer().cloned();
    let work = async {
        let outcome = next.run(context).await?;
        let rendering = renderer.map(|renderer| renderer.render(context, &outcome));
        Ok(outcome.with_rendering(rendering))
    };
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(completion) => completion,
        Err(panic) => Err(Exception::panicked(&*panic)),
    }
}
