use std::fmt;
use std::sync::Arc;

use caching_abstractions::{
    CacheStore, CachingServices, CachingSettings, DistributedLock, SharedCache,
};
use distcache_adapter::DistributedCache;

use crate::CachingBuilder;

/// What an application gets from its assembly: store, lock, caches and settings.
///
/// - Everything sits on one and the same store instance (R3), except a distributed cache that the
///   application brought itself (R4).
/// - Cloning is cheap; clones share everything.
/// - [`CachingServices`] is its face towards code that does not know this crate.
#[derive(Clone)]
pub struct Caching(pub(crate) Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) provider_name: &'static str,
    pub(crate) settings: CachingSettings,
    pub(crate) store: Arc<dyn CacheStore>,
    pub(crate) locks: DistributedLock,
    pub(crate) shared_cache: SharedCache,
    pub(crate) distributed_cache: Arc<dyn DistributedCache>,
}

impl Caching {
    /// Begins an assembly.
    pub fn builder() -> CachingBuilder {
        CachingBuilder::new()
    }

    /// The selected provider's store, counted and timed.
    pub fn store(&self) -> &Arc<dyn CacheStore> {
        &self.0.store
    }

    /// The lease lock on the store.
    pub fn locks(&self) -> &DistributedLock {
        &self.0.locks
    }

    /// The typed cache on the store.
    pub fn shared_cache(&self) -> &SharedCache {
        &self.0.shared_cache
    }

    /// The application's own distributed cache if it registered one (R4), else the one on the
    /// store.
    pub fn distributed_cache(&self) -> Arc<dyn DistributedCache> {
        Arc::clone(&self.0.distributed_cache)
    }

    /// The checked settings of the section `XiHan:Caching`.
    pub fn settings(&self) -> &CachingSettings {
        &self.0.settings
    }

    /// The name of the selected provider, such as `inmemory`.
    pub fn provider_name(&self) -> &'static str {
        self.0.provider_name
    }
}

impl CachingServices for Caching {
    fn store(&self) -> &Arc<dyn CacheStore> {
        self.store()
    }

    fn settings(&self) -> &CachingSettings {
        self.settings()
    }
}

impl fmt::Debug for Caching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caching")
            .field("provider_name", &self.0.provider_name)
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}
