use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

thread_local! {
    /// Whether this thread is in the first poll of a call's work.
    static IS_IN_FIRST_POLL: Cell<bool> = const { Cell::new(false) };
}

/// Polls `future` once, with the waker of whoever awaits this, and gives what came of it.
pub(super) async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}

/// As [`poll_once`], but does not poll inside another such poll: calls that call each other would
/// go as deep as the stack, and over its end.
pub(super) async fn poll_once_unless_nested<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|context| {
        if IS_IN_FIRST_POLL.replace(true) {
            return Poll::Ready(Poll::Pending);
        }
        let _first = FirstPoll;
        Poll::Ready(Pin::new(&mut *future).poll(context))
    })
    .await
}

/// Says so when the first poll ends, also by a panic.
struct FirstPoll;

impl Drop for FirstPoll {
    fn drop(&mut self) {
        IS_IN_FIRST_POLL.set(false);
    }
}
