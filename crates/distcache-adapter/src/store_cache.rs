use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheKey, CacheStore, Clock, KeyPrefix, Result, SystemClock,
};

use crate::{BlockingStore, DistributedCache, DistributedCacheEntryOptions, ImmediateStore};

/// The [`DistributedCache`] contract on a [`CacheStore`].
///
/// - With a [`KeyPrefix`] the stored key is `<prefix>:<key>` (K4), so two adapters on one store
///   never meet. A key that no longer fits with its prefix is `CACHING_VALIDATION_001`.
/// - Entries are written with [`CacheStore::set`], so a full store may evict them (S2).
#[derive(Clone, Debug)]
pub struct CacheStoreDistributedCache {
    store: Arc<dyn CacheStore>,
    blocking: Arc<dyn BlockingStore>,
    prefix: Option<KeyPrefix>,
    clock: Arc<dyn Clock>,
}

impl CacheStoreDistributedCache {
    /// The cache on `store`, whose blocking face works if `store` never waits
    /// ([`ImmediateStore`]).
    pub fn new(store: Arc<dyn CacheStore>) -> Self {
        Self {
            blocking: Arc::new(ImmediateStore::new(Arc::clone(&store))),
            store,
            prefix: None,
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// The same cache with `prefix` before its keys.
    #[must_use]
    pub fn with_prefix(mut self, prefix: KeyPrefix) -> Self {
        self.prefix = Some(prefix);
        self
    }

    /// The same cache with another blocking face, on the same entries.
    #[must_use]
    pub fn with_blocking_store(mut self, blocking: Arc<dyn BlockingStore>) -> Self {
        self.blocking = blocking;
        self
    }

    /// The same cache with another clock, which decides how far away an absolute instant is.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The byte store beneath.
    pub fn store(&self) -> &Arc<dyn CacheStore> {
        &self.store
    }

    fn key(&self, key: &str) -> Result<CacheKey> {
        let key = CacheKey::new(key)?;
        match &self.prefix {
            Some(prefix) => CacheKey::new(prefix.stored(&key)),
            None => Ok(key),
        }
    }

    fn entry_options(&self, options: DistributedCacheEntryOptions) -> Result<CacheEntryOptions> {
        options.at(self.clock.unix_time())
    }
}

#[async_trait]
impl DistributedCache for CacheStoreDistributedCache {
    async fn get(&self, key: &str) -> Result<Option<Bytes>> {
        self.store.get(&self.key(key)?).await
    }

    async fn set(
        &self,
        key: &str,
        value: &[u8],
        options: DistributedCacheEntryOptions,
    ) -> Result<()> {
        let (key, options) = (self.key(key)?, self.entry_options(options)?);
        let value = Bytes::copy_from_slice(value);
        self.store.set(&key, value, options).await
    }

    async fn refresh(&self, key: &str) -> Result<()> {
        self.store.get(&self.key(key)?).await.map(drop)
    }

    async fn remove(&self, key: &str) -> Result<()> {
        self.store.remove(&self.key(key)?).await.map(drop)
    }

    fn get_blocking(&self, key: &str) -> Result<Option<Bytes>> {
        self.blocking.get(&self.key(key)?)
    }

    fn set_blocking(
        &self,
        key: &str,
        value: &[u8],
        options: DistributedCacheEntryOptions,
    ) -> Result<()> {
        let (key, options) = (self.key(key)?, self.entry_options(options)?);
        self.blocking
            .set(&key, Bytes::copy_from_slice(value), options)
    }

    fn refresh_blocking(&self, key: &str) -> Result<()> {
        self.blocking.get(&self.key(key)?).map(drop)
    }

    fn remove_blocking(&self, key: &str) -> Result<()> {
        self.blocking.remove(&self.key(key)?).map(drop)
    }
}
