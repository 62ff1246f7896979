//! What most programs need: `use xihan_caching::prelude::*;`.

#[cfg(feature = "inmemory")]
pub use crate::InMemoryProvider;
#[cfg(feature = "redis")]
pub use crate::RedisProvider;
#[cfg(feature = "remote")]
pub use crate::RemoteProvider;
pub use crate::{
    AssemblyError, CacheEntryOptions, CacheKey, CacheStore, CacheStoreExt, Caching,
    CachingCapabilities, CachingError, CachingServices, CachingSettings, Configuration,
    DistributedCache, DistributedCacheEntryOptions, DistributedLock, ErrorCode, KeyPrefix,
    LockHandle, SharedCache, TimeToLive, days, hours, milliseconds, minutes, seconds,
};
