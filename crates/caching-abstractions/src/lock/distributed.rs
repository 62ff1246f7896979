use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::attempt;
use super::grant::Asked;
use super::handle::LockHandle;
use super::lease::Moment;
use super::observe;
use super::pending::Pending;
use super::queue::Queues;
use super::waiting;
use crate::clock::{Clock, SystemClock};
use crate::error::{CachingError, Result};
use crate::expiration::TimeToLive;
use crate::key::CacheKey;
use crate::store::{CacheStore, LeaseToken};

/// A lease lock on a [`CacheStore`]: at most one holder per resource among all clients of the
/// store.
///
/// - A lock is a lease: it ends by itself after its time to live, so a holder that dies blocks
///   nobody for longer (L7). It is not reentrant.
/// - Not acquired, the store is away, waited in vain, and lost are four different answers: none or
///   `caching.lock.held`, `CACHING_UNAVAILABLE_001`, `caching.lock.wait_timeout`, and
///   [`LockHandle::lost`] (L8).
/// - The stored value under `lock:<resource>` is the bare token, so other programs that use the
///   same convention exclude and are excluded by it (L3).
/// - Cloning is cheap. Clones share their queues of waiters.
///
/// ```no_run
/// use caching_abstractions::{CachingError, DistributedLock, minutes};
///
/// # async fn work() {}
/// # async fn report(locks: DistributedLock) -> Result<bool, CachingError> {
/// let Some(lock) = locks.try_acquire("report:daily", minutes(5)).await? else {
///     return Ok(false); // another instance holds it
/// };
/// work().await;
/// let in_time = lock.release().await.unwrap_or(false);
/// # Ok(in_time)
/// # }
/// ```
///
/// # Fencing
///
/// A lease cannot stop a holder that sleeps through its own end and then goes on writing. Where
/// that would do harm, the resource itself refuses the late writer: it keeps the largest
/// [fencing number](LockHandle::fencing) it has seen and takes nothing from an older one (L13).
/// The store gives every holder of a resource a larger number than the one before it (S6).
///
/// ```
/// # use caching_abstractions::LockHandle;
/// #[derive(Default)]
/// struct Ledger {
///     newest: u64,
///     entries: Vec<&'static str>,
/// }
///
/// impl Ledger {
///     /// In a database: `UPDATE … SET newest = $1 … WHERE newest <= $1`, in one statement.
///     fn write(&mut self, fencing: u64, entry: &'static str) -> Result<(), &'static str> {
///         if fencing < self.newest {
///             return Err("a later holder has written already");
///         }
///         self.newest = fencing;
///         self.entries.push(entry);
///         Ok(())
///     }
/// }
///
/// # fn with_a_lock(ledger: &mut Ledger, lock: &LockHandle) {
/// let _ = ledger.write(lock.fencing(), "paid"); // this is how a holder writes
/// # }
/// # let mut ledger = Ledger::default();
/// let (first_holder, second_holder) = (7, 9);
/// assert!(ledger.write(first_holder, "opened").is_ok());
/// assert!(ledger.write(second_holder, "paid").is_ok());
/// assert!(ledger.write(first_holder, "paid again").is_err()); // it woke too late
/// assert_eq!(ledger.entries, ["opened", "paid"]);
/// ```
#[derive(Clone, Debug)]
pub struct DistributedLock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn CacheStore>,
    clock: Arc<dyn Clock>,
    queues: Queues,
    pending: Pending,
}

impl DistributedLock {
    /// A lock on `store`.
    pub fn new(store: Arc<dyn CacheStore>) -> Self {
        Self::with_clock(store, Arc::new(SystemClock::new()))
    }

