//! What is still being released in the background, for a program that is about to end.

use std::sync::Arc;

use tokio::sync::watch;

/// How many releases of one lock are under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending(Arc<watch::Sender<usize>>);

/// One release under way, until it is dropped.
#[derive(Debug)]
pub(super) struct Ticket(Pending);

impl Pending {
    pub(super) fn ticket(&self) -> Ticket {
        self.0.send_modify(|count| *count += 1);
        Ticket(self.clone())
    }

    /// Completes as soon as nothing is under way.
    pub(super) async fn none(&self) {
        // The sender lives as long as `self`, so waiting does not fail.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Clone for Ticket {
    fn clone(&self) -> Self {
        self.0.ticket()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
