//! The store and its locks as a user has them: behind the trait, every call a boxed future.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheKey, CacheStore, CachingSettings, DistributedLock, LeaseToken, Secret,
    TimeToLive,
};
use caching_redis::RedisStore;

use super::measure::{
    ENTRY_MILLISECONDS, KEYS, LEASE_MILLISECONDS, Operation, TOKEN, VALUE, entry, resource,
};
use crate::Result;

pub(crate) struct Ours {
    store: Arc<dyn CacheStore>,
    locks: DistributedLock,
    entries: Vec<CacheKey>,
    leases: Vec<CacheKey>,
    resources: Vec<String>,
    value: Bytes,
    token: LeaseToken,
    options: CacheEntryOptions,
    lease: TimeToLive,
}

impl Ours {
    pub(crate) async fn connect(port: u16) -> Result<Arc<Self>> {
        let mut settings = CachingSettings::default();
        settings.redis.url = Some(Secret::new(format!("redis://127.0.0.1:{port}")));
        let store: Arc<dyn CacheStore> = Arc::new(RedisStore::connect(&settings).await?);
        let keys = |name: fn(usize) -> String| {
            (0..KEYS)
                .map(|index| CacheKey::new(name(index)))
                .collect::<caching_abstractions::Result<Vec<_>>>()
        };
        let entry_life = Duration::from_millis(ENTRY_MILLISECONDS.into());
        Ok(Arc::new(Self {
            locks: DistributedLock::new(Arc::clone(&store)),
            store,
            entries: keys(entry)?,
            leases: keys(|index| format!("lock:{}", resource(index)))?,
            resources: (0..KEYS).map(resource).collect(),
            value: Bytes::copy_from_slice(&VALUE),
            token: LeaseToken::new(TOKEN)?,
            options: CacheEntryOptions::time_to_live(entry_life)?,
            lease: TimeToLive::from_millis(LEASE_MILLISECONDS.into())?,
        }))
    }

    pub(crate) async fn apply(&self, operation: Operation, index: usize) -> bool {
        match operation {
            Operation::Set => {
                let key = &self.entries[index];
                let set = self.store.set(key, self.value.clone(), self.options).await;
                set.is_ok()
            }
            Operation::Get => {
                let found = self.store.get(&self.entries[index]).await;
                matches!(found, Ok(Some(_)))
            }
            Operation::GetStanding => matches!(self.get_or_add(index).await, Ok(Some(_))),
            Operation::Add => matches!(self.get_or_add(index).await, Ok(None)),
            Operation::Lease => {
                let (key, token) = (&self.leases[index], &self.token);
                let number = self.store.try_lease(key, token, self.lease).await;
                let released = self.store.release(key, token).await;
                matches!((number, released), (Ok(Some(_)), Ok(true)))
            }
            Operation::Lock => {
                let lock = self.locks.acquire(&self.resources[index], self.lease).await;
                let Ok(lock) = lock else { return false };
                matches!(lock.release().await, Ok(true))
            }
            // A lock of ours always has a number.
            Operation::PlainLock => false,
        }
    }

    async fn get_or_add(&self, index: usize) -> caching_abstractions::Result<Option<Bytes>> {
        let (key, value) = (&self.entries[index], self.value.clone());
        self.store.get_or_add(key, value, self.options).await
    }
}
