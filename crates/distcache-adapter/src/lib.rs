//! The distributed-cache contract on any store of XiHan Caching.
//!
//! - [`DistributedCache`]: the field's well-known contract of `get`, `set`, `refresh` and `remove`,
//!   each awaited or blocking; object safe, so that code takes an `Arc<dyn DistributedCache>`;
//! - [`DistributedCacheEntryOptions`]: absolute, relative and sliding expiration;
//! - [`CacheStoreDistributedCache`]: the contract on a
//!   [`CacheStore`](caching_abstractions::CacheStore);
//! - [`BlockingStore`]: what the blocking face stands on, so that a store behind a network can
//!   bring a connection of its own.

mod blocking;
mod contract;
mod options;
mod store_cache;

pub use blocking::{BlockingStore, ImmediateStore};
pub use contract::DistributedCache;
pub use options::DistributedCacheEntryOptions;
pub use store_cache::CacheStoreDistributedCache;
