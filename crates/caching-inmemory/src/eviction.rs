use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use caching_abstractions::CachingError;
use moka::Expiry;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use parking_lot::Mutex;

use crate::budget::evictable_charge;
use crate::key::{CarriedHash, KeyRef, StoredKey};
use crate::life::{Life, SlidingLife, nanoseconds};

/// The evictable half: a cache bounded in bytes that lets the least recently used entries go.
///
/// - The policy is plain LRU: a frequency-based one turns fresh keys away when it is full, and a
///   value that was just set must be readable.
/// - Changes of a key happen under the lock of its shard, reads need no lock.
pub(crate) struct Evictable {
    cache: Cache<StoredKey, EvictableEntry, CarriedHash>,
    capacity: u64,
    upkeep: Upkeep,
}

/// One evictable entry, as the cache clones it for a reader.
#[derive(Clone, Debug)]
pub(crate) struct EvictableEntry {
    pub(crate) value: Bytes,
    life: EvictableLife,
}

#[derive(Clone, Debug)]
enum EvictableLife {
    Fixed { deadline: u64 },
    Sliding(Arc<SlidingLife>),
}

impl EvictableEntry {
    pub(crate) fn new(value: Bytes, life: Life) -> Self {
        let life = if life.period == 0 {
            EvictableLife::Fixed {
                deadline: life.deadline,
            }
        } else {
            EvictableLife::Sliding(Arc::new(SlidingLife::new(life)))
        };
        Self { value, life }
    }

    /// The deadline if the entry is there at `now`.
    pub(crate) fn deadline(&self, now: u64) -> Option<u64> {
        match &self.life {
            EvictableLife::Fixed { deadline } => Some(*deadline).filter(|&at| at > now),
            EvictableLife::Sliding(life) => life.deadline(now),
        }
    }

    /// Whether the entry is there for a read at `now`, whose time restarts a sliding clock (E2).
    pub(crate) fn read(&self, now: u64) -> bool {
        match &self.life {
            EvictableLife::Fixed { deadline } => *deadline > now,
            EvictableLife::Sliding(life) => life.restart(now),
        }
    }

    /// The life of an entry that moves into the protected half as it is; none if it is over.
    pub(crate) fn take_life(&self, now: u64) -> Option<Life> {
        let (deadline, period) = match &self.life {
            EvictableLife::Fixed { .. } => (self.deadline(now)?, 0),
            EvictableLife::Sliding(life) => (life.take(now)?, life.period()),
        };
        Some(Life { deadline, period })
    }
}

impl Evictable {
    pub(crate) fn new(capacity: u64, freeing: Freeing) -> Self {
        let cache = Cache::builder()
            .max_capacity(capacity)
            .weigher(|key: &StoredKey, entry: &EvictableEntry| {
                let charge = evictable_charge(&key.text, &entry.value);
                u32::try_from(charge).unwrap_or(u32::MAX)
            })
            .eviction_policy(EvictionPolicy::lru())
            .expire_after(freeing)
            .build_with_hasher(CarriedHash);
        Self {
            cache,
            capacity,
            upkeep: Upkeep::default(),
        }
    }

    /// Refuses an entry larger than the budget: the cache would drop it, and the old one with it.
    pub(crate) fn check_fits(&self, key: &str, value: &[u8]) -> Result<(), CachingError> {
        let (charge, capacity) = (evictable_charge(key, value), self.capacity);
        if charge <= capacity {
            return Ok(());
        }
        tracing::debug!(charge, capacity, "an entry is larger than its budget");
        Err(CachingError::store_full(format!(
            "the entry takes {charge} bytes and the evictable entries of the in-memory store may \
             take {capacity}; raise XiHan:Caching:InMemory:MaxCapacityBytes or store less"
        )))
    }

    /// A read: counts as a use.
    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<EvictableEntry> {
        self.cache.get(&key)
    }

    /// Looks without counting it as a use where the key is absent, which is far cheaper.
    pub(crate) fn peek(&self, key: KeyRef<'_>) -> Option<EvictableEntry> {
        if self.cache.contains_key(&key) {
            self.cache.get(&key)
        } else {
            None
        }
    }

