use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Polls `future` once, with the waker of whoever awaits this, and gives what came of it.
pub(super) async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}
