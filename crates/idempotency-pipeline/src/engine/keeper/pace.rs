//! The beat of the keeper, from a thread that no handler can block.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;

/// Notifies `beat` once a `tick`, until it is dropped elsewhere; `false` if there is no thread for
/// that.
///
/// Who is woken by a thread that belongs to no runtime is taken up by any worker that is free, and
/// by none that is not.
pub(super) fn start(beat: &Arc<Notify>, tick: Duration) -> bool {
    let beat = Arc::downgrade(beat);
    let thread = thread::Builder::new().name("xihan-markers".to_owned());
    let started: io::Result<_> = thread.spawn(move || keep_beating(&beat, tick));
    if let Err(error) = &started {
        tracing::warn!(
            %error,
            "no thread paces the extension of markers; each call with a key gets a task of its own"
        );
    }
    started.is_ok()
}

fn keep_beating(beat: &Weak<Notify>, tick: Duration) {
    loop {
        #[expect(
            clippy::disallowed_methods,
            reason = "this thread is no worker of a runtime, and real time is what it is about"
        )]
        thread::sleep(tick);
        let Some(beat) = beat.upgrade() else { return };
        beat.notify_one();
    }
}
