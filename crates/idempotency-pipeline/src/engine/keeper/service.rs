//! The tasks of the keeper, one for each runtime that runs calls.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::pace::{self, Pace};
use crate::engine::Engine;

/// How far a task is; it ends when no call runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// Spawned, and perhaps still waiting for its first turn behind whatever runs there.
    Starting,
    /// It sleeps, and both its timer and its pace wake it wherever a thread is free.
    Running,
}

/// The tasks by their runtimes, of which a process has few.
#[derive(Default)]
pub(super) struct Services(Vec<(runtime::Id, Service)>);

impl Services {
    pub(super) fn of(&self, home: runtime::Id) -> Option<Service> {
        let found = self.0.iter().find(|(id, _)| *id == home);
        found.map(|(_, service)| *service)
    }

    pub(super) fn set(&mut self, home: runtime::Id, service: Service) {
        self.remove(home);
        self.0.push((home, service));
    }

    pub(super) fn remove(&mut self, home: runtime::Id) {
        self.0.retain(|(id, _)| *id != home);
    }
}

/// Says so when the task ends, also when its runtime ends before the engine does.
struct Served {
    engine: Weak<Engine>,
    home: runtime::Id,
}

impl Served {
    fn runs(&self) {
        if let Some(engine) = self.engine.upgrade() {
            let mut kept = engine.keeper.0.lock();
            kept.services.set(self.home, Service::Running);
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.keeper.0.lock().services.remove(self.home);
        }
    }
}

/// Spawns the task on `runtime`, and starts what paces it.
pub(super) fn start(engine: &Arc<Engine>, runtime: &Handle, tick: Duration) {
    let beat = Arc::new(Notify::new());
    let served = Served {
        engine: Arc::downgrade(engine),
        home: runtime.id(),
    };
    // Right here: behind a handler that blocks, the task may get no turn to start it.
    let pace = pace::start(Pace {
        beat: Arc::downgrade(&beat),
        engine: Arc::downgrade(engine),
        runtime: runtime.clone(),
        tick,
    });
    runtime.spawn(serve(served, Arc::clone(&beat), pace.is_some(), tick));
    // A runtime that goes down has dropped the task already: then nothing is to be paced.
    if let (Some(_), Some(pace)) = (Arc::into_inner(beat), pace) {
        pace.unpark();
    }
}

async fn serve(mut served: Served, beat: Arc<Notify>, is_paced: bool, tick: Duration) {
    if is_paced {
        served.runs();
    }
    loop {
        // Whichever comes first; a tick too many does no harm.
        let _beat_or_not = timeout(tick, beat.notified()).await;
        let Some(engine) = served.engine.upgrade() else {
            return;
        };
        let Some(due) = engine.due(Instant::now(), served.home) else {
            // Said under the lock already; by now another task may serve.
            served.engine = Weak::new();
            return;
        };
        for call in due {
            let engine = Arc::clone(&engine);
            // Each on its own, so that a store that does not answer for one holds up no other.
            tokio::spawn(async move { engine.extend(call).await });
        }
    }
}
