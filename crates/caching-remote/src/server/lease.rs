//! Waiting for a lease (L9, L11).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caching_abstractions::{
    CacheKey, CacheStore, CachingError, ErrorCode, KeyPrefix, LeaseToken, Result, TimeToLive,
    WakeHints,
};
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::task::TaskTracker;

use super::service::Service;
use super::work::to_its_end;
use crate::proto::{WaitForLeaseRequest, WaitForLeaseResponse};
use crate::wire;

/// The poll asks at most once a second per key.
const SHORTEST_POLL: Duration = Duration::from_secs(1);
const LONGEST_POLL: Duration = Duration::from_millis(1500);
/// How long to pause after a hint that led to nothing, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);
/// How long before the call's deadline the wait ends, so that its answer arrives in time: a tenth
/// of what is left, within these.
const SHORTEST_MARGIN: Duration = Duration::from_millis(5);
const LONGEST_MARGIN: Duration = Duration::from_millis(250);
/// How long a token is tried to be released that nobody waits for any more.
const LONGEST_CLEANUP: Duration = Duration::from_secs(60);

/// Leases the key as soon as it is free.
///
/// # Cancellation safety
/// If the future is dropped, a lease that it may have taken is released in the background.
pub(super) async fn wait_for_lease(
    service: &Service,
    request: WaitForLeaseRequest,
    deadline: Option<Instant>,
) -> Result<WaitForLeaseResponse> {
    let wait = Duration::from_millis(request.wait_milliseconds);
    let claim = Claim {
        store: Arc::clone(&service.store),
        running: service.shared.running.clone(),
        key: wire::key(request.key)?,
        token: wire::token(request.token)?,
        time_to_live: wire::time_to_live(request.time_to_live_milliseconds)?,
    };
    let mut fencing = claim.attempt().await?;
    if fencing.is_none() && !wait.is_zero() {
        let name = (service.prefix.clone(), claim.key.clone());
        let place = service.shared.queues.join(name);
        fencing = tokio::select! {
            fencing = in_turn(&claim, &place) => fencing?,
            () = until(end_of(wait, deadline)) => None,
            () = service.shared.closing.cancelled() => {
                let error = CachingError::unavailable("the server shuts down; ask another one");
                return Err(error.certainly_not_sent());
            }
        };
    }
    Ok(WaitForLeaseResponse { fencing })
}

/// When the wait is over; none if it is longer than the clock can say.
fn end_of(wait: Duration, deadline: Option<Instant>) -> Option<Instant> {
    let now = Instant::now();
    let latest = deadline.map(|deadline| {
        let margin = deadline.saturating_duration_since(now) / 10;
        let end = deadline.checked_sub(margin.clamp(SHORTEST_MARGIN, LONGEST_MARGIN));
        end.unwrap_or(now)
    });
    match (now.checked_add(wait), latest) {
        (Some(end), Some(latest)) => Some(end.min(latest)),
        (end, latest) => end.or(latest),
    }
}

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => pending().await,
    }
}

