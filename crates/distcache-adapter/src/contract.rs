use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::Result;

use crate::DistributedCacheEntryOptions;

/// A plain cache of bytes that several instances of a program share.
///
/// # For every method
///
/// - Keys follow K1: 1 to 512 characters without white space and control characters (D1).
/// - Values are bytes, binary-safe, empty allowed.
/// - Each method comes twice: awaited, and `_blocking` for code that cannot await. The blocking
///   form works on a plain thread and inside a runtime, current-thread ones included, without a
///   panic or a deadlock (D3).
///
/// # Errors
///
/// - `CACHING_VALIDATION_001`: the key breaks K1.
/// - `CACHING_VALIDATION_002`: an expiration is out of range; what stood there stays.
/// - `CACHING_UNAVAILABLE_001`: the store cannot be reached or did not answer in time; never
///   reported as absent.
///
/// ```
/// use caching_abstractions::{Result, minutes};
/// use distcache_adapter::{DistributedCache, DistributedCacheEntryOptions};
///
/// async fn greet(cache: &dyn DistributedCache) -> Result<()> {
///     let options = DistributedCacheEntryOptions::new().sliding(minutes(20));
///     cache.set("greeting", b"hello", options).await?;
///     assert_eq!(cache.get("greeting").await?.as_deref(), Some(&b"hello"[..]));
///     cache.remove("greeting").await
/// }
/// ```
#[async_trait]
pub trait DistributedCache: fmt::Debug + Send + Sync + 'static {
    /// The value of `key`, or none.
    ///
    /// - A read: it restarts the clock of a sliding entry.
    async fn get(&self, key: &str) -> Result<Option<Bytes>>;

    /// Writes `value` and its whole expiration, whatever was there.
    async fn set(
        &self,
        key: &str,
        value: &[u8],
        options: DistributedCacheEntryOptions,
    ) -> Result<()>;

    /// Restarts the clock of a sliding entry without giving its value; a missing key is no error
    /// (D2).
    async fn refresh(&self, key: &str) -> Result<()>;

    /// Removes `key`; a missing key is no error.
    async fn remove(&self, key: &str) -> Result<()>;

    /// As [`get`](Self::get), on the calling thread.
    fn get_blocking(&self, key: &str) -> Result<Option<Bytes>>;

    /// As [`set`](Self::set), on the calling thread.
    fn set_blocking(
        &self,
        key: &str,
        value: &[u8],
        options: DistributedCacheEntryOptions,
    ) -> Result<()>;

    /// As [`refresh`](Self::refresh), on the calling thread.
    fn refresh_blocking(&self, key: &str) -> Result<()>;

    /// As [`remove`](Self::remove), on the calling thread.
    fn remove_blocking(&self, key: &str) -> Result<()>;
}
