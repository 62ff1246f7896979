//! The state of a [`ReferenceStore`](super::ReferenceStore), as plain sequential code.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CachingError, ErrorCode, Expiration, Result, TimeToLive, days,
};

use crate::harness::Budgets;

/// The two clocks at the moment of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) monotonic: Duration,
    pub(super) unix_time: Duration,
}

/// Whether an entry may be evicted, and which room it may take (S2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    Evictable,
    Protected,
    Essential,
}

impl Rank {
    pub(super) fn of(options: CacheEntryOptions) -> Self {
        if options.is_essential() {
            Self::Essential
        } else {
            Self::Protected
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// None for a value of another kind.
    pub(super) value: Option<Bytes>,
    pub(super) ends: Duration,
    pub(super) sliding: Option<Duration>,
    pub(super) rank: Rank,
}

#[derive(Clone, Debug)]
struct Fence {
    last: u64,
    kept_until: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    entries: BTreeMap<String, Entry>,
    fences: BTreeMap<String, Fence>,
    default_time_to_live: Duration,
    budgets: Option<Budgets>,
}

impl Model {
    pub(super) fn new(default_time_to_live: Duration, budgets: Option<Budgets>) -> Self {
        Self {
            entries: BTreeMap::new(),
            fences: BTreeMap::new(),
            default_time_to_live,
            budgets,
        }
    }

    pub(super) fn restart_empty(&mut self) {
        self.entries.clear();
        self.fences.clear();
    }

    /// The entry of `key` that has not expired (E4).
    pub(super) fn entry(&mut self, now: Now, key: &str) -> Option<&mut Entry> {
        self.entries
            .get_mut(key)
            .filter(|entry| now.monotonic < entry.ends)
    }

    /// The value of `key`; a value of another kind is an error (S7).
    pub(super) fn value(&mut self, now: Now, key: &str) -> Result<Option<Bytes>> {
        match self.entry(now, key) {
            None => Ok(None),
            Some(Entry {
                value: Some(value), ..
            }) => Ok(Some(value.clone())),
            Some(_) => Err(CachingError::new(
                ErrorCode::WrongKind,
                format!("the key `{key}` holds another kind of value"),
            )
            .with_parameter("key", key)),
        }
    }

    /// Reads `key`, which restarts sliding (E2).
    pub(super) fn read(&mut self, now: Now, key: &str) -> Result<Option<Bytes>> {
        let value = self.value(now, key)?;
        if let Some(entry) = self.entry(now, key)
            && let Some(period) = entry.sliding
        {
            entry.ends = now.monotonic + period;
        }
        Ok(value)
    }

    /// Whether `key` holds `expected`.
    pub(super) fn matches(&mut self, now: Now, key: &str, expected: &[u8]) -> Result<bool> {
        Ok(self.value(now, key)?.is_some_and(|value| value == expected))
    }

    /// Writes an entry with a whole new expiration (E5), if there is room (S2).
    pub(super) fn write(
        &mut self,
        now: Now,
        key: &str,
        value: Bytes,
        options: CacheEntryOptions,
        rank: Rank,
    ) -> Result<()> {
        // A `set` never makes a protected entry evictable.
        let stands = self.entry(now, key).map(|entry| entry.rank);
        let rank = match (rank, stands) {
            (Rank::Evictable, Some(stands)) => stands,
            (rank, _) => rank,
        };
        self.make_room(now, key, weight(key, value.len()), rank)?;
        let (life, sliding) = match options.expiration() {
            Expiration::StoreDefault => (self.default_time_to_live, None),
            Expiration::TimeToLive(life) => (life.as_duration(), None),
            Expiration::Sliding(period) => (period.as_duration(), Some(period.as_duration())),
        };
        let entry = Entry {
            value: Some(value),
            ends: now.monotonic + life,
            sliding,
            rank,
        };
        self.entries.insert(key.to_owned(), entry);
        Ok(())
    }

    /// Puts another value into an entry that stands, and leaves its expiration.
    pub(super) fn rewrite(&mut self, now: Now, key: &str, value: Bytes) -> Result<()> {
        let rank = match self.entry(now, key).map(|entry| entry.rank) {
            Some(Rank::Essential) => Rank::Essential,
            _ => Rank::Protected,
        };
        self.make_room(now, key, weight(key, value.len()), rank)?;
        if let Some(entry) = self.entry(now, key) {
            entry.value = Some(value);
            entry.rank = rank;
        }
        Ok(())
    }

    pub(super) fn plant_foreign_value(&mut self, now: Now, key: &str) {
        let entry = Entry {
            value: None,
            ends: now.monotonic + TimeToLive::MAX.as_duration(),
            sliding: None,
            rank: Rank::Protected,
        };
        self.entries.insert(key.to_owned(), entry);
    }

    /// Takes `key` away; `true` if it was there.
    pub(super) fn remove(&mut self, now: Now, key: &str) -> bool {
        let was_there = self.entry(now, key).is_some();
        self.entries.remove(key);
        was_there
    }

    /// Every key that lives.
    pub(super) fn keys(&self, now: Now) -> impl Iterator<Item = &str> {
        let alive = self
            .entries
            .iter()
            .filter(move |(_, entry)| now.monotonic < entry.ends);
        alive.map(|(key, _)| key.as_str())
    }

    /// The number issued last for `key`, if it is still known.
    pub(super) fn last_fencing_number(&self, now: Now, key: &str) -> Option<u64> {
        let fence = self.fences.get(key)?;
        (now.monotonic < fence.kept_until).then_some(fence.last)
    }

    /// A new number for `key`, larger than all before it (S6).
    pub(super) fn fence(&mut self, now: Now, key: &str, life: TimeToLive) -> u64 {
        let clock = u64::try_from(now.unix_time.as_micros()).unwrap_or(u64::MAX);
        let last = self.last_fencing_number(now, key).unwrap_or(0);
        let number = clock.max(last + 1);
        self.keep_fence(now, key, number, life);
        number
    }

    /// Keeps the number beyond the lease that was given for `life`.
    pub(super) fn keep_fence(&mut self, now: Now, key: &str, last: u64, life: TimeToLive) {
        let life = life.as_duration();
        let kept_until = now.monotonic + life + days(1).max(life * 2);
        self.fences
            .insert(key.to_owned(), Fence { last, kept_until });
    }

    /// Sees that an entry of `weight` fits; evicts what may be evicted.
    fn make_room(&mut self, now: Now, key: &str, weight: u64, rank: Rank) -> Result<()> {
        let Some(budgets) = self.budgets else {
            return Ok(());
        };
        self.entries.retain(|_, entry| now.monotonic < entry.ends);
        let budget = match rank {
            Rank::Evictable => budgets.evictable_bytes,
            // A share of 5 % is kept for leases and markers.
            Rank::Protected => budgets.protected_bytes / 20 * 19,
            Rank::Essential => budgets.protected_bytes,
        };
        if weight > budget {
            return Err(full());
        }
        while self.used(key, rank) + weight > budget {
            let victim = self
                .entries
                .iter()
                .find(|(other, entry)| *other != key && entry.rank == Rank::Evictable)
                .map(|(other, _)| other.clone());
            match victim {
                Some(victim) if rank == Rank::Evictable => self.entries.remove(&victim),
                _ => return Err(full()),
            };
        }
        Ok(())
    }

    /// What the other entries of the same room take.
    fn used(&self, key: &str, rank: Rank) -> u64 {
        let evictable = rank == Rank::Evictable;
        self.entries
            .iter()
            .filter(|(other, entry)| *other != key && (entry.rank == Rank::Evictable) == evictable)
            .map(|(other, entry)| weight(other, entry.value.as_ref().map_or(0, Bytes::len)))
            .sum()
    }
}

fn weight(key: &str, value: usize) -> u64 {
    const OVERHEAD: usize = 64;
    u64::try_from(key.len() + value + OVERHEAD).unwrap_or(u64::MAX)
}

fn full() -> CachingError {
    CachingError::store_full("the store has no room; raise its budget or write less")
}
