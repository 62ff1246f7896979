//! What goes on after the caller has its answer, while the store is away.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use super::Execution;

/// The pause before the first further attempt; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// What is known of a marker that has to go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was written: once the store says that it is not there, it is gone.
    Written,
    /// Nobody knows whether it was, or whether the request is still on its way to the store.
    Unknown,
}

impl Execution {
    /// Removes our marker by its own value, until it is gone or has run out (P6, P14).
    ///
    /// A shutdown does not wait for it: without it the marker runs out by itself.
    pub(super) fn remove_marker_in_background(&self, fate: Fate) {
        let execution = self.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { execution.remove_marker(fate).await });
        }
    }

    async fn remove_marker(&self, fate: Fate) {
        let mut pauses = Pauses::until(self.in_progress_time());
        loop {
            match self.store().try_remove(&self.key, &self.marker).await {
                Ok(true) => return,
                Ok(false) if fate == Fate::Written => return,
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "a marker is not removed yet"),
            }
            if !pauses.pause().await {
                return;
            }
        }
    }

    /// Records the outcome, until it is recorded or its marker has run out (P14).
    pub(super) fn write_in_background(self, record: Bytes) {
        let tasks = self.engine.tasks.clone();
        tasks.spawn(async move { self.keep_writing(record).await });
    }

    async fn keep_writing(&self, record: Bytes) {
        let mut pauses = Pauses::until(self.in_progress_time());
        while pauses.pause().await {
            match self.write(|| record.clone()).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(%error, "an outcome is not recorded yet"),
            }
        }
        self.engine
            .record_lost(self.operation.as_deref(), "the store stayed away");
    }
}

/// Growing pauses with jitter, up to an end.
struct Pauses {
    end: Instant,
    next: Duration,
}

impl Pauses {
    fn until(from_now: Duration) -> Self {
        Self {
            end: Instant::now() + from_now,
            next: FIRST_PAUSE,
        }
    }

    /// Waits; `false` if the end has come. The last attempt is at the end itself.
    async fn pause(&mut self) -> bool {
        let now = Instant::now();
        if now >= self.end {
            return false;
        }
        let pause = self.next.mul_f64(rand::random_range(0.5..=1.0));
        sleep_until(self.end.min(now + pause)).await;
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        true
    }
}
