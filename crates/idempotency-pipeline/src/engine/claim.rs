use std::task::Poll;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use caching_abstractions::CachingError;
use tokio::time::Instant;

use super::Execution;
use super::background::Fate;
use super::polling::poll_once;

/// What the one round trip at the start found (P5, P8).
pub(super) enum Claim {
    /// The key was free, and our marker stands there.
    Won(Ownership),
    /// What stands there instead.
    Taken(Bytes),
}

/// What is known of a marker of ours.
pub(super) struct Ownership {
    /// It stands there since after this moment.
    pub(super) since: Instant,
    /// Whether the store had the answer in the first poll: then it needed no other task for it.
    pub(super) was_given_at_once: bool,
}

impl Execution {
    /// Writes the marker if the key is free.
    ///
    /// A marker that may have been written without our knowing, because the store did not answer
    /// or because the caller went away meanwhile, is removed in the background (P14). So is one
    /// whose time was over before its answer came: another call may own the key by then.
    pub(super) async fn claim(&self) -> Result<Claim, CachingError> {
        let unsettled = Unsettled(Some(self));
        let marker = Bytes::copy_from_slice(&self.marker);
        let asked = Asked::now();
        let mut asking = self
            .store()
            .get_or_add(&self.key, marker, self.marker_options());
        let first = poll_once(&mut asking).await;
        let was_given_at_once = first.is_ready();
        let answer = match first {
            Poll::Ready(answer) => answer,
            Poll::Pending => asking.await,
        };
        match answer {
            Ok(Some(found)) if *found != self.marker => {
                unsettled.settled();
                Ok(Claim::Taken(found))
            }
            Ok(_) if asked.elapsed() >= self.in_progress_time() => Err(CachingError::unavailable(
                "the store answered only after the marker of the call had run out",
            )),
            // Written now, or by an attempt whose reply was lost.
            Ok(_) => {
                unsettled.settled();
                Ok(Claim::Won(Ownership {
                    since: asked.monotonic,
                    was_given_at_once,
                }))
            }
            Err(error) => {
                if !error.may_have_been_applied() {
                    unsettled.settled();
                }
                Err(error)
            }
        }
    }
}

/// When the store was asked, by both clocks: the monotonic one may stand still while the machine
/// sleeps, and the wall clock may be set back.
struct Asked {
    monotonic: Instant,
    wall: SystemTime,
}

impl Asked {
    fn now() -> Self {
        Self {
            monotonic: Instant::now(),
            wall: SystemTime::now(),
        }
    }

    /// How long ago that was, by the clock that says more.
    fn elapsed(&self) -> Duration {
        let wall = self.wall.elapsed().unwrap_or_default();
        self.monotonic.elapsed().max(wall)
    }
}

/// Removes the marker in the background unless the store's answer settled the question.
struct Unsettled<'a>(Option<&'a Execution>);

impl Unsettled<'_> {
    fn settled(mut self) {
        self.0 = None;
    }
}

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        if let Some(execution) = self.0 {
            execution.remove_marker_in_background(Fate::Unknown);
        }
    }
}
