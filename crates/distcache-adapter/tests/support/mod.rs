//! A store whose entries expire by a clock that is moved by hand.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, CachingError, CachingSettings, Clock,
    Expiration, LeaseToken, ManualClock, Result, TimeToLive, WakeHints,
};
use futures_util::stream::{self, BoxStream, StreamExt};
use parking_lot::Mutex;

#[derive(Debug)]
pub(crate) struct ClockStore {
    entries: Mutex<HashMap<CacheKey, Entry>>,
    clock: ManualClock,
    is_down: AtomicBool,
    waits: AtomicBool,
}

#[derive(Clone, Debug)]
struct Entry {
    value: Bytes,
    over: Duration,
    sliding: Option<Duration>,
}

impl ClockStore {
    pub(crate) fn new(clock: ManualClock) -> Self {
        Self {
            entries: Mutex::default(),
            clock,
            is_down: AtomicBool::new(false),
            waits: AtomicBool::new(false),
        }
    }

    pub(crate) fn go_down(&self) {
        self.is_down.store(true, Ordering::SeqCst);
    }

    /// From now on no operation answers at once.
    pub(crate) fn start_waiting(&self) {
        self.waits.store(true, Ordering::SeqCst);
    }

    async fn called(&self) -> Result<()> {
        if self.waits.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(CachingError::unavailable("the test store is down")),
            false => Ok(()),
        }
    }
}

/// What the adapter has no business with.
fn unexpected<T>() -> Result<T> {
    Err(CachingError::internal(
        "the adapter asks for get, set and remove only",
    ))
}

#[async_trait]
impl CacheStore for ClockStore {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        self.called().await?;
        let now = self.clock.monotonic();
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(key).filter(|entry| entry.over > now) else {
            return Ok(None);
        };
        if let Some(period) = entry.sliding {
            entry.over = now + period;
        }
        Ok(Some(entry.value.clone()))
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        self.called().await?;
        let (life, sliding) = match options.expiration() {
            Expiration::StoreDefault => (CachingSettings::DEFAULT_TIME_TO_LIVE, None),
            Expiration::TimeToLive(life) => (life.as_duration(), None),
            Expiration::Sliding(period) => (period.as_duration(), Some(period.as_duration())),
        };
        let over = self.clock.monotonic() + life;
        let entry = Entry {
            value,
            over,
            sliding,
        };
        self.entries.lock().insert(key.clone(), entry);
        Ok(())
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        self.called().await?;
        Ok(self.entries.lock().remove(key).is_some())
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        let entries = self.entries.lock();
        let over = entries.get(key).map(|entry| entry.over);
        let left = over.and_then(|over| over.checked_sub(self.clock.monotonic()));
        Ok(left.filter(|left| !left.is_zero()))
    }

    async fn get_many(&self, _: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        unexpected()
    }

    async fn set_many(&self, _: &[CacheItem]) -> Result<()> {
        unexpected()
    }

    async fn try_add(&self, _: &CacheKey, _: Bytes, _: CacheEntryOptions) -> Result<bool> {
        unexpected()
    }

    async fn get_or_add(
        &self,
        _: &CacheKey,
        _: Bytes,
        _: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        unexpected()
    }

    async fn try_replace(
        &self,
        _: &CacheKey,
        _: &[u8],
        _: Bytes,
        _: CacheEntryOptions,
    ) -> Result<bool> {
        unexpected()
    }

    async fn try_remove(&self, _: &CacheKey, _: &[u8]) -> Result<bool> {
        unexpected()
    }

    async fn try_extend(&self, _: &CacheKey, _: &[u8], _: TimeToLive) -> Result<bool> {
        unexpected()
    }

    async fn try_lease(&self, _: &CacheKey, _: &LeaseToken, _: TimeToLive) -> Result<Option<u64>> {
        unexpected()
    }

    async fn try_relay(
        &self,
        _: &CacheKey,
        _: &LeaseToken,
        _: &LeaseToken,
        _: TimeToLive,
    ) -> Result<Option<u64>> {
        unexpected()
    }

    async fn release(&self, _: &CacheKey, _: &LeaseToken) -> Result<bool> {
        unexpected()
    }

    async fn watch(&self, _: &CacheKey) -> Result<WakeHints> {
        unexpected()
    }

    async fn remove_many(&self, _: &[CacheKey]) -> Result<Vec<bool>> {
        unexpected()
    }

    async fn increment(&self, _: &CacheKey, _: i64, _: CacheEntryOptions) -> Result<i64> {
        unexpected()
    }

    fn keys(&self, _: &str) -> BoxStream<'static, Result<CacheKey>> {
        stream::once(async { unexpected() }).boxed()
    }

    async fn ping(&self) -> Result<()> {
        unexpected()
    }
}
