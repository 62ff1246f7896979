#![doc = include_str!("../README.md")]

mod assembly;
mod builder;
mod caching;

pub mod prelude;

pub use builder::CachingBuilder;
pub use caching::Caching;

pub use caching_abstractions::*;
#[cfg(feature = "inmemory")]
pub use caching_inmemory::InMemoryProvider;
#[cfg(feature = "redis")]
pub use caching_redis::RedisProvider;
#[cfg(feature = "remote")]
pub use caching_remote::RemoteProvider;
pub use distcache_adapter::{
    BlockingStore, CacheStoreDistributedCache, DistributedCache, DistributedCacheEntryOptions,
};
