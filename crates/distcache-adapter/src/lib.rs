//! The distributed-cache contract on any store of XiHan Caching.
//!
//! - [`DistributedCache`]: the field's well-known contract of `get`, `set`, `refresh` and `remove`,
//!   each awaited or blocking; object safe, so that code takes an `Arc<dyn DistributedCache>`;
//! - [`DistributedCacheEntryOptions`]: absolute, relative and sliding expiration;
//! - [`CacheStoreDistributedCache`]: the contract on a
//!   [`CacheStore`](caching_abstractions::CacheStore);
//! - [`BlockingStore`]: what the blocking face stands on: [`ImmediateStore`] for a store in this
//!   process, [`ThreadStore`] with a connection of its own for one behind a network.

mod blocking;
mod contract;
mod options;
mod store_cache;
mod thread_store;

pub use blocking::{BlockingStore, ImmediateStore};
pub use contract::DistributedCache;
pub use options::DistributedCacheEntryOptions;
pub use store_cache::CacheStoreDistributedCache;
pub use thread_store::ThreadStore;
