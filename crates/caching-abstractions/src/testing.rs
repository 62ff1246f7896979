//! A store for the unit tests of what stands on a store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, CachingError, LeaseToken, Result,
    TimeToLive, WakeHints,
};

/// A map in which nothing expires, that counts its calls and can be made to fail.
#[derive(Debug, Default)]
pub(crate) struct MapStore {
    entries: Mutex<BTreeMap<CacheKey, Bytes>>,
    is_down: AtomicBool,
    refuses_writes: AtomicBool,
    calls: AtomicUsize,
    late_reply: Mutex<Option<Arc<Notify>>>,
}

impl MapStore {
    /// Makes every operation answer `CACHING_UNAVAILABLE_001`.
    pub(crate) fn go_down(&self) {
        self.is_down.store(true, Ordering::SeqCst);
    }

    /// Makes every `set` answer `CACHING_UNAVAILABLE_002`.
    pub(crate) fn refuse_writes(&self) {
        self.refuses_writes.store(true, Ordering::SeqCst);
    }

    /// Holds the reply of the next `get` back until the answer is notified.
    pub(crate) fn delay_next_get(&self) -> Arc<Notify> {
        Arc::clone(self.late_reply.lock().insert(Arc::default()))
    }

    /// How many operations were asked for.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn called(&self) -> Result<()> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(CachingError::unavailable("the test store is down")),
            false => Ok(()),
        }
    }

    fn writes(&self) -> Result<()> {
        match self.refuses_writes.load(Ordering::SeqCst) {
            true => Err(CachingError::store_full("the test store is full")),
            false => Ok(()),
        }
    }

    /// Applies `change` if `key` holds `expected`.
    fn swap(&self, key: &CacheKey, expected: &[u8], new: Option<Bytes>) -> Result<bool> {
        self.called()?;
        let mut entries = self.entries.lock();
        if entries.get(key).is_none_or(|there| there != expected) {
            return Ok(false);
        }
        match new {
            Some(value) => entries.insert(key.clone(), value),
            None => entries.remove(key),
        };
        Ok(true)
    }
}

#[async_trait]
impl CacheStore for MapStore {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        self.called()?;
        let found = self.entries.lock().get(key).cloned();
        let late_reply = self.late_reply.lock().take();
        if let Some(reply) = late_reply {
            reply.notified().await;
        }
        Ok(found)
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        self.called()?;
        let entries = self.entries.lock();
        Ok(keys.iter().map(|key| entries.get(key).cloned()).collect())
    }

    async fn set(&self, key: &CacheKey, value: Bytes, _: CacheEntryOptions) -> Result<()> {
        self.called()?;
        self.writes()?;
        self.entries.lock().insert(key.clone(), value);
        Ok(())
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        self.called()?;
        let items = items.iter().cloned().map(|item| (item.key, item.value));
        self.entries.lock().extend(items);
        Ok(())
    }

    async fn try_add(&self, key: &CacheKey, value: Bytes, _: CacheEntryOptions) -> Result<bool> {
        let there = self.get_or_add(key, value, CacheEntryOptions::default());
        Ok(there.await?.is_none())
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        _: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        self.called()?;
        let mut entries = self.entries.lock();
        let there = entries.get(key).cloned();
        if there.is_none() {
            entries.insert(key.clone(), value);
        }
        Ok(there)
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        _: CacheEntryOptions,
    ) -> Result<bool> {
        self.swap(key, expected, Some(value))
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        self.swap(key, expected, None)
    }

    async fn try_extend(&self, key: &CacheKey, expected: &[u8], _: TimeToLive) -> Result<bool> {
        self.swap(key, expected, Some(Bytes::copy_from_slice(expected)))
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        _: TimeToLive,
    ) -> Result<Option<u64>> {
        let value = Bytes::copy_from_slice(token.as_bytes());
        let there = self.get_or_add(key, value, CacheEntryOptions::default());
        let is_ours = there.await?.is_none_or(|there| there == token.as_bytes());
        Ok(is_ours.then_some(1))
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        _: TimeToLive,
    ) -> Result<Option<u64>> {
        let new = Bytes::copy_from_slice(new_token.as_bytes());
        Ok(self.swap(key, token.as_bytes(), Some(new))?.then_some(2))
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        self.swap(key, token.as_bytes(), None)
    }

    async fn watch(&self, _: &CacheKey) -> Result<WakeHints> {
        self.called()?;
        Ok(stream::once(async {}).boxed())
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        self.called()?;
        Ok(self.entries.lock().remove(key).is_some())
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        self.called()?;
        let mut entries = self.entries.lock();
        Ok(keys
            .iter()
            .map(|key| entries.remove(key).is_some())
            .collect())
    }

    async fn increment(&self, key: &CacheKey, delta: i64, _: CacheEntryOptions) -> Result<i64> {
        self.called()?;
        let mut entries = self.entries.lock();
        let number = match entries.get(key) {
            None => 0,
            Some(text) => std::str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse::<i64>().ok())
                .ok_or_else(|| CachingError::wrong_kind(key, "no number"))?,
        };
        entries.insert(key.clone(), Bytes::from((number + delta).to_string()));
        Ok(number + delta)
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        self.called()?;
        let is_there = self.entries.lock().contains_key(key);
        Ok(is_there.then_some(Duration::from_secs(300)))
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        if let Err(error) = self.called() {
            return stream::once(async { Err(error) }).boxed();
        }
        let entries = self.entries.lock();
        let keys: Vec<Result<CacheKey>> = entries
            .keys()
            .filter(|key| key.as_str().starts_with(prefix))
            .cloned()
            .map(Ok)
            .collect();
        stream::iter(keys).boxed()
    }

    async fn ping(&self) -> Result<()> {
        self.called()
    }
}
