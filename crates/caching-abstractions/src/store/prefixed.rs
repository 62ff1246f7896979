use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};

use super::{CacheItem, CacheStore, LeaseToken, WakeHints};
use crate::error::Result;
use crate::expiration::{CacheEntryOptions, TimeToLive};
use crate::key::{CacheKey, KeyPrefix};

/// The keys of one prefix in another store, as a store of their own (K4).
///
/// - The stored key is `<prefix>:<key>`. Entries outside the prefix are never seen, matched or
///   changed, fencing numbers and hints included.
/// - Above it the prefix is invisible: [`keys`](CacheStore::keys) gives keys without it, and an
///   error names a key without it.
/// - A key has up to 512 characters all the same; with the prefix it may be longer.
///
/// A provider that is given a prefix does this itself; this type is for whoever has a store and
/// must hand out a part of it.
///
/// ```
/// use std::sync::Arc;
/// use caching_abstractions::{CacheStore, KeyPrefix, PrefixedStore};
///
/// fn part_of(store: Arc<dyn CacheStore>) -> caching_abstractions::Result<Arc<dyn CacheStore>> {
///     Ok(Arc::new(PrefixedStore::new(store, KeyPrefix::new("shop")?)))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct PrefixedStore {
    inner: Arc<dyn CacheStore>,
    prefix: KeyPrefix,
}

impl PrefixedStore {
    /// The part of `inner` below `prefix`.
    pub fn new(inner: Arc<dyn CacheStore>, prefix: KeyPrefix) -> Self {
        Self { inner, prefix }
    }

    /// The prefix.
    pub fn prefix(&self) -> &KeyPrefix {
        &self.prefix
    }

    fn stored(&self, key: &CacheKey) -> CacheKey {
        self.prefix.stored_key(key)
    }

    fn stored_all(&self, keys: &[CacheKey]) -> Vec<CacheKey> {
        keys.iter().map(|key| self.stored(key)).collect()
    }

    /// An answer of the store around, as it is seen here.
    fn seen<T>(&self, answer: Result<T>) -> Result<T> {
        answer.map_err(|error| error.below(&self.prefix))
    }
}

#[async_trait]
impl CacheStore for PrefixedStore {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        self.seen(self.inner.get(&self.stored(key)).await)
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        self.seen(self.inner.get_many(&self.stored_all(keys)).await)
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        self.seen(self.inner.set(&self.stored(key), value, options).await)
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        let stored = |item: &CacheItem| CacheItem {
            key: self.stored(&item.key),
            value: item.value.clone(),
            options: item.options,
        };
        let items: Vec<CacheItem> = items.iter().map(stored).collect();
        self.seen(self.inner.set_many(&items).await)
    }

    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        self.seen(self.inner.try_add(&self.stored(key), value, options).await)
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        let key = self.stored(key);
        self.seen(self.inner.get_or_add(&key, value, options).await)
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let key = self.stored(key);
        self.seen(self.inner.try_replace(&key, expected, value, options).await)
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        self.seen(self.inner.try_remove(&self.stored(key), expected).await)
    }

    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        let key = self.stored(key);
        self.seen(self.inner.try_extend(&key, expected, time_to_live).await)
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let key = self.stored(key);
        self.seen(self.inner.try_lease(&key, token, time_to_live).await)
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let key = self.stored(key);
        let relayed = self.inner.try_relay(&key, token, new_token, time_to_live);
        self.seen(relayed.await)
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        self.seen(self.inner.release(&self.stored(key), token).await)
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        self.seen(self.inner.watch(&self.stored(key)).await)
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        self.seen(self.inner.remove(&self.stored(key)).await)
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        self.seen(self.inner.remove_many(&self.stored_all(keys)).await)
    }

    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        self.seen(
            self.inner
                .increment(&self.stored(key), delta, options)
                .await,
        )
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        self.seen(self.inner.time_to_live(&self.stored(key)).await)
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        let own = self.prefix.clone();
        let stored = self.inner.keys(&format!("{own}:{prefix}"));
        let seen = move |key: Result<CacheKey>| {
            ready(match key {
                // What the store around can list and is no key here is nobody's entry here.
                Ok(key) => own
                    .strip(key.as_str())
                    .and_then(|text| CacheKey::from_stored(text).ok())
                    .map(Ok),
                Err(error) => Some(Err(error.below(&own))),
            })
        };
        stored.filter_map(seen).boxed()
    }

    async fn ping(&self) -> Result<()> {
        self.inner.ping().await
    }
}
