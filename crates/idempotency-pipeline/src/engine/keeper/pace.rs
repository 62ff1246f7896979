//! The beat of a keeper, from a thread that no handler can block.

use std::io;
use std::sync::Weak;
use std::thread;
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

/// Notifies the task at once and then once a tick, and sees to what it neglects, until the task has
/// ended and no call is left on its runtime that no other task sees to. Without a thread for that,
/// the task is left to its timer.
///
/// Who is woken by a thread that belongs to no runtime is taken up by any worker that is free, and
/// by none that is not.
pub(super) fn start(pace: Pace) {
    let thread = thread::Builder::new().name("xihan-markers".to_owned());
    let started: io::Result<_> = thread.spawn(move || pace.keep_beating());
    if let Err(error) = started {
        tracing::warn!(
            %error,
            "no thread paces the extension of markers; each call with a key gets a task of its own"
        );
    }
}

impl Pace {
    fn keep_beating(&self) {
        if let Some(beat) = self.beat.upgrade() {
            beat.notify_one();
        }
        loop {
            #[expect(
                clippy::disallowed_methods,
                reason = "this thread is no worker of a runtime, and real time is what it is about"
            )]
            thread::sleep(self.tick);
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
