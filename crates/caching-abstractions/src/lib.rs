//! Contracts and pure logic of XiHan Caching.
//!
//! This crate knows no provider and no transport. It defines
//!
//! - [`CacheKey`] and [`KeyPrefix`]: what an entry is called;
//! - [`CacheEntryOptions`] and [`TimeToLive`]: how it expires;
//! - [`CacheStore`]: the byte store with atomic primitives that a provider implements, and
//!   [`CacheStoreExt`]: conveniences for its callers;
//! - [`CachingError`]: the one error type, with stable codes.

mod capability;
mod clock;
mod config;
mod error;
mod expiration;
mod key;
mod store;

pub use capability::{
    AssemblyError, AssemblyProblem, CachingCapabilities, CachingProvider, CachingServices,
    ProviderManifest,
};
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::{
    CachingSettings, IdempotencySettings, InMemorySettings, RedisSettings, RemoteSettings, Secret,
};
pub use error::{CachingError, ErrorCategory, ErrorCode, GrpcStatus, Result};
pub use expiration::{
    CacheEntryOptions, Expiration, TimeToLive, days, hours, milliseconds, minutes, seconds,
};
pub use key::{CacheKey, KeyPrefix};
pub use store::{CacheItem, CacheStore, CacheStoreExt, LeaseToken, WakeHints};
