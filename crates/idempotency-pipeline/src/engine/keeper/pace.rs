//! The beat of a keeper, from a thread that no handler can block.

use std::sync::Weak;
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::engine::Engine;

/// What beats for the keeper's task on one runtime.
pub(super) struct Pace {
    pub(super) beat: Weak<Notify>,
    pub(super) engine: Weak<Engine>,
    pub(super) runtime: Handle,
    pub(super) tick: Duration,
}

/// Notifies the task once a tick, and sees to what it neglects, until the task has ended and no call
/// is left on its runtime that no other task sees to; none if there is no thread for that.
///
/// Who is woken by a thread that belongs to no runtime is taken up by any worker that is free, and
/// by none that is not.
pub(super) fn start(pace: Pace) -> Option<Thread> {
    let thread = thread::Builder::new().name("xihan-markers".to_owned());
    match thread.spawn(move || pace.keep_beating()) {
        Ok(started) => Some(started.thread().clone()),
        Err(error) => {
            tracing::warn!(
                %error,
                "no thread paces the extension of markers; each call with a key gets a task of its own"
            );
            None
        }
    }
}

impl Pace {
    fn keep_beating(&self) {
        loop {
            // Not at once: a clock that is paused jumps ahead if a task is woken from outside just
            // as its timer is due.
            thread::park_timeout(self.tick);
            let beat = self.beat.upgrade();
            if let Some(beat) = &beat {
                beat.notify_one();
            }
            let Some(engine) = self.engine.upgrade() else {
                return;
            };
            // A runtime that is gone may have left a thread behind on which a handler goes on.
            if !engine.extend_neglected(&self.runtime) && beat.is_none() {
                return;
            }
        }
    }
}