    /// Only under the lock of the key's shard.
    pub(crate) fn insert(&self, key: StoredKey, entry: EvictableEntry) {
        self.cache.insert(key, entry);
    }

    /// Only under the lock of the key's shard.
    pub(crate) fn remove(&self, key: KeyRef<'_>) {
        self.cache.invalidate(&key);
    }

    /// Brings the cache's own books up to date now and then; call it without a lock.
    ///
    /// The cache otherwise does that inside a write, where the shard's lock would keep others
    /// waiting.
    pub(crate) fn keep_up(&self) {
        if self.upkeep.is_due() {
            self.upkeep.run(&self.cache);
        }
    }

    /// Brings the cache's own books up to date.
    pub(crate) fn settle(&self) {
        self.cache.run_pending_tasks();
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.cache.weighted_size()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cache.entry_count() == 0
    }

    pub(crate) fn iter(&self) -> moka::sync::Iter<'_, StoredKey, EvictableEntry> {
        self.cache.iter()
    }
}

impl fmt::Debug for Evictable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evictable")
            .field("capacity", &self.capacity)
            .field("used_bytes", &self.used_bytes())
            .finish_non_exhaustive()
    }
}

/// Counts writes, so that one of many brings the books up to date.
#[derive(Debug, Default)]
struct Upkeep {
    writes: AtomicU32,
    running: Mutex<()>,
}

impl Upkeep {
    /// Half of what makes the cache do it by itself.
    const INTERVAL: u32 = 32;

    fn is_due(&self) -> bool {
        self.writes
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_add(1)
            .is_multiple_of(Self::INTERVAL)
    }

    fn run(&self, cache: &Cache<StoredKey, EvictableEntry, CarriedHash>) {
        if let Some(_running) = self.running.try_lock() {
            cache.run_pending_tasks();
        }
    }
}

/// When the cache frees expired entries: some time after their deadline, which alone decides
/// whether they are there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Freeing {
    /// The store runs on the machine's monotonic clock, as the cache does; `started` and
    /// `monotonic` are the same moment on either.
    OnTime { started: Instant, monotonic: u64 },
    /// The store runs on another clock: the cache's time says nothing, so entries stay until they
    /// are touched or evicted.
    OnDemand,
}

impl Freeing {
    /// A clock of the store that is paused or set back for a while loses nothing.
    const SLACK: Duration = Duration::from_secs(10);

    fn after(&self, deadline: u64, at: Instant) -> Option<Duration> {
        match self {
            Self::OnTime { started, monotonic } => {
                let now =
                    monotonic.saturating_add(nanoseconds(at.saturating_duration_since(*started)));
                Some(Duration::from_nanos(deadline.saturating_sub(now)) + Self::SLACK)
            }
            Self::OnDemand => None,
        }
    }
}

impl Expiry<StoredKey, EvictableEntry> for Freeing {
    fn expire_after_create(
        &self,
        _: &StoredKey,
        entry: &EvictableEntry,
        at: Instant,
    ) -> Option<Duration> {
        match &entry.life {
            EvictableLife::Fixed { deadline } => self.after(*deadline, at),
            EvictableLife::Sliding(life) => self.after(life.deadline(0)?, at),
        }
    }

    fn expire_after_update(
        &self,
        key: &StoredKey,
        entry: &EvictableEntry,
        at: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        self.expire_after_create(key, entry, at)
    }

    /// A read of a sliding entry restarts its clock only after the cache has handed it out, so
    /// the whole period counts from now.
    fn expire_after_read(
        &self,
        _: &StoredKey,
        entry: &EvictableEntry,
        _: Instant,
        left: Option<Duration>,
        _: Instant,
    ) -> Option<Duration> {
        match (&entry.life, self) {
            (EvictableLife::Sliding(life), Self::OnTime { .. }) => {
                Some(Duration::from_nanos(life.period()) + Self::SLACK)
            }
            _ => left,
        }
    }
}
