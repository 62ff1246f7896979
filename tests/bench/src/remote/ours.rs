//! The store and its locks as a user has them: behind the trait, every call a boxed future.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, CachingSettings, DistributedLock,
    LeaseToken, TimeToLive,
};
use caching_remote::{RemoteStore, Transport};

use super::measure::{
    ENTRY_MILLISECONDS, KEYS, LEASE_MILLISECONDS, Operation, TOKEN, VALUE, entry, lease, resource,
};
use crate::Result;

/// How many keys are sent at once where no time is taken.
const BATCH: usize = 1000;

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
    /// A store with one connection of its own.
    pub(crate) async fn connect(port: u16, transport: Transport) -> Result<Arc<Self>> {
        let mut settings = CachingSettings::default();
        settings.remote.endpoint = Some(format!("grpc://127.0.0.1:{port}"));
        let store: Arc<dyn CacheStore> =
            Arc::new(RemoteStore::connect_over(&settings, transport).await?);
        let keys = |name: fn(usize) -> String| {
            (0..KEYS)
                .map(|index| CacheKey::new(name(index)))
                .collect::<caching_abstractions::Result<Vec<_>>>()
        };
        let entry_life = Duration::from_millis(ENTRY_MILLISECONDS);
        Ok(Arc::new(Self {
            locks: DistributedLock::new(Arc::clone(&store)),
            store,
            entries: keys(entry)?,
            leases: keys(lease)?,
            resources: (0..KEYS).map(resource).collect(),
            value: Bytes::from_static(&VALUE),
            token: LeaseToken::new(TOKEN)?,
            options: CacheEntryOptions::time_to_live(entry_life)?,
            lease: TimeToLive::from_millis(LEASE_MILLISECONDS)?,
        }))
    }

    /// Writes every entry, or removes them all where new ones are to be added.
    pub(crate) async fn prepare(&self, operation: Operation) -> Result {
        for keys in self.entries.chunks(BATCH) {
            match operation {
                Operation::Get | Operation::GetStanding => {
                    let item = |key: &CacheKey| {
                        CacheItem::new(key.clone(), self.value.clone(), self.options)
                    };
                    let items: Vec<CacheItem> = keys.iter().map(item).collect();
                    self.store.set_many(&items).await?;
                }
                Operation::Add => drop(self.store.remove_many(keys).await?),
                Operation::Lease | Operation::Lock => {}
            }
        }
        Ok(())
    }

    pub(crate) async fn apply(&self, operation: Operation, index: usize) -> bool {
        match operation {
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
        }
    }

    async fn get_or_add(&self, index: usize) -> caching_abstractions::Result<Option<Bytes>> {
        let (key, value) = (&self.entries[index], self.value.clone());
        self.store.get_or_add(key, value, self.options).await
    }
}
