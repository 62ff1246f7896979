//! The store contract (spec part 3): [`CacheStore`] for those who implement it, [`CacheStoreExt`]
//! for those who call it.

mod ext;
mod metered;
mod prefixed;
mod token;

pub use ext::CacheStoreExt;
pub use metered::MeteredStore;
pub use prefixed::PrefixedStore;
pub use token::LeaseToken;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::error::Result;
use crate::expiration::{CacheEntryOptions, TimeToLive};
use crate::key::CacheKey;

/// One entry to write with [`CacheStore::set_many`].
#[derive(Clone, PartialEq, Eq)]
pub struct CacheItem {
    /// Where it goes.
    pub key: CacheKey,
    /// What it holds.
    pub value: Bytes,
    /// How it expires.
    pub options: CacheEntryOptions,
}

impl CacheItem {
    /// An item of these three parts.
    pub fn new(key: CacheKey, value: impl Into<Bytes>, options: CacheEntryOptions) -> Self {
        Self {
            key,
            value: value.into(),
            options,
        }
    }
}

impl fmt::Debug for CacheItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheItem")
            .field("key", &self.key)
            .field("value", &format_args!("{} bytes", self.value.len()))
            .field("options", &self.options)
            .finish()
    }
}

/// Hints that a key may have become free; see [`CacheStore::watch`].
pub type WakeHints = BoxStream<'static, ()>;

/// A byte store with atomic primitives, shared by everything that has to agree.
///
/// # For every method
///
/// - Values are bytes, binary-safe, empty allowed.
/// - One operation on one key is one atomic step for all clients of the store. On a remote store
///   it is one round trip; a sliding entry may take a second one on Redis.
/// - An expired entry is invisible at once, whether or not it was cleaned up (E4).
/// - Batches answer in the order asked and are atomic per key; one failure fails the call.
/// - What [`set`](Self::set) and [`set_many`](Self::set_many) wrote may be evicted by a full store;
///   what any other method wrote is protected until it expires (S2).
///
/// # Errors
///
/// - `CACHING_UNAVAILABLE_001`: the store cannot be reached or did not answer within the time
///   limit (S3). Never reported as `false` or as absent. The operation may have been applied, see
///   [`CachingError::may_have_been_applied`](crate::CachingError::may_have_been_applied).
/// - `CACHING_UNAVAILABLE_002`: a write that does not fit (S2). Nothing changed.
/// - `CACHING_CONFLICT_004`: the key holds a value of another kind (S7). Nothing changed.
///
/// # Cancellation safety
///
/// Dropping a method's future leaves the store as some completed operation would have left it,
/// and no queued command behind that runs later (S5). Whether the operation took place is then
/// unknown to the caller.
///
/// # For implementers
///
/// Prove the implementation with the conformance suite. No method has a default: a wrapper that
/// forgets one does not compile.
#[async_trait]
pub trait CacheStore: fmt::Debug + Send + Sync + 'static {
    /// The value of `key`, or none.
    ///
    /// - A read: it restarts the clock of a sliding entry (E2).
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>>;

    /// The value of each key, in the order asked.
    ///
    /// - A read: it restarts the clock of sliding entries (E2).
    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>>;

    /// Writes `value`, whatever was there.
    ///
    /// - Replaces the value and the whole expiration, sliding included (E5).
    /// - May evict other evictable entries; refuses only an entry larger than its budget, and the
    ///   old value then stays. Never makes a protected entry evictable (S2).
    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()>;

    /// Writes every item as [`set`](Self::set) does; where a key comes twice, the last one counts.
    async fn set_many(&self, items: &[CacheItem]) -> Result<()>;

    /// `true` if `key` was absent and is now written; else `false`, and nothing changed.
    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool>;

    /// None if `key` was absent and is now written; else the value that stands there.
    ///
    /// - No read: it does not restart the clock of a sliding entry (E2).
    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>>;

    /// `true` if the value was `expected` and is now `value` with a whole new expiration.
    ///
    /// - A failed comparison changes and extends nothing.
    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool>;

    /// `true` if the value was `expected` and is now gone.
    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool>;

    /// `true` if the value was `expected` and now lives `time_to_live` from now.
    ///
    /// - Ends sliding (E5). Never brings back an entry that is gone.
    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool>;

    /// Leases `key` for `token`: a fencing number if it was free, none if somebody else has it.
    ///
    /// - The stored value is the token and nothing else (L3).
    /// - Asking again with the token that stands there restarts the time to live and gives the
    ///   same number, so a caller whose reply was lost asks again.
    /// - The number is strictly larger than every number issued before for `key`, also after
    ///   release, expiry and a restart of the store (S6).
    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>>;

    /// Hands a lease on: if `token` stands there, `new_token` takes its place with a new lifetime
    /// and a larger fencing number; else none, and nothing changed.
    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>>;

    /// `true` if `token` stood there and is now gone; wakes who [`watch`](Self::watch)es the key.
    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool>;

    /// A stream of hints that `key` may have become free.
    ///
    /// - Registered when the call returns: a release after that gives a hint.
    /// - Hints can be missed, doubled or wrong, so nobody relies on them alone.
    /// - Dropping the stream ends the registration.
    async fn watch(&self, key: &CacheKey) -> Result<WakeHints>;

    /// `true` if `key` was there; it is gone now.
    async fn remove(&self, key: &CacheKey) -> Result<bool>;

    /// Removes each key; `true` for those that were there, in the order asked.
    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>>;

    /// Adds `delta` to a decimal number and gives the new one; an absent key counts as 0.
    ///
    /// - `options` apply only when the key is created.
    /// - A value that is no decimal i64 (`0` or `-?[1-9][0-9]*`), or an overflow, is
    ///   `CACHING_CONFLICT_004` and changes nothing.
    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64>;

    /// What is left of the entry's life, or none if it is absent.
    ///
    /// - No read: it does not restart the clock of a sliding entry (E2).
    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>>;

    /// Every key that begins with `prefix` and lives throughout the listing, once; others at most
    /// once.
    ///
    /// - `prefix` is literal: glob characters have no meaning. Empty means every key.
    /// - The stream ends after the first error.
    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>>;

    /// Succeeds if the store answers.
    async fn ping(&self) -> Result<()>;
}
