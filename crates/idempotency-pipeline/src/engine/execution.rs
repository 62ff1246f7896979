use std::panic::AssertUnwindSafe;
use std::pin::pin;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use super::Execution;
use super::detach::Detached;
use crate::context::{CommitState, InvocationContext};
use crate::outcome::{Completion, Exception};
use crate::stage::Next;

/// How much more often the marker is extended while the store does not answer, so that an outage
/// shorter than the marker's life does not lose it.
const ATTEMPTS_PER_PERIOD: u32 = 8;

impl Execution {
    /// Runs the later stages to their end, and records it.
    ///
    /// Dropping this future cancels nothing: the client may go away, the work goes on (P15).
    pub(super) fn run(
        self,
        context: InvocationContext,
        next: Next,
        asked: Instant,
    ) -> Detached<Completion> {
        let tasks = self.engine.tasks.clone();
        let work = async move {
            let completion = self.execute(&context, next, asked).await;
            self.settle(&context, completion).await
        };
        Detached::new(Box::pin(work.in_current_span()), &tasks)
    }

    /// The later stages, with the marker that was `asked` for kept alive while they run (P16).
    async fn execute(&self, context: &InvocationContext, next: Next, asked: Instant) -> Completion {
        let renderer = next.work().renderer().cloned();
        let work = async {
            let outcome = next.run(context).await?;
            let rendering = renderer.map(|renderer| renderer.render(context, &outcome));
            Ok(outcome.with_rendering(rendering))
        };
        let work = pin!(AssertUnwindSafe(work).catch_unwind());
        // The work comes first: a handler that does not wait never starts a timer.
        let keeper = pin!(self.keep_marker(asked));
        let end = match select(work, keeper).await {
            Either::Left((end, _)) => end,
            Either::Right(((), work)) => work.await,
        };
        end.unwrap_or_else(|panic| Err(Exception::panicked(&*panic)))
    }

    /// Extends the marker until it is lost or the longest execution time has passed, counted from
    /// `start`, when the store was asked to write it.
    async fn keep_marker(&self, start: Instant) {
        let end = start + self.engine.settings.max_execution;
        let time_to_live = self.engine.settings.in_progress_time_to_live;
        let period = time_to_live.as_duration() / 3;
        let mut due = start + period;
        while due < end {
            sleep_until(due).await;
            // Measured from before the request, so that a slow store makes us early, not late.
            let asked = Instant::now();
            match self
                .store()
                .try_extend(&self.key, &self.marker, time_to_live)
                .await
            {
                Ok(true) => due = asked + period,
                Ok(false) => {
                    tracing::warn!(
                        operation = self.operation.as_deref(),
                        "the marker of a running call is gone; its record will be refused"
                    );
                    self.engine.meters.marker_lost();
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "the marker of a running call was not extended");
                    due = asked + period / ATTEMPTS_PER_PERIOD;
                }
            }
        }
        sleep_until(end).await;
        tracing::warn!(
            operation = self.operation.as_deref(),
            "a call runs longer than MaxExecutionSeconds; its marker is left to run out"
        );
    }

    /// Whether an exception may have left committed work behind, so that no retry may run (P6).
    pub(super) fn may_be_committed(context: &InvocationContext) -> bool {
        context.commit() != CommitState::Nothing
    }
}
