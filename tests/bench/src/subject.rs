//! What is measured and what it is measured against, behind one face.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use caching_abstractions::{CacheEntryOptions, CacheKey, CacheStore, hours};
use caching_inmemory::InMemoryStore;
use futures_util::FutureExt;
use moka::Expiry;
use moka::ops::compute::{CompResult, Op};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::Result;

/// Larger than everything a measurement writes, so that nothing is evicted or refused.
const BUDGET: u64 = 8 << 30;
const LIFETIME: Duration = hours(1);

/// The operations of a store that the baseline can do as well; `true` where they succeed.
pub(crate) trait Subject: Send + Sync {
    fn get(&self, key: &CacheKey) -> bool;
    fn set(&self, key: &CacheKey, value: &Bytes) -> bool;
    fn try_add(&self, key: &CacheKey, value: &Bytes) -> bool;
    fn try_replace(&self, key: &CacheKey, expected: &[u8], value: &Bytes) -> bool;
    fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> bool;
}

/// The in-memory store as a user has it: behind the trait, every call a boxed future.
pub(crate) struct Ours {
    store: Arc<dyn CacheStore>,
    options: CacheEntryOptions,
}

impl Ours {
    pub(crate) fn new() -> Result<Self> {
        let store = InMemoryStore::builder()
            .max_capacity_bytes(BUDGET)
            .max_protected_bytes(BUDGET)
            .build();
        Ok(Self {
            store: Arc::new(store),
            options: CacheEntryOptions::time_to_live(LIFETIME)?,
        })
    }

    pub(crate) fn store(&self) -> &Arc<dyn CacheStore> {
        &self.store
    }
}

/// The answer of a call to the in-memory store, which never waits; none counts as a failure.
fn ready<T>(call: impl Future<Output = caching_abstractions::Result<T>>) -> Option<T> {
    call.now_or_never()?.ok()
}

impl Subject for Ours {
    fn get(&self, key: &CacheKey) -> bool {
        ready(self.store.get(key)).flatten().is_some()
    }

    fn set(&self, key: &CacheKey, value: &Bytes) -> bool {
        ready(self.store.set(key, value.clone(), self.options)).is_some()
    }

    fn try_add(&self, key: &CacheKey, value: &Bytes) -> bool {
        ready(self.store.try_add(key, value.clone(), self.options)) == Some(true)
    }

    fn try_replace(&self, key: &CacheKey, expected: &[u8], value: &Bytes) -> bool {
        let call = self
            .store
            .try_replace(key, expected, value.clone(), self.options);
        ready(call) == Some(true)
    }

    fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> bool {
        ready(self.store.try_remove(key, expected)) == Some(true)
    }
}

/// Bare moka with the same keys, values, eviction policy, weights and expiry.
///
/// The deadline stands beside the value, because moka's own time to live would be one for all.
pub(crate) struct BareMoka(Cache<CacheKey, Entry>);

#[derive(Clone)]
struct Entry {
    value: Bytes,
    deadline: Instant,
}

impl Entry {
    fn new(value: &Bytes) -> Self {
        Self {
            value: value.clone(),
            deadline: Instant::now() + LIFETIME,
        }
    }
}

struct AtDeadline;

impl Expiry<CacheKey, Entry> for AtDeadline {
    fn expire_after_create(&self, _: &CacheKey, entry: &Entry, at: Instant) -> Option<Duration> {
        Some(entry.deadline.saturating_duration_since(at))
    }

    fn expire_after_update(
        &self,
        _: &CacheKey,
        entry: &Entry,
        at: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(entry.deadline.saturating_duration_since(at))
    }
}

impl BareMoka {
    pub(crate) fn new() -> Self {
        let weight = |key: &CacheKey, entry: &Entry| {
            u32::try_from(key.as_str().len() + entry.value.len()).unwrap_or(u32::MAX)
        };
        Self(
            Cache::builder()
                .max_capacity(BUDGET)
                .weigher(weight)
                .eviction_policy(EvictionPolicy::lru())
                .expire_after(AtDeadline)
                .build(),
        )
    }

    /// Applies `change` if the value is `expected`.
    fn compare(&self, key: &CacheKey, expected: &[u8], change: Op<Entry>) -> bool {
        let result = self.0.entry(key.clone()).and_compute_with(|found| {
            match found.is_some_and(|found| found.value().value == expected) {
                true => change,
                false => Op::Nop,
            }
        });
        matches!(result, CompResult::ReplacedWith(_) | CompResult::Removed(_))
    }
}

impl Subject for BareMoka {
    fn get(&self, key: &CacheKey) -> bool {
        self.0.get(key).is_some()
    }

    fn set(&self, key: &CacheKey, value: &Bytes) -> bool {
        self.0.insert(key.clone(), Entry::new(value));
        true
    }

    fn try_add(&self, key: &CacheKey, value: &Bytes) -> bool {
        let entry = self.0.entry(key.clone());
        let result = entry.and_compute_with(|found| match found {
            Some(_) => Op::Nop,
            None => Op::Put(Entry::new(value)),
        });
        matches!(result, CompResult::Inserted(_))
    }

    fn try_replace(&self, key: &CacheKey, expected: &[u8], value: &Bytes) -> bool {
        self.compare(key, expected, Op::Put(Entry::new(value)))
    }

    fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> bool {
        self.compare(key, expected, Op::Remove)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_behaves(subject: &impl Subject) {
        let key = CacheKey::new("a").unwrap();
        let (old, new) = (Bytes::from_static(b"old"), Bytes::from_static(b"new"));
        assert!(!subject.get(&key));
        assert!(!subject.try_replace(&key, b"old", &new));
        assert!(subject.try_add(&key, &old));
        assert!(!subject.try_add(&key, &new));
        assert!(subject.get(&key));
        assert!(subject.try_replace(&key, b"old", &new));
        assert!(!subject.try_remove(&key, b"old"));
        assert!(subject.try_remove(&key, b"new"));
        assert!(!subject.get(&key));
        assert!(subject.set(&key, &old));
        assert!(subject.get(&key));
    }

    #[test]
    fn both_do_the_same() {
        assert_behaves(&Ours::new().unwrap());
        assert_behaves(&BareMoka::new());
    }
}
