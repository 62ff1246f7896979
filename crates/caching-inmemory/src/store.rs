use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, KeyPrefix, LeaseToken, Result, TimeToLive,
    WakeHints,
};
use futures_util::stream::BoxStream;

use crate::backing::Backing;
use crate::builder::InMemoryStoreBuilder;
use crate::key::{KeyRef, stored_text};
use crate::{listing, sweeper, watchers};

/// A [`CacheStore`] in the memory of this process.
///
/// - Clones share one backing; so do views with another prefix, see
///   [`with_prefix`](Self::with_prefix).
/// - Works inside and outside an async runtime: no operation waits for anything. On a tokio
///   runtime with a timer, a task frees what has expired about once a second.
/// - A value is copied when it is written, so a small part of a large buffer keeps only itself.
///
/// # When it is full (S2)
///
/// Each entry is charged its key, its value and a fixed amount for the tables around it.
/// - What `set` and `set_many` write is evictable: beyond `max_capacity_bytes` the least recently
///   used entries go. An entry larger than that is refused, and the old one stays.
/// - What any other operation writes is protected and never goes before it expires: a write beyond
///   `max_protected_bytes` is refused with `CACHING_UNAVAILABLE_002` and changes nothing. One
///   twentieth of that budget is kept for leases and
///   [essential](CacheEntryOptions::essential) writes. What takes the place of an entry that is
///   no smaller always fits.
/// - An evictable entry becomes protected when any other operation changes it. A `set` never does
///   the opposite while the entry lives.
#[derive(Clone)]
pub struct InMemoryStore {
    backing: Arc<Backing>,
    prefix: Option<KeyPrefix>,
}

impl InMemoryStore {
    /// An empty store with the default budgets and lifetime.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Settings for an empty store.
    #[must_use]
    pub fn builder() -> InMemoryStoreBuilder {
        InMemoryStoreBuilder::new()
    }

    pub(crate) fn of(backing: Arc<Backing>, prefix: Option<KeyPrefix>) -> Self {
        Self { backing, prefix }
    }

    /// A second view of the same entries, under `prefix` instead of this view's own (K4).
    ///
    /// ```
    /// use caching_abstractions::{CacheEntryOptions, CacheKey, CacheStore, KeyPrefix};
    /// use caching_inmemory::InMemoryStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> caching_abstractions::Result<()> {
    /// let whole = InMemoryStore::new();
    /// let shop = whole.with_prefix(KeyPrefix::new("shop")?);
    /// let options = CacheEntryOptions::default();
    /// shop.set(&CacheKey::new("order")?, "1".into(), options).await?;
    /// assert!(whole.get(&CacheKey::new("shop:order")?).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_prefix(&self, prefix: KeyPrefix) -> Self {
        Self::of(Arc::clone(&self.backing), Some(prefix))
    }

    /// The bytes that evictable entries are charged; never more than their budget.
    ///
    /// Entries that have expired count until they are freed.
    pub fn evictable_bytes(&self) -> u64 {
        self.backing.evictable.settle();
        self.backing.evictable.used_bytes()
    }

    /// The bytes that protected entries are charged; never more than their budget.
    ///
    /// Entries that have expired count until they are freed.
    pub fn protected_bytes(&self) -> u64 {
        self.backing.protected.used()
    }

    /// Runs `operation` on the stored form of `key`.
    fn with_key<T>(&self, key: &CacheKey, operation: impl FnOnce(KeyRef<'_>) -> T) -> T {
        let text = stored_text(self.prefix.as_ref(), key);
        let hash = self.backing.hash(&text);
        operation(KeyRef { hash, text: &text })
    }

    /// As [`with_key`](Self::with_key), for what may write an entry; names it in an error.
    fn write<T>(
        &self,
        name: &'static str,
        key: &CacheKey,
        operation: impl FnOnce(KeyRef<'_>) -> Result<T>,
    ) -> Result<T> {
        sweeper::ensure(&self.backing);
        self.with_key(key, operation)
            .map_err(|error| error.with_operation(name))
    }

    #[cfg(test)]
    pub(crate) fn backing(&self) -> &Arc<Backing> {
        &self.backing
    }
}

impl Default for InMemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for InMemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryStore")
            .field("prefix", &self.prefix)
            .field("evictable", &self.backing.evictable)
            .field("protected", &self.backing.protected)
            .finish_non_exhaustive()
    }
}

/// Nothing here awaits: a future that is dropped before its first poll did nothing, and there is
/// no later moment to drop it (S5).
#[async_trait]
impl CacheStore for InMemoryStore {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        Ok(self.with_key(key, |key| self.backing.get(key)))
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        Ok(keys
            .iter()
            .map(|key| self.with_key(key, |key| self.backing.get(key)))
            .collect())
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        self.write("set", key, |key| self.backing.set(key, &value, options))
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        items.iter().try_for_each(|item| {
            self.write("set_many", &item.key, |key| {
                self.backing.set(key, &item.value, item.options)
            })
        })
    }

    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        self.write("try_add", key, |key| {
            self.backing.try_add(key, &value, options)
        })
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        self.write("get_or_add", key, |key| {
            self.backing.get_or_add(key, &value, options)
        })
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        self.write("try_replace", key, |key| {
            self.backing.try_replace(key, expected, &value, options)
        })
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        Ok(self.with_key(key, |key| self.backing.try_remove(key, expected)))
    }

    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        self.write("try_extend", key, |key| {
            self.backing.try_extend(key, expected, time_to_live)
        })
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        self.write("try_lease", key, |key| {
            self.backing.try_lease(key, token.as_bytes(), time_to_live)
        })
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let (token, new_token) = (token.as_bytes(), new_token.as_bytes());
        self.write("try_relay", key, |key| {
            self.backing.try_relay(key, token, new_token, time_to_live)
        })
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        Ok(self.with_key(key, |key| self.backing.try_remove(key, token.as_bytes())))
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        let backing = Arc::clone(&self.backing);
        Ok(self.with_key(key, |key| watchers::watch(backing, key.text)))
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        Ok(self.with_key(key, |key| self.backing.remove(key)))
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        Ok(keys
            .iter()
            .map(|key| self.with_key(key, |key| self.backing.remove(key)))
            .collect())
    }

    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        self.write("increment", key, |stored| {
            self.backing.increment(stored, key, delta, options)
        })
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        Ok(self.with_key(key, |key| self.backing.time_to_live(key)))
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        listing::keys(Arc::clone(&self.backing), self.prefix.clone(), prefix)
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }
}
