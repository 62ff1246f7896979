//! Several locks at once (L14).

use std::collections::BTreeSet;
use std::future::Future;
use std::time::{Duration, SystemTime};

use futures_util::future::{join_all, select_all};

use super::distributed::DistributedLock;
use super::handle::LockHandle;
use crate::error::{CachingError, Result};
use crate::expiration::TimeToLive;
use crate::key::CacheKey;

impl DistributedLock {
    /// Acquires every lock in `resources`, or none of them if one is held (L14).
    ///
    /// - A resource that is named twice is one lock. They are asked for in the order of their
    ///   names, whatever order they are given in, so that two callers never hold what the other
    ///   needs first.
    /// - When it gives none, what it had acquired on the way is released.
    ///
    /// # Errors
    /// - `CACHING_VALIDATION_001` if no resource is given.
    /// - Those of [`try_acquire`](Self::try_acquire); then nothing stays acquired.
    /// - `CACHING_UNAVAILABLE_001` if the store was so slow that the first lease is over before
    ///   the last one is there.
    ///
    /// # Cancellation safety
    /// As [`try_acquire`](Self::try_acquire), for every lock.
    pub async fn try_acquire_all<I, T>(
        &self,
        resources: I,
        time_to_live: T,
    ) -> Result<Option<MultiLockHandle>>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
        T: TryInto<TimeToLive>,
        CachingError: From<T::Error>,
    {
        let keys = canonical(resources)?;
        let gathered = self.gather(keys, time_to_live.try_into()?).await?;
        Ok(gathered.ok())
    }

    /// As [`try_acquire_all`](Self::try_acquire_all), with a held lock as an error.
    ///
    /// # Errors
    /// `CACHING_CONFLICT_001` (`caching.lock.held`), naming the resource that is held, and those
    /// of [`try_acquire_all`](Self::try_acquire_all).
    ///
    /// # Cancellation safety
    /// As [`try_acquire_all`](Self::try_acquire_all).
    pub async fn acquire_all<I, T>(&self, resources: I, time_to_live: T) -> Result<MultiLockHandle>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
        T: TryInto<TimeToLive>,
        CachingError: From<T::Error>,
    {
        let keys = canonical(resources)?;
        let gathered = self.gather(keys, time_to_live.try_into()?).await?;
        gathered.map_err(|held| CachingError::lock_held(super::resource_of(&held)))
    }

    /// As [`acquire_all`](Self::acquire_all), waiting up to `wait` in all.
    ///
    /// - While it waits for one lock it keeps those that it has, and keeps them alive. Because
    ///   everybody asks in the same order, nobody waits in a circle.
    ///
    /// # Errors
    /// `CACHING_CONFLICT_001` (`caching.lock.wait_timeout`), naming the resource that was held to
    /// the end, and those of [`try_acquire_all`](Self::try_acquire_all).
    ///
    /// # Cancellation safety
    /// As [`acquire_within`](Self::acquire_within), for every lock.
    pub async fn acquire_all_within<I, T>(
        &self,
        resources: I,
        time_to_live: T,
        wait: Duration,
    ) -> Result<MultiLockHandle>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
        T: TryInto<TimeToLive>,
        CachingError: From<T::Error>,
    {
        let keys = canonical(resources)?;
        self.wait_for_all(keys, time_to_live.try_into()?, wait)
            .await
    }

    /// Every lock, or the key of the one that is held.
    async fn gather(
        &self,
        keys: BTreeSet<CacheKey>,
        time_to_live: TimeToLive,
    ) -> Result<Result<MultiLockHandle, CacheKey>> {
        let mut locks = MultiLockHandle(Vec::with_capacity(keys.len()));
        for key in keys {
            match self.try_once(&key, time_to_live).await? {
                Some(lock) => locks.0.push(lock),
                None => {
                    locks.give_back().await;
                    return Ok(Err(key));
                }
            }
        }
        locks.if_all_held().map(Ok)
    }

