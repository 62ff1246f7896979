//! Keeps the markers of running calls alive (P16), on one task for all of them.
//!
//! - One for all, so that a call costs no timer.
//! - A task of its own, so that a handler which blocks its thread starves no marker as long as the
//!   runtime has another thread.
//! - Paced by a thread as well: a runtime whose timers are with the very worker that is blocked
//!   looks at them again only once somebody from outside wakes another worker.

mod calls;
mod pace;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use self::calls::{Call, Calls, Due, Id};
use super::{Engine, Execution};

/// A marker is extended when a third of its time has passed, and while the store does not answer
/// tried again this often within another third, so that a short outage does not lose it.
const ATTEMPTS_PER_PERIOD: u32 = 8;
const SHORTEST_TICK: Duration = Duration::from_millis(1);

/// The running calls and who keeps their markers.
#[derive(Default)]
pub(super) struct Keeper(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    calls: Calls,
    service: Service,
}

/// How far the task is; it ends when no call runs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Service {
    #[default]
    None,
    /// Spawned, and perhaps still waiting for its first turn behind whatever runs here.
    Starting,
    /// It sleeps, and both its timer and its pace wake it wherever a thread is free.
    Running,
}

/// Keeps the marker of one call until it is dropped.
pub(super) struct Hold {
    engine: Arc<Engine>,
    id: Id,
    is_served: bool,
}

impl Hold {
    /// Whether the marker is extended even if the thread is blocked from now on.
    pub(super) fn is_served(&self) -> bool {
        self.is_served
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let call = self.engine.keeper.0.lock().calls.remove(self.id);
        // Freed after the lock.
        drop(call);
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
    pub(super) fn keep(self: &Arc<Self>, execution: &Execution, asked: Instant) -> Hold {
        let call = Call {
            key: execution.key.clone(),
            marker: execution.marker,
            operation: execution.operation.clone(),
            due: asked + self.period(),
            end: asked + self.settings.max_execution,
        };
        let mut kept = self.keeper.0.lock();
        let id = kept.calls.insert(call);
        let service = kept.service;
        if service == Service::None {
            kept.service = Service::Starting;
        }
        drop(kept);
        if service == Service::None {
            // After the lock: a runtime that goes down drops the task right here, which says so.
            tokio::spawn(serve(Served(Arc::downgrade(self)), self.tick()));
        }
        Hold {
            engine: Arc::clone(self),
            id,
            is_served: service == Service::Running,
        }
    }

    /// The calls whose markers are due at `now`; those that have run too long are let go. None if no
    /// call runs: then nobody is served any more.
    fn due(&self, now: Instant) -> Option<Vec<Due>> {
        let mut kept = self.keeper.0.lock();
        for call in kept.calls.take_ended(now) {
            tracing::warn!(
                operation = call.operation.as_deref(),
                "a call runs longer than MaxExecutionSeconds; its marker is left to run out"
            );
        }
        if kept.calls.is_empty() {
            kept.service = Service::None;
            return None;
        }
        // Measured from before the request, so that a slow store makes us early, not late.
        Some(kept.calls.take_due(now, now + self.period()))
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
                let call = self.keeper.0.lock().calls.remove(due.id);
                if let Some(call) = call {
                    tracing::warn!(
                        operation = call.operation.as_deref(),
                        "the marker of a running call is gone; its record will be refused"
                    );
                    self.meters.marker_lost();
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the marker of a running call was not extended");
                let next = asked + self.tick();
                self.keeper.0.lock().calls.set_due(due.id, next);
            }
        }
    }
}

/// Says so when the task ends, also when its runtime ends before the engine does.
struct Served(Weak<Engine>);

impl Served {
    fn set(&self, service: Service) {
        if let Some(engine) = self.0.upgrade() {
            engine.keeper.0.lock().service = service;
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.set(Service::None);
    }
}

async fn serve(mut served: Served, tick: Duration) {
    let beat = Arc::new(Notify::new());
    if pace::start(&beat, tick) {
        served.set(Service::Running);
    }
    loop {
        // Whichever comes first; a tick too many does no harm.
        let _beat_or_not = timeout(tick, beat.notified()).await;
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
