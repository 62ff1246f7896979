//! The in-memory provider of XiHan Caching: the store of one process, with no configuration.
//!
//! - [`InMemoryProvider`] is registered at assembly; it is a fallback and supplies
//!   `caching.distributed`.
//! - [`InMemoryStore`] is the store itself, for programs and tests that need no assembly.
//!
//! # How it keeps its promises
//!
//! A key lives in one of two halves. What `set` and `set_many` wrote is *evictable* and lives in a
//! cache that lets the least recently used entries go. What any other operation wrote is
//! *protected* and lives in sharded maps that never forget an entry before it expires (S2). Each
//! half has a budget in bytes.
//!
//! - Every change of a key happens under the lock of the key's shard, so no operation ever sees a
//!   key in both halves.
//! - The deadline stored beside a value decides whether it is there (E4); cleaning up only frees
//!   memory.
//! - No operation awaits anything: its future is ready at the first poll, and dropping it before
//!   that poll means that nothing happened (S5).
//!
//! ```
//! use caching_abstractions::{CacheEntryOptions, CacheKey, CacheStore, minutes};
//! use caching_inmemory::InMemoryStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> caching_abstractions::Result<()> {
//! let store = InMemoryStore::new();
//! let key = CacheKey::new("order:1")?;
//! let options = CacheEntryOptions::time_to_live(minutes(5))?;
//! assert!(store.try_add(&key, "placed".into(), options).await?);
//! assert!(!store.try_add(&key, "again".into(), options).await?);
//! # Ok(())
//! # }
//! ```

mod backing;
mod budget;
mod builder;
mod deadlines;
mod eviction;
mod fencing;
mod key;
mod leases;
mod life;
mod listing;
mod locked;
mod number;
mod provider;
mod shard;
mod store;
mod sweeper;
mod watchers;

pub use builder::InMemoryStoreBuilder;
pub use provider::InMemoryProvider;
pub use store::InMemoryStore;
