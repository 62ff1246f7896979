//! Contracts and pure logic of XiHan Caching.
//!
//! This crate knows no provider and no transport. It defines
//!
//! - [`CacheKey`] and [`KeyPrefix`]: what an entry is called;
//! - [`CacheEntryOptions`] and [`TimeToLive`]: how it expires;
//! - [`CacheStore`]: the byte store with atomic primitives that a provider implements, and
//!   [`CacheStoreExt`]: conveniences for its callers;
//! - [`DistributedLock`] and [`LockHandle`]: the lease lock on any store;
//! - [`CachingError`]: the one error type, with stable codes.

mod capability;
mod clock;
mod config;
mod error;
mod expiration;
mod key;
mod lock;
mod shared_cache;
mod store;
#[cfg(test)]
mod testing;

pub use capability::{
    AssemblyError, AssemblyProblem, CachingCapabilities, CachingProvider, CachingServices,
    CapabilityRegistry, ProviderManifest,
};
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::{
    CachingSettings, Configuration, IdempotencySettings, InMemorySettings, RedisSettings,
    RemoteSettings, Secret, Section,
};
pub use error::{CachingError, ErrorCategory, ErrorCode, GrpcStatus, Result};
pub use expiration::{
    CacheEntryOptions, Expiration, TimeToLive, days, hours, milliseconds, minutes, seconds,
};
pub use key::{CacheKey, KeyPrefix};
pub use lock::{DistributedLock, LockHandle, MultiLockHandle};
pub use shared_cache::SharedCache;
pub use store::{
    CacheItem, CacheStore, CacheStoreExt, LeaseToken, MeteredStore, PrefixedStore, WakeHints,
};
