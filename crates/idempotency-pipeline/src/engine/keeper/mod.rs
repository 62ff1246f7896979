//! Keeps the markers of running calls alive (P16), on one task for all calls of a runtime.
//!
//! - One for all, so that a call costs no timer.
//! - A task of its own, so that a handler which blocks its thread starves no marker as long as the
//!   runtime has another thread.
//! - One for each runtime, because nobody knows whether another runtime goes on: it may end, have
//!   all its threads blocked, or wait to be driven again. A task that sees others' calls overdue
//!   extends them as well.
//! - Paced by a thread: a runtime whose timers are with the very worker that is blocked looks at
//!   them again only once somebody from outside wakes another worker. The thread itself extends
//!   what no task sees to, which helps where the store needs no task to answer.

mod calls;
mod pace;
mod service;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::{self, Handle};
use tokio::time::Instant;

use self::calls::{Call, Calls, Due, Id};
use self::service::{Service, Services};
use super::{Engine, Execution};

/// A marker is extended when a third of its time has passed, and while the store does not answer
/// tried again this often within another third, so that a short outage does not lose it.
const ATTEMPTS_PER_PERIOD: u32 = 8;
const SHORTEST_TICK: Duration = Duration::from_millis(1);
/// So many ticks after it was due, the tasks of other runtimes extend a marker too.
const TICKS_UNTIL_OVERDUE: u32 = 2;
/// So many ticks after it was due, the threads extend a marker too.
const TICKS_UNTIL_NEGLECTED: u32 = 4;

/// The running calls and who keeps their markers.
#[derive(Default)]
pub(super) struct Keeper(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    calls: Calls,
    services: Services,
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
        // Before anything is entered: it panics where there is no runtime.
        let runtime = Handle::current();
        let home = runtime.id();
        let call = Call {
            key: execution.key.clone(),
            marker: execution.marker,
            operation: execution.operation.clone(),
            home,
            due: asked + self.period(),
            end: asked + self.settings.max_execution,
        };
        let mut kept = self.keeper.0.lock();
        let id = kept.calls.insert(call);
        let service = kept.services.of(home);
        if service.is_none() {
            kept.services.set(home, Service::Starting);
        }
        drop(kept);
        if service.is_none() {
            // After the lock: a runtime that goes down drops the task right here, which says so.
            service::start(self, &runtime, self.tick());
        }
        Hold {
            engine: Arc::clone(self),
            id,
            is_served: service == Some(Service::Running),
        }
    }

    /// The calls whose markers are due at `now`, others' only once they are overdue. None if no
    /// call runs: then the runtime `home` is not served any more.
    fn due(&self, now: Instant, home: runtime::Id) -> Option<Vec<Due>> {
        self.let_go(now);
        let others = self.tick() * TICKS_UNTIL_OVERDUE;
        let mut kept = self.keeper.0.lock();
        if kept.calls.is_empty() {
            kept.services.remove(home);
            return None;
        }
        // Measured from before the request, so that a slow store makes us early, not late.
        let next = now + self.period();
        Some(kept.calls.take_due(now, next, |call| match call.home {
            theirs if theirs == home => Duration::ZERO,
            _ => others,
        }))
    }

    /// Lets those calls go that have run too long at `now`.
    fn let_go(&self, now: Instant) {
        let ended = self.keeper.0.lock().calls.take_ended(now);
        for call in ended {
            tracing::warn!(
                operation = call.operation.as_deref(),
                "a call runs longer than MaxExecutionSeconds; its marker is left to run out"
            );
        }
    }

    /// Extends what no task sees to, from a thread that is not of `runtime`: as far as one poll
    /// goes right here, and the rest there. Gives whether calls of `runtime` go on without a task
    /// that sees to them.
    fn extend_neglected(self: &Arc<Self>, runtime: &Handle) -> bool {
        // For its clock, and because a store may look for its runtime.
        let _entered = runtime.enter();
        let now = Instant::now();
        self.let_go(now);
        let grace = self.tick() * TICKS_UNTIL_NEGLECTED;
        let mut kept = self.keeper.0.lock();
        let neglected = kept.calls.take_due(now, now + self.period(), |_| grace);
        let home = runtime.id();
        let goes_on = kept.services.of(home).is_none() && kept.calls.has_any_of(home);
        drop(kept);
        for call in neglected {
            let engine = Arc::clone(self);
            let extending = async move { engine.extend(call).await };
            let mut extending = AssertUnwindSafe(extending).catch_unwind().boxed();
            if (&mut extending).now_or_never().is_none() {
                runtime.spawn(extending);
            }
        }
        goes_on
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

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("running", &self.0.lock().calls.len())
            .finish()
    }
}
