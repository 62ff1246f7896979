//! Waiting for a lock (L11): woken by the store's hints, and by a poll that needs none.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use tokio::time::{Instant, sleep};
use tracing::debug;

use super::backoff::{Backoff, between};
use super::distributed::DistributedLock;
use super::handle::LockHandle;
use super::queue::Place;
use crate::error::Result;
use crate::expiration::TimeToLive;
use crate::key::CacheKey;
use crate::store::WakeHints;

/// The poll asks at most once a second per process and resource.
const SHORTEST_POLL: Duration = Duration::from_secs(1);
const LONGEST_POLL: Duration = Duration::from_millis(1500);
/// How long to pause after a hint that led to nothing, at first and at most: many processes wake
/// for one release, and a broken store may hint all the time.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// Waits at most `wait` for the lock on `key`.
pub(super) async fn wait_within(
    lock: &DistributedLock,
    key: &CacheKey,
    time_to_live: TimeToLive,
    wait: Duration,
) -> Result<LockHandle> {
    let place = lock.queues().join(key);
    let deadline = Instant::now().checked_add(wait);
    let waiting = wait_for_turn(lock, &place, key, time_to_live, deadline);
    match tokio::time::timeout(wait, waiting).await {
        Ok(Some(answer)) => answer,
        Ok(None) | Err(_) => Err(place.time_is_up(super::resource_of(key), wait)),
    }
}

/// The lock or an error; none if the turn comes only when the time is up.
async fn wait_for_turn(
    lock: &DistributedLock,
    place: &Place<'_>,
    key: &CacheKey,
    time_to_live: TimeToLive,
    deadline: Option<Instant>,
) -> Option<Result<LockHandle>> {
    let mut hints = place.turn().await;
    // Waiters that give up together must not all ask once more on their way out.
    if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
        return None;
    }
    let mut pace = Pace::new();
    loop {
        let answer = lock.attempt(key, time_to_live).await;
        place.heard(&answer);
        if let Some(answer) = answer.transpose() {
            return Some(answer);
        }
        if hints.is_none() {
            *hints = watch(lock, key).await;
            if hints.is_some() {
                // What was released before the watch began gave no hint: look again first.
                continue;
            }
        }
        pace.rest(&mut hints).await;
    }
}

/// The store's hints; none where they cannot be had at present, and then the poll must do.
async fn watch(lock: &DistributedLock, key: &CacheKey) -> Option<WakeHints> {
    match lock.store().watch(key).await {
        Ok(hints) => Some(hints),
        Err(error) => {
            debug!(%key, %error, "no wake-up hints for a lock; polling");
            None
        }
    }
}

/// How quickly one waiter follows hints.
struct Pace {
    backoff: Backoff,
    /// Whether the last rest ended with a hint, which led to nothing.
    misled: bool,
}

impl Pace {
    fn new() -> Self {
        Self {
            backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
            misled: false,
        }
    }

    /// Returns at a hint or when it is time to poll. A stream that ended is dropped, and replaced
    /// after the poll.
    async fn rest(&mut self, hints: &mut Option<WakeHints>) {
        let mut poll = pin!(sleep(between(SHORTEST_POLL, LONGEST_POLL)));
        if let Some(stream) = hints {
            match select(stream.next(), &mut poll).await {
                Either::Left((Some(()), _)) => return self.follow().await,
                Either::Left((None, _)) => *hints = None,
                Either::Right(_) => return self.polled(),
            }
        }
        poll.await;
        self.polled();
    }

    /// Follows the first hint at once and the next ones ever more slowly.
    async fn follow(&mut self) {
        if self.misled {
            sleep(self.backoff.pause()).await;
        }
        self.misled = true;
    }

    fn polled(&mut self) {
        self.misled = false;
        self.backoff.reset();
    }
}
