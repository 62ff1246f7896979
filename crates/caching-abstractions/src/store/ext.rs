use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;

use super::CacheStore;
use crate::error::Result;
use crate::expiration::CacheEntryOptions;
use crate::key::CacheKey;

/// Conveniences on every [`CacheStore`], written once on its primitives.
#[async_trait]
pub trait CacheStoreExt: CacheStore {
    /// Every key with the literal `prefix`, sorted.
    ///
    /// For people and tests; a large store is better read through [`CacheStore::keys`].
    ///
    /// # Errors
    /// Those of [`CacheStore`].
    async fn sorted_keys(&self, prefix: &str) -> Result<Vec<CacheKey>> {
        let mut keys: Vec<CacheKey> = self.keys(prefix).try_collect().await?;
        keys.sort_unstable();
        Ok(keys)
    }

    /// Changes `key` by compare-and-swap and gives the value written, or none if `change`
    /// declined.
    ///
    /// `change` is called with the present value, again whenever somebody else was quicker, so
    /// it must have no side effects. Returning none leaves the entry as it is.
    ///
    /// # Errors
    /// Those of [`CacheStore`]. After `CACHING_UNAVAILABLE_001` the change may have been applied.
    ///
    /// # Cancellation safety
    /// Dropping the future leaves either the old or one whole new value.
    async fn update<F>(
        &self,
        key: &CacheKey,
        options: CacheEntryOptions,
        mut change: F,
    ) -> Result<Option<Bytes>>
    where
        F: FnMut(Option<&Bytes>) -> Option<Bytes> + Send,
    {
        loop {
            let present = self.get(key).await?;
            let Some(new) = change(present.as_ref()) else {
                return Ok(None);
            };
            let written = match &present {
                Some(old) => self.try_replace(key, old, new.clone(), options).await?,
                None => self.try_add(key, new.clone(), options).await?,
            };
            if written {
                return Ok(Some(new));
            }
        }
    }
}

impl<S: CacheStore + ?Sized> CacheStoreExt for S {}
