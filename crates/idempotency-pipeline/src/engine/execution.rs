use std::panic::AssertUnwindSafe;
use std::task::Poll;

use caching_abstractions::CachingError;
use futures_util::FutureExt;
use tracing::Instrument;

use super::Execution;
use super::claim::Ownership;
use super::polling::poll_once_unless_nested;
use crate::context::{CommitState, InvocationContext};
use crate::outcome::{Completion, Exception};
use crate::stage::Next;

impl Execution {
    /// Runs the later stages to their end and records it, whatever becomes of the caller (P15).
    ///
    /// What ends in its first poll has run right here, which spares it a task. What does not goes
    /// on as a task of its own from that very poll on: dropping this future cancels nothing, and
    /// not polling it delays nothing. The marker is kept alive meanwhile (P16).
    pub(super) async fn run(
        self,
        context: InvocationContext,
        next: Next,
        ownership: Ownership,
    ) -> Completion {
        let kept = self.engine.keep(&self, ownership.since);
        // In the work's own task a handler that blocks its thread holds up nothing that keeps its
        // marker. Here it might, unless the keeper is at it and the store needs no task to answer.
        let begins_here = ownership.was_given_at_once && kept.is_served();
        let counted = self.engine.tasks.token();
        let work = async move {
            let completion = execute(&context, next).await;
            drop(kept);
            let completion = self.settle(&context, completion).await;
            // What stages left in the context for the work, such as a permit, goes with it.
            drop(context);
            drop(counted);
            completion
        };
        let mut work = Box::pin(AssertUnwindSafe(work).catch_unwind());
        let first = match begins_here {
            true => poll_once_unless_nested(&mut work).await,
            false => Poll::Pending,
        };
        let end = match first {
            Poll::Ready(end) => Ok(end),
            // Nothing awaits between the poll and this: there is no moment to be dropped in.
            Poll::Pending => tokio::spawn(work.in_current_span()).await,
        };
        match end {
            Ok(Ok(completion)) => completion,
            // Settling panicked: the work is done, and its marker runs out.
            Ok(Err(panic)) => Err(Exception::panicked(&*panic)),
            // The runtime is going down and has cut the work; its marker runs out.
            Err(_) => Err(CachingError::unavailable("the service is shutting down").into()),
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
