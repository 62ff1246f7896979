use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tracing::warn;

use super::grant::Grant;
use super::renewal;
use crate::error::Result;
use crate::expiration::hours;
use crate::store::LeaseToken;

/// A lock that was acquired; it is given back by [`release`](Self::release) or by dropping it.
///
/// - Every estimate counts from before the request was sent, so it ends before the store's own
///   (L4).
/// - Dropping it without `release` releases in the background, best effort (L6): on the current
///   runtime, else on the one it was acquired on. Without a running runtime the lease just runs
///   out. Dropping never panics.
/// - It is not renewed unless [`keep_alive`](Self::keep_alive) says so (L7).
///
/// A holder that may be slower than its lease hands [`fencing`](Self::fencing) to whatever it
/// writes to; see [`DistributedLock`](super::DistributedLock#fencing).
#[must_use = "dropping the handle releases the lock"]
pub struct LockHandle {
    grant: Arc<Grant>,
    renewal: Mutex<Option<AbortHandle>>,
}

impl LockHandle {
    pub(super) fn new(grant: Grant) -> Self {
        Self {
            grant: Arc::new(grant),
            renewal: Mutex::new(None),
        }
    }

    /// What is locked, as it was given to the acquisition.
    pub fn resource(&self) -> &str {
        super::resource_of(&self.grant.key)
    }

    /// The token of this grant, which stands in the store while the lock is held (L3).
    pub fn token(&self) -> &LeaseToken {
        &self.grant.token
    }

    /// The fencing number: larger than that of every earlier holder of the same resource (L13).
    pub fn fencing(&self) -> u64 {
        self.grant.fencing
    }

    /// When the acquiring request was about to be sent, by the wall clock.
    pub fn acquired_at(&self) -> SystemTime {
        self.grant.acquired.wall_time()
    }

    /// When the lease ends by the wall clock, counted from before the request (the last renewal's,
    /// if there was one).
    pub fn expires_at(&self) -> SystemTime {
        self.grant.lease().expires_at()
    }

    /// How much longer the lock can be relied on.
    ///
    /// - It ends a little before the lease does (one thousandth of the time to live and 2 ms, at
    ///   most a quarter), because clocks differ and timers come late.
    /// - Zero once the lock is lost, once `release` was called, and once either the monotonic or
    ///   the wall clock says that the lease is over.
    pub fn remaining(&self) -> Duration {
        self.grant.remaining()
    }

    /// Whether the lock can be relied on now: [`remaining`](Self::remaining) is more than zero.
    ///
    /// No request is sent. Only the store knows whether the token still stands there; a resource
    /// that checks [`fencing`](Self::fencing) needs to believe nobody.
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Gives the lock back: compares the token and deletes it.
    ///
    /// - The first successful call gives `true`. After that, or when the lease has run out or
    ///   belongs to somebody else, `false` (L5). Another's lock is never deleted.
    /// - Renewal stops, and [`is_held`](Self::is_held) turns `false`, when the future is first
    ///   polled, not when the answer comes.
    /// - Calls at the same time are one after the other: one gets `true`.
    ///
    /// # Errors
    /// `CACHING_UNAVAILABLE_001` if the store cannot be reached. Call again, or drop the handle to
    /// leave it to the background. When the failed call was applied all the same, the next one
    /// gives `false`.
    ///
    /// # Cancellation safety
    /// After dropping the future, `release` can be called again, or the handle be dropped.
    pub async fn release(&self) -> Result<bool> {
        self.grant.begin_release();
        self.stop_keeping_alive();
        self.grant.release().await
    }

    /// Renews the lease at a third of its time to live, for up to a day in all.
    ///
    /// The same as [`keep_alive_up_to`](Self::keep_alive_up_to) with a ceiling of 24 hours.
    pub fn keep_alive(&self) {
        self.keep_alive_up_to(hours(24));
    }

    /// Renews the lease at a third of its time to live, until the lock was held for `ceiling`,
    /// counted from the acquisition (L12).
    ///
    /// - The lease never ends after the ceiling, so a holder that hangs does not keep it for ever.
    /// - Renewing never brings back a lease that is gone. If the token does not stand there any
    ///   more, [`lost`](Self::lost) completes at once. A store that cannot be reached is asked
    ///   again until the lease is over.
    /// - One task per handle renews. It stops when `release` is called, when the handle is dropped
    ///   and when the lock is lost. A second call replaces the ceiling.
    /// - After `release` or a loss it does nothing. Without a tokio runtime, here and at the
    ///   acquisition, it warns and renews nothing.
    pub fn keep_alive_up_to(&self, ceiling: Duration) {
        let runtime = Handle::try_current().ok();
        let Some(runtime) = runtime.as_ref().or(self.grant.runtime.as_ref()) else {
            warn!(key = %self.grant.key, "no tokio runtime; the lock is not renewed");
            return;
        };
        let mut renewal = self.renewal.lock();
        // Looked at under the guard, so that a release at the same time finds the task to stop.
        if !self.grant.is_kept() {
            return;
        }
        let task = runtime.spawn(renewal::keep_alive(Arc::clone(&self.grant), ceiling));
        if let Some(former) = renewal.replace(task.abort_handle()) {
            former.abort();
        }
    }

    /// Completes when the lock is lost: the lease ended, or the store said that the token is gone.
    ///
    /// - Without renewal it completes at the local end of the lease; with renewal when that fails
    ///   for good. Either way before the store can give the lock to somebody else, as far as the
    ///   local clock can tell; only a token that was taken out early is noticed later, at the next
    ///   renewal.
    /// - Once it has completed, [`is_held`](Self::is_held) is `false` and every later call
    ///   completes at once.
    /// - **After a successful release it never completes**, so race it against the work instead of
    ///   waiting for it alone.
    ///
    /// It borrows the handle: whoever waits for a loss keeps the lock. Needs a tokio runtime with
    /// a timer.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<'_> {
        self.grant.lost()
    }

    /// Ends the renewal, and leaves a lease that has just begun.
    pub(super) async fn restart(&self) {
        self.stop_keeping_alive();
        renewal::restart(&self.grant).await;
    }

    /// Whether there was a renewal to stop.
    pub(super) fn stop_keeping_alive(&self) -> bool {
        let task = self.renewal.lock().take();
        task.is_some_and(|task| {
            task.abort();
            true
        })
    }
}

impl Drop for LockHandle {
    fn drop(&mut self) {
        let was_renewed = self.stop_keeping_alive();
        self.grant.abandon(was_renewed);
    }
}

impl fmt::Debug for LockHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockHandle")
            .field("resource", &self.resource())
            .field("fencing", &self.fencing())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
