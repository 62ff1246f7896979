use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use caching_abstractions::{CacheEntryOptions, CacheKey, CacheStore, CachingError, Result};
use futures_util::FutureExt;

/// The part of a store that the blocking face needs, on the calling thread (D3).
///
/// An implementation has to answer whatever the calling thread is doing: it may be the only
/// thread of a current-thread runtime. A store behind a network therefore runs a second connection
/// on a runtime thread of its own and passes requests over a plain channel; a connection that is
/// driven by the caller's runtime would wait for ever.
///
/// The methods mean what those of [`CacheStore`] mean.
pub trait BlockingStore: fmt::Debug + Send + Sync + 'static {
    /// The value of `key`, or none; a read.
    ///
    /// # Errors
    /// Those of [`CacheStore::get`].
    fn get(&self, key: &CacheKey) -> Result<Option<Bytes>>;

    /// Writes `value`, whatever was there.
    ///
    /// # Errors
    /// Those of [`CacheStore::set`].
    fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()>;

    /// `true` if `key` was there; it is gone now.
    ///
    /// # Errors
    /// Those of [`CacheStore::remove`].
    fn remove(&self, key: &CacheKey) -> Result<bool>;
}

/// The blocking face of a store whose operations never wait, such as the in-memory one.
///
/// Each operation is done in one step, without a runtime. An operation that would wait is an
/// error (`CACHING_INTERNAL_001`) and not a blocked thread: that store needs a [`BlockingStore`] of
/// its own.
#[derive(Clone, Debug)]
pub struct ImmediateStore(Arc<dyn CacheStore>);

impl ImmediateStore {
    /// The blocking face of `store`.
    pub fn new(store: Arc<dyn CacheStore>) -> Self {
        Self(store)
    }
}

impl BlockingStore for ImmediateStore {
    fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        at_once(self.0.get(key))
    }

    fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        at_once(self.0.set(key, value, options))
    }

    fn remove(&self, key: &CacheKey) -> Result<bool> {
        at_once(self.0.remove(key))
    }
}

fn at_once<T>(operation: impl Future<Output = Result<T>>) -> Result<T> {
    operation.now_or_never().unwrap_or_else(|| {
        Err(CachingError::internal(
            "this store waits for its answers; give its distributed cache a blocking store of \
             its own",
        ))
    })
}
