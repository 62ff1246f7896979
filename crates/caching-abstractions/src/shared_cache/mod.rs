//! The typed cache on the selected store (A1, N4).

mod flight;

use std::any::type_name;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::warn;

use crate::error::{CachingError, Result};
use crate::expiration::CacheEntryOptions;
use crate::key::CacheKey;
use crate::store::CacheStore;
use flight::Flights;

/// A typed cache on a [`CacheStore`]: serde values, kept as JSON.
///
/// - Cloning is cheap; clones share the store and the single flight of
///   [`get_or_create`](Self::get_or_create).
/// - Keys are a [`CacheKey`] or text that becomes one.
/// - Entries are written with [`CacheStore::set`], so a full store may evict them (S2).
///
/// ```
/// # use caching_abstractions::{CacheEntryOptions, CachingError, SharedCache, minutes};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Price { cents: u64 }
/// # async fn ask_the_supplier() -> Result<Price, CachingError> { Ok(Price { cents: 100 }) }
/// # async fn example(cache: SharedCache) -> Result<(), CachingError> {
/// let options = CacheEntryOptions::time_to_live(minutes(5))?;
/// let price = cache.get_or_create("price:keyboard", options, ask_the_supplier).await?;
/// assert_eq!(price.cents, 100);
/// let again: Option<Price> = cache.get("price:keyboard").await?;
/// # let _ = again;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SharedCache {
    store: Arc<dyn CacheStore>,
    flights: Arc<Flights>,
}

impl SharedCache {
    /// A cache on `store`.
    pub fn new(store: Arc<dyn CacheStore>) -> Self {
        Self {
            store,
            flights: Arc::default(),
        }
    }

    /// The byte store beneath.
    pub fn store(&self) -> &Arc<dyn CacheStore> {
        &self.store
    }

    /// The value of `key`, or none.
    ///
    /// - A read: it restarts the clock of a sliding entry (E2).
    ///
    /// # Errors
    /// `CACHING_VALIDATION_001` for a bad key; `CACHING_CONFLICT_004`, naming key and type, if what
    /// stands there is no `T`; those of [`CacheStore`].
    pub async fn get<T: DeserializeOwned>(
        &self,
        key: impl TryInto<CacheKey, Error: Into<CachingError>>,
    ) -> Result<Option<T>> {
        let key = key.try_into().map_err(Into::into)?;
        match self.store.get(&key).await? {
            Some(bytes) => decode(&key, &bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Writes `value`, whatever was there.
    ///
    /// # Errors
    /// `CACHING_VALIDATION_001` for a bad key; `CACHING_INTERNAL_001` if `value` has no JSON form;
    /// those of [`CacheStore`].
    pub async fn set<T: Serialize + ?Sized>(
        &self,
        key: impl TryInto<CacheKey, Error: Into<CachingError>>,
        value: &T,
        options: CacheEntryOptions,
    ) -> Result<()> {
        let key = key.try_into().map_err(Into::into)?;
        self.store.set(&key, encode(&key, value)?, options).await
    }

    /// Removes `key`; `true` if it was there.
    ///
    /// # Errors
    /// `CACHING_VALIDATION_001` for a bad key; those of [`CacheStore`].
    pub async fn remove(
        &self,
        key: impl TryInto<CacheKey, Error: Into<CachingError>>,
    ) -> Result<bool> {
        let key = key.try_into().map_err(Into::into)?;
        self.store.remove(&key).await
    }

    /// The value of `key`; if there is none, what `factory` gives, which is then written.
    ///
    /// - Concurrent misses of one key run one factory in this process (N4); the others wait for
    ///   its value. Other keys never wait. Two processes may each run theirs.
    /// - A factory that fails or panics ends its own caller's call; the next waiter runs its own.
    /// - A value is given to those who asked before it was written, never to a later caller: that
    ///   one asks the store again.
    /// - A value that is no `T`, for example of an earlier version of the program, counts as a
    ///   miss and is overwritten, with a warning in the log.
    /// - A value that cannot be written for want of room or of a reachable store is given all the
    ///   same, with a warning in the log: the work is done.
    ///
    /// # Errors
    /// The factory's own; `CACHING_VALIDATION_001` for a bad key; `CACHING_INTERNAL_001` if the
    /// value has no JSON form; `CACHING_CONFLICT_004` if a concurrent call for the same key created
    /// a value that is no `T`; those of [`CacheStore::get`].
    ///
    /// # Cancellation safety
    /// Dropping the future drops a running factory with it, and the next waiter runs its own.
    /// Nothing is left behind for the key.
    pub async fn get_or_create<T, E, F, Fut>(
        &self,
        key: impl TryInto<CacheKey, Error: Into<CachingError>>,
        options: CacheEntryOptions,
        factory: F,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<CachingError>,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let key = key.try_into().map_err(Into::into)?;
        if let Some((value, _)) = self.find(&key).await? {
            return Ok(value);
        }
        let passenger = self.flights.join(&key);
        // Who creates the value has it already and need not decode it.
        let mut own = None;
        let create = async {
            // A flight may have arrived between the miss above and the start of this one.
            if let Some((value, bytes)) = self.find(&key).await? {
                own = Some(value);
                return Ok(bytes);
            }
            let value = factory().await?;
            let bytes = encode(&key, &value)?;
            self.keep(&key, &bytes, options).await;
            own = Some(value);
            Ok::<_, E>(bytes)
        };
        let bytes = passenger.flight().get_or_try_init(|| create).await?.clone();
        drop(passenger);
        match own {
            Some(value) => Ok(value),
            None => Ok(decode(&key, &bytes)?),
        }
    }

    async fn find<T: DeserializeOwned>(&self, key: &CacheKey) -> Result<Option<(T, Bytes)>> {
        let Some(bytes) = self.store.get(key).await? else {
            return Ok(None);
        };
        match decode(key, &bytes) {
            Ok(value) => Ok(Some((value, bytes))),
            Err(error) => {
                warn!(%key, %error, "a cached value does not decode and is created anew");
                Ok(None)
            }
        }
    }

    async fn keep(&self, key: &CacheKey, bytes: &Bytes, options: CacheEntryOptions) {
        if let Err(error) = self.store.set(key, bytes.clone(), options).await {
            warn!(%key, %error, "a created value could not be cached");
        }
    }
}

fn encode<T: Serialize + ?Sized>(key: &CacheKey, value: &T) -> Result<Bytes> {
    // The error of a custom `Serialize` may hold parts of the value (X3).
    serde_json::to_vec(value).map(Bytes::from).map_err(|_| {
        let name = type_name::<T>();
        CachingError::internal(format!("the {name} for the key `{key}` has no JSON form"))
    })
}

fn decode<T: DeserializeOwned>(key: &CacheKey, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        // The error's text quotes the value (X3); the place in it is enough.
        let found = format!(
            "a value that is no {} (byte {} of the value's line {})",
            type_name::<T>(),
            error.column(),
            error.line()
        );
        CachingError::wrong_kind(key, found)
    })
}

#[cfg(test)]
mod tests;