    async fn wait_for_all(
        &self,
        keys: BTreeSet<CacheKey>,
        time_to_live: TimeToLive,
        wait: Duration,
    ) -> Result<MultiLockHandle> {
        let began = self.clock().monotonic();
        let ceiling = wait.saturating_add(time_to_live.as_duration());
        let mut locks = MultiLockHandle(Vec::with_capacity(keys.len()));
        for key in keys {
            if let Some(last) = locks.0.last() {
                last.keep_alive_up_to(ceiling);
            }
            let waited = self.clock().monotonic().saturating_sub(began);
            let lock = self
                .wait_within(&key, time_to_live, wait.saturating_sub(waited))
                .await?;
            locks.0.push(lock);
        }
        // Whoever waited gets leases as fresh as whoever did not have to.
        join_all(locks.0.iter().map(LockHandle::restart)).await;
        locks.if_all_held()
    }
}

/// Each resource's key once, in the order in which they are asked for.
fn canonical<I>(resources: I) -> Result<BTreeSet<CacheKey>>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let keys = resources
        .into_iter()
        .map(|resource| super::key_of(resource.as_ref()))
        .collect::<Result<BTreeSet<_>>>()?;
    if keys.is_empty() {
        return Err(CachingError::invalid_key(
            "no resource is named; name at least one to lock",
        ));
    }
    Ok(keys)
}

/// Several locks that were acquired together; given back together by [`release`](Self::release)
/// or by dropping it.
///
/// It is as good as its weakest member: when one is lost, the whole is.
#[derive(Debug)]
#[must_use = "dropping the handle releases the locks"]
pub struct MultiLockHandle(Vec<LockHandle>);

impl MultiLockHandle {
    /// The single locks, sorted by resource, each once.
    pub fn locks(&self) -> &[LockHandle] {
        &self.0
    }

    /// The lock on `resource`, for example for its fencing number.
    pub fn get(&self, resource: &str) -> Option<&LockHandle> {
        self.0.iter().find(|lock| lock.resource() == resource)
    }

    /// When the first of the leases ends.
    pub fn expires_at(&self) -> SystemTime {
        let ends = self.0.iter().map(LockHandle::expires_at);
        ends.min().unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// How much longer all of them can be relied on; see [`LockHandle::remaining`].
    pub fn remaining(&self) -> Duration {
        let remaining = self.0.iter().map(LockHandle::remaining);
        remaining.min().unwrap_or_default()
    }

    /// Whether all of them can be relied on now.
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Gives every lock back: `true` if every single one was still ours; see
    /// [`LockHandle::release`].
    ///
    /// # Errors
    /// `CACHING_UNAVAILABLE_001` if one could not be released; all were tried. Call again, or drop
    /// the handle: then those that were released already make the answer `false`.
    ///
    /// # Cancellation safety
    /// As [`LockHandle::release`].
    pub async fn release(&self) -> Result<bool> {
        let answers = join_all(self.0.iter().map(LockHandle::release)).await;
        let mut all = true;
        for answer in answers {
            all &= answer?;
        }
        Ok(all)
    }

    /// Renews every lease; see [`LockHandle::keep_alive`].
    pub fn keep_alive(&self) {
        self.0.iter().for_each(LockHandle::keep_alive);
    }

    /// Renews every lease up to `ceiling`; see [`LockHandle::keep_alive_up_to`].
    pub fn keep_alive_up_to(&self, ceiling: Duration) {
        for lock in &self.0 {
            lock.keep_alive_up_to(ceiling);
        }
    }

    /// Completes when the first of them is lost; see [`LockHandle::lost`].
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<'_> {
        let first = select_all(self.0.iter().map(|lock| Box::pin(lock.lost())));
        async {
            first.await;
        }
    }

    /// Best effort: what fails is tried again when the handles are dropped.
    async fn give_back(&self) {
        let _ = self.release().await;
    }

    fn if_all_held(self) -> Result<Self> {
        if self.is_held() {
            return Ok(self);
        }
        Err(CachingError::unavailable(
            "the first lock was over before the last one was there; use a longer time to live",
        ))
    }
}
