//! What everything of one server shares.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::lease::Queues;
use super::limits::Limits;
use super::metrics::Instruments;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) limits: Limits,
    /// Operations that have begun and outlive their calls.
    pub(super) running: TaskTracker,
    /// Health says NOT_SERVING from here on.
    pub(super) draining: CancellationToken,
    /// What lasts (sessions, watches, waits) ends from here on.
    pub(super) closing: CancellationToken,
    /// Who waits for which lease.
    pub(super) queues: Queues,
    pub(super) instruments: Instruments,
}

impl Shared {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            running: TaskTracker::new(),
            draining: CancellationToken::new(),
            closing: CancellationToken::new(),
            queues: Queues::default(),
            instruments: Instruments::new(),
        }
    }
}