    /// A lock on `store` whose leases are measured by `clock`.
    ///
    /// Waiting and renewing still sleep by tokio's time.
    pub fn with_clock(store: Arc<dyn CacheStore>, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            store,
            clock,
            queues: Queues::default(),
            pending: Pending::default(),
        }))
    }

    /// The store beneath.
    pub fn store(&self) -> &Arc<dyn CacheStore> {
        &self.0.store
    }

    /// Acquires the lock on `resource` for `time_to_live`, or gives none if it is held (L1).
    ///
    /// - One round trip, never repeated here.
    /// - A grant that arrives only after its own end is given back and counts as an unavailable
    ///   store.
    ///
    /// # Errors
    /// - `CACHING_VALIDATION_001` if `lock:<resource>` is no key.
    /// - `CACHING_VALIDATION_002` if the time to live is out of range (E3).
    /// - Those of [`CacheStore`]. An unreachable store is never "not acquired" (L8).
    ///
    /// # Cancellation safety
    /// If the request may have reached the store, its token is released in the background. The
    /// same after an error that leaves it unknown (L9).
    pub async fn try_acquire<T>(
        &self,
        resource: &str,
        time_to_live: T,
    ) -> Result<Option<LockHandle>>
    where
        T: TryInto<TimeToLive>,
        CachingError: From<T::Error>,
    {
        let time_to_live = time_to_live.try_into()?;
        self.try_once(&super::key_of(resource)?, time_to_live).await
    }

    /// As [`try_acquire`](Self::try_acquire), with a held lock as an error (L2).
    ///
    /// # Errors
    /// `CACHING_CONFLICT_001` (`caching.lock.held`) if it is held, and those of
    /// [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancellation safety
    /// As [`try_acquire`](Self::try_acquire).
    pub async fn acquire<T>(&self, resource: &str, time_to_live: T) -> Result<LockHandle>
    where
        T: TryInto<TimeToLive>,
        CachingError: From<T::Error>,
    {
        let acquired = self.try_acquire(resource, time_to_live).await?;
        acquired.ok_or_else(|| CachingError::lock_held(resource))
    }

    /// As [`acquire`](Self::acquire), waiting up to `wait` for a held lock (L11).
    ///
    /// - Waiters for one resource on this lock and its clones are served in the order they came;
    ///   only the first of them asks the store. [`try_acquire`](Self::try_acquire) does not queue.
    /// - The first waiter is woken by [`CacheStore::watch`]; without a hint it asks again after 1
    ///   to 1.5 s.
    /// - The lease counts from the request that was granted, not from the call.
    /// - A `wait` of zero tries once.
    ///
    /// # Errors
    /// - `CACHING_CONFLICT_001` (`caching.lock.wait_timeout`) if it was held all the time.
    /// - Those of [`try_acquire`](Self::try_acquire). An error of the store ends the wait; so does
    ///   a store that has not answered by the end of it.
    ///
    /// # Cancellation safety
    /// At any point. A place in the queue is given up; otherwise as
    /// [`try_acquire`](Self::try_acquire).
    pub async fn acquire_within<T>(
        &self,
        resource: &str,
        time_to_live: T,
        wait: Duration,
    ) -> Result<LockHandle>
    where
        T: TryInto<TimeToLive>,
        CachingError: From<T::Error>,
    {
        let time_to_live = time_to_live.try_into()?;
        self.wait_within(&super::key_of(resource)?, time_to_live, wait)
            .await
    }

    /// Runs `work` under the lock and releases it in every case (L10).
    ///
    /// - Gives the work's own output. A release that fails or comes late is logged and counted,
    ///   and never replaces it.
    /// - If the work panics or the future is dropped, the lock is released in the background.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire); then the work has not run.
    ///
    /// # Cancellation safety
    /// Dropping the future drops the work where it stands, and releases.
    pub async fn with_lock<T, F, W>(
        &self,
        resource: &str,
        time_to_live: T,
        work: F,
    ) -> Result<W::Output>
    where
        T: TryInto<TimeToLive>,
        CachingError: From<T::Error>,
        F: FnOnce() -> W,
        W: Future,
    {
        let lock = self.acquire(resource, time_to_live).await?;
        let output = work().await;
        // What went wrong is logged and counted there; dropping the handle tries again.
        let _ = lock.release().await;
        Ok(output)
    }

    /// Completes as soon as this lock and its clones release nothing in the background: neither
    /// what a cancelled acquisition may have left (L9) nor a handle that was dropped (L6).
    ///
    /// - For a program that is about to end: what is under way then just runs out.
    /// - While the store is away it completes only when the last of those leases has run out, so
    ///   put a limit around it.
    ///
    /// # Cancellation safety
    /// At any point; what is under way goes on.
    pub async fn settled(&self) {
        self.0.pending.none().await;
    }

    pub(super) async fn try_once(
        &self,
        key: &CacheKey,
        time_to_live: TimeToLive,
    ) -> Result<Option<LockHandle>> {
        let before = Moment::now(&*self.0.clock);
        let answer = self.attempt_at(before, key, time_to_live).await;
        let outcome = answer.as_ref().map(Option::as_ref);
        observe::acquisition(key.as_str(), self.since(before.monotonic()), outcome);
        answer
    }

    pub(super) async fn wait_within(
        &self,
        key: &CacheKey,
        time_to_live: TimeToLive,
        wait: Duration,
    ) -> Result<LockHandle> {
        let began = self.0.clock.monotonic();
        let answer = if wait.is_zero() {
            let answer = self.attempt(key, time_to_live).await;
            let timeout = || CachingError::lock_wait_timeout(super::resource_of(key), wait);
            answer.and_then(|handle| handle.ok_or_else(timeout))
        } else {
            waiting::wait_within(self, key, time_to_live, wait).await
        };
        let outcome = answer.as_ref().map(Some);
        observe::acquisition(key.as_str(), self.since(began), outcome);
        answer
    }

    /// One request.
    pub(super) async fn attempt(
        &self,
        key: &CacheKey,
        time_to_live: TimeToLive,
    ) -> Result<Option<LockHandle>> {
        let now = Moment::now(&*self.0.clock);
        self.attempt_at(now, key, time_to_live).await
    }

    /// One request, sent `now`.
    async fn attempt_at(
        &self,
        now: Moment,
        key: &CacheKey,
        time_to_live: TimeToLive,
    ) -> Result<Option<LockHandle>> {
        let asked = Asked {
            store: Arc::clone(&self.0.store),
            clock: Arc::clone(&self.0.clock),
            key: key.clone(),
            token: LeaseToken::generate(),
            time_to_live,
            runtime: Handle::try_current().ok(),
            pending: self.0.pending.clone(),
            before: now,
        };
        let grant = attempt::attempt(asked).await?;
        Ok(grant.map(LockHandle::new))
    }

    pub(super) fn queues(&self) -> &Queues {
        &self.0.queues
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    fn since(&self, began: Duration) -> Duration {
        self.0.clock.monotonic().saturating_sub(began)
    }
}
