//! Keeps the markers of running calls alive (P16), on one task for all of them.
//!
//! A task of its own, so that a handler which blocks its thread starves no marker; one for all, so
//! that a call costs no timer.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use caching_abstractions::CacheKey;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{Engine, Execution};
use crate::record::Marker;

/// A marker is extended when a third of its time has passed, and while the store does not answer
/// tried again this often within another third, so that a short outage does not lose it.
const ATTEMPTS_PER_PERIOD: u32 = 8;
const SHORTEST_TICK: Duration = Duration::from_millis(1);

/// The running calls.
#[derive(Default)]
pub(super) struct Keeper(Mutex<Running>);

#[derive(Default)]
struct Running {
    calls: HashMap<u64, Call>,
    next: u64,
    /// Whether the task runs; it ends when no call does.
    is_served: bool,
}

struct Call {
    key: CacheKey,
    marker: Marker,
    operation: Option<Arc<str>>,
    due: Instant,
    end: Instant,
}

/// A call whose marker is due.
struct Due {
    id: u64,
    key: CacheKey,
    marker: Marker,
}

/// Keeps the marker of one call until it is dropped.
pub(super) struct Kept {
    engine: Arc<Engine>,
    id: u64,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.engine.keeper.0.lock().calls.remove(&self.id);
    }
}

impl Engine {
    fn period(&self) -> Duration {
        self.settings.in_progress_time_to_live.as_duration() / 3
    }

    fn tick(&self) -> Duration {
        (self.period() / ATTEMPTS_PER_PERIOD).max(SHORTEST_TICK)
    }

    /// Begins to keep the marker of `execution`, which the store was asked for at `asked`.
    pub(super) fn keep(self: &Arc<Self>, execution: &Execution, asked: Instant) -> Kept {
        let call = Call {
            key: execution.key.clone(),
            marker: execution.marker,
            operation: execution.operation.clone(),
            due: asked + self.period(),
            end: asked + self.settings.max_execution,
        };
        let mut running = self.keeper.0.lock();
        let id = running.next;
        running.next += 1;
        running.calls.insert(id, call);
        if !running.is_served {
            running.is_served = true;
            tokio::spawn(serve(Served(Arc::downgrade(self)), self.tick()));
        }
        Kept {
            engine: Arc::clone(self),
            id,
        }
    }

    /// The calls whose markers are due at `now`; those that have run too long are let go. None if no
    /// call runs: then nobody is served any more.
    fn due(&self, now: Instant) -> Option<Vec<Due>> {
        let mut running = self.keeper.0.lock();
        running.calls.retain(|_, call| {
            let goes_on = now < call.end;
            if !goes_on {
                tracing::warn!(
                    operation = call.operation.as_deref(),
                    "a call runs longer than MaxExecutionSeconds; its marker is left to run out"
                );
            }
            goes_on
        });
        if running.calls.is_empty() {
            running.is_served = false;
            return None;
        }
        let mut due = Vec::new();
        for (id, call) in &mut running.calls {
            if call.due <= now {
                // Measured from before the request, so that a slow store makes us early, not late.
                call.due = now + self.period();
                due.push(Due {
                    id: *id,
                    key: call.key.clone(),
                    marker: call.marker,
                });
            }
        }
        Some(due)
    }

    async fn extend(&self, due: Due) {
        let time_to_live = self.settings.in_progress_time_to_live;
        let asked = Instant::now();
        match self
            .store
            .try_extend(&due.key, &due.marker, time_to_live)
            .await
        {
            Ok(true) => {}
            Ok(false) => {
                // Gone from here as well if the call ended meanwhile: then nothing is wrong.
                if let Some(call) = self.keeper.0.lock().calls.remove(&due.id) {
                    tracing::warn!(
                        operation = call.operation.as_deref(),
                        "the marker of a running call is gone; its record will be refused"
                    );
                    self.meters.marker_lost();
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the marker of a running call was not extended");
                if let Some(call) = self.keeper.0.lock().calls.get_mut(&due.id) {
                    call.due = asked + self.tick();
                }
            }
        }
    }
}

/// Says so when the task ends, also when its runtime ends before the engine does.
struct Served(Weak<Engine>);

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(engine) = self.0.upgrade() {
            engine.keeper.0.lock().is_served = false;
        }
    }
}

async fn serve(mut served: Served, tick: Duration) {
    loop {
        sleep(tick).await;
        let Some(engine) = served.0.upgrade() else {
            return;
        };
        let Some(due) = engine.due(Instant::now()) else {
            // Said under the lock already; by now another task may serve.
            served.0 = Weak::new();
            return;
        };
        for call in due {
            let engine = Arc::clone(&engine);
            // Each on its own, so that a store that does not answer for one holds up no other.
            tokio::spawn(async move { engine.extend(call).await });
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("running", &self.0.lock().calls.len())
            .finish()
    }
}