/// Asks the store whenever the key may be free, once it is this waiter's turn: only the first of a
/// queue asks.
async fn in_turn(claim: &Claim, place: &Place<'_>) -> Result<Option<u64>> {
    let _turn = place.turn().await;
    let mut hints: Option<WakeHints> = None;
    let mut pause = FIRST_PAUSE;
    loop {
        if hints.is_none() {
            // Without hints the poll must do.
            hints = claim.store.watch(&claim.key).await.ok();
        }
        if let Some(fencing) = claim.attempt().await? {
            return Ok(Some(fencing));
        }
        let poll = rand::random_range(SHORTEST_POLL..LONGEST_POLL);
        match timeout(poll, next(&mut hints)).await {
            Ok(Some(())) => {
                sleep(rand::random_range(Duration::ZERO..pause)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            // The hints have ended: watch anew, but not without a pause.
            Ok(None) => {
                hints = None;
                sleep(SHORTEST_POLL).await;
            }
            Err(_) => pause = FIRST_PAUSE,
        }
    }
}

async fn next(hints: &mut Option<WakeHints>) -> Option<()> {
    match hints {
        Some(hints) => hints.next().await,
        None => pending().await,
    }
}

/// What a call asks for.
#[derive(Clone)]
struct Claim {
    store: Arc<dyn CacheStore>,
    running: TaskTracker,
    key: CacheKey,
    token: LeaseToken,
    time_to_live: TimeToLive,
}

impl Claim {
    /// Asks once. If nobody waits for the answer any more, a lease is given back.
    async fn attempt(&self) -> Result<Option<u64>> {
        let mut asking = Asking {
            claim: self,
            is_left: Arc::new(AtomicBool::new(false)),
            is_over: false,
        };
        let (claim, is_left) = (self.clone(), Arc::clone(&asking.is_left));
        let work = async move {
            let leased = claim
                .store
                .try_lease(&claim.key, &claim.token, claim.time_to_live);
            let leased = leased.await;
            // The client may leave before this looks, and then this releases; or after it, and
            // then `Asking` does, which comes later than the lease.
            if is_left.load(Ordering::SeqCst) {
                claim.give_back().await;
            }
            leased
        };
        let answer = to_its_end(&self.running, work).await;
        // A lease of unknown outcome is given back as well: the client asks with another token.
        asking.is_over = !matches!(&answer, Err(error) if error.may_have_been_applied());
        answer.map_err(|error| error.with_operation("wait_for_lease"))
    }

    /// Releases the token, as long as it may stand there.
    async fn give_back(&self) {
        let limit = self.time_to_live.as_duration().min(LONGEST_CLEANUP);
        let release = async {
            while let Err(error) = self.store.release(&self.key, &self.token).await {
                if error.code() != ErrorCode::StoreUnavailable {
                    tracing::warn!(key = %self.key, %error, "an abandoned lease runs out");
                    return;
                }
                sleep(SHORTEST_POLL).await;
            }
        };
        // Beyond its time to live nothing stands there.
        let _ = timeout(limit, release).await;
    }
}

/// An attempt whose answer somebody waits for.
struct Asking<'a> {
    claim: &'a Claim,
    is_left: Arc<AtomicBool>,
    is_over: bool,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.is_left.store(true, Ordering::SeqCst);
            let claim = self.claim.clone();
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                let release = async move { claim.give_back().await };
                self.claim.running.spawn_on(release, &runtime);
            }
        }
    }
}

type Name = (Option<KeyPrefix>, CacheKey);

/// Who waits for which key. A queue exists while somebody is in it.
#[derive(Debug, Default)]
pub(super) struct Queues(Mutex<HashMap<Name, Queue>>);

#[derive(Debug)]
struct Queue {
    /// Fair, so that waiters get their turns in the order they came.
    turn: Arc<tokio::sync::Mutex<()>>,
    places: usize,
}

impl Queues {
    fn join(&self, name: Name) -> Place<'_> {
        let mut queues = self.0.lock();
        let queue = queues.entry(name.clone()).or_insert_with(|| Queue {
            turn: Arc::default(),
            places: 0,
        });
        queue.places += 1;
        Place {
            queues: self,
            name,
            turn: Arc::clone(&queue.turn),
        }
    }
}

/// A place in a queue, given back when it is dropped.
struct Place<'a> {
    queues: &'a Queues,
    name: Name,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Place<'_> {
    async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut queue) = self.queues.0.lock().entry(self.name.clone()) {
            queue.get_mut().places -= 1;
            if queue.get().places == 0 {
                queue.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn l11_the_wait_ends_before_the_deadline() {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        assert_eq!(end_of(seconds(5), None), Some(now + seconds(5)));
        let end = end_of(seconds(5), Some(now + seconds(60)));
        assert_eq!(end, Some(now + seconds(5)));
        let end = end_of(seconds(60), Some(now + seconds(5))).unwrap();
        assert_eq!(now + seconds(5) - end, LONGEST_MARGIN);
        let end = end_of(Duration::MAX, Some(now + Duration::from_millis(20))).unwrap();
        assert_eq!(end, now + Duration::from_millis(15));
        assert_eq!(end_of(Duration::MAX, None), None);
    }

    #[tokio::test]
    async fn l11_a_queue_is_gone_with_its_last_place() {
        let queues = Queues::default();
        let name = || (None, CacheKey::new("a").unwrap());
        let (first, second) = (queues.join(name()), queues.join(name()));
        let turn = first.turn().await;
        assert!(second.turn.try_lock().is_err());
        drop(turn);
        drop(first);
        assert_eq!(queues.0.lock().len(), 1);
        drop(second);
        assert!(queues.0.lock().is_empty());
    }
}
