//! Operations that run to their end, whether or not somebody still waits for them.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use caching_abstractions::{CachingError, Result};
use tokio_util::task::TaskTracker;

/// Does `work`, to its end once it has begun.
///
/// It is polled in place first, because a store that answers at once needs no task; what is not
/// done by then moves to a task of its own before anything can drop it.
///
/// # Cancellation safety
/// Dropping the future loses the answer and nothing else.
pub(super) async fn to_its_end<T: Send + 'static>(
    running: &TaskTracker,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let mut work = Box::pin(work);
    let first = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    match first {
        Poll::Ready(done) => done,
        Poll::Pending => running.spawn(work).await.unwrap_or_else(|stopped| {
            Err(match stopped.try_into_panic() {
                Ok(panic) => panicked(&*panic),
                // Nobody aborts these tasks: the runtime itself is going away.
                Err(_) => CachingError::unavailable("the server stopped during the operation"),
            })
        }),
    }
}

/// Polls `work` once, where it stands; none if it is not done.
///
/// Who polls it again gives it a waker then.
pub(super) fn at_once<T>(
    work: Pin<&mut (impl Future<Output = Result<T>> + ?Sized)>,
) -> Option<Result<T>> {
    let mut context = Context::from_waker(Waker::noop());
    // A future that has panicked is not polled again.
    match catch_unwind(AssertUnwindSafe(|| work.poll(&mut context))) {
        Ok(Poll::Ready(done)) => Some(done),
        Ok(Poll::Pending) => None,
        Err(panic) => Some(Err(panicked(&*panic))),
    }
}

/// The error for a panic. Its text goes to the log of the panic hook only: it may hold anything.
pub(super) fn panicked(_: &(dyn Any + Send)) -> CachingError {
    tracing::error!("an operation of the store panicked");
    CachingError::internal("the operation failed inside the server; its log says more")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use caching_abstractions::ErrorCode;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn s5_work_that_has_begun_ends_although_nobody_waits() {
        let running = TaskTracker::new();
        let (go_on, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let work = {
            let (go_on, ended) = (Arc::clone(&go_on), Arc::clone(&ended));
            async move {
                go_on.notified().await;
                ended.notify_one();
                Ok(())
            }
        };
        let waiting = tokio::time::timeout(
            std::time::Duration::from_millis(10),
            to_its_end(&running, work),
        );
        assert!(waiting.await.is_err());
        go_on.notify_one();
        ended.notified().await;
    }

    #[tokio::test]
    async fn part6_a_panic_is_an_error_in_place_and_on_a_task() {
        let running = TaskTracker::new();
        let later = to_its_end(&running, async {
            tokio::task::yield_now().await;
            panic!("a broken store")
        });
        let error: Result<()> = later.await;
        assert_eq!(error.unwrap_err().code(), ErrorCode::Internal);
        let mut at_the_first_poll = Box::pin(async { panic!("a broken store") });
        let error: Option<Result<()>> = at_once(at_the_first_poll.as_mut());
        assert_eq!(error.unwrap().unwrap_err().code(), ErrorCode::Internal);
    }
}
