use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Work that runs to its end, whether or not anybody waits for it (P15).
///
/// As long as somebody waits it runs in that task, which costs no wake-up. Dropped before its end,
/// as when a client goes away, it moves to a task of its own and runs on there.
pub(super) struct Detached<T: Send + 'static> {
    /// None once it has ended, or while it is polled.
    work: Option<BoxFuture<'static, T>>,
    /// Where it began; whoever drops it may be on no runtime.
    runtime: Option<Handle>,
    /// Lets a shutdown wait for it wherever it runs.
    token: TaskTrackerToken,
}

impl<T: Send + 'static> Detached<T> {
    pub(super) fn new(work: BoxFuture<'static, T>, tasks: &TaskTracker) -> Self {
        Self {
            work: Some(work),
            runtime: Handle::try_current().ok(),
            token: tasks.token(),
        }
    }
}

impl<T: Send + 'static> Future for Detached<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Taken out while it is polled: if it panics it is over, and nothing is moved.
        let Some(mut work) = self.work.take() else {
            // Polled again after its end, which no caller does; it never wakes anybody.
            return Poll::Pending;
        };
        let poll = work.as_mut().poll(cx);
        if poll.is_pending() {
            self.work = Some(work);
        }
        poll
    }
}

impl<T: Send + 'static> Drop for Detached<T> {
    fn drop(&mut self) {
        // On a runtime that goes down the task does not run: the work is cut, its marker runs out.
        if let (Some(work), Some(runtime)) = (self.work.take(), &self.runtime) {
            let token = self.token.clone();
            runtime.spawn(async move {
                work.await;
                drop(token);
            });
        }
    }
}
