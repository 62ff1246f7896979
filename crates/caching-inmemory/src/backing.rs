use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::{CacheEntryOptions, CacheKey, CachingError, Clock, Result, TimeToLive};

use crate::budget::{NoRoom, ProtectedBudget, Share};
use crate::eviction::{Evictable, EvictableEntry, Freeing};
use crate::fencing::FencingNumbers;
use crate::key::{KeyHasher, KeyRef};
use crate::life::{Life, nanoseconds};
use crate::locked::{Locked, Standing, Write};
use crate::number;
use crate::shard::Shard;
use crate::watchers::Watchers;

/// What all views of one store share.
#[derive(Debug)]
pub(crate) struct Backing {
    pub(crate) clock: Arc<dyn Clock>,
    default_time_to_live: TimeToLive,
    hasher: KeyHasher,
    shards: Box<[Shard]>,
    pub(crate) protected: ProtectedBudget,
    pub(crate) evictable: Evictable,
    pub(crate) fencing: FencingNumbers,
    pub(crate) watchers: Watchers,
    /// Whether a sweeper runs.
    pub(crate) sweeping: AtomicBool,
}

/// How a backing is made.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) default_time_to_live: TimeToLive,
    pub(crate) max_capacity_bytes: u64,
    pub(crate) max_protected_bytes: u64,
    pub(crate) freeing: Freeing,
}

impl Backing {
    /// A power of two; many more than threads, so that two of them rarely want the same lock.
    const SHARDS: usize = 128;

    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            clock: parts.clock,
            default_time_to_live: parts.default_time_to_live,
            hasher: KeyHasher::default(),
            shards: (0..Self::SHARDS).map(|_| Shard::default()).collect(),
            protected: ProtectedBudget::new(parts.max_protected_bytes),
            evictable: Evictable::new(parts.max_capacity_bytes, parts.freeing),
            fencing: FencingNumbers::default(),
            watchers: Watchers::default(),
            sweeping: AtomicBool::new(false),
        }
    }

    pub(crate) fn hash(&self, text: &str) -> u64 {
        self.hasher.hash(text)
    }

    pub(crate) fn now(&self) -> u64 {
        nanoseconds(self.clock.monotonic())
    }

    /// Taken from the middle of the hash: the tables inside use both of its ends.
    pub(crate) fn shard(&self, key: KeyRef<'_>) -> &Shard {
        &self.shards[(key.hash >> 32) as usize % Self::SHARDS]
    }

    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Reads `key`.
    ///
    /// An evictable entry is read without a lock, and still the answer is what stood there at one
    /// moment:
    /// - A hit in either half is the value of that moment. A key that moves leaves the evictable
    ///   half under the shard's lock, and nobody sees its new place before that lock is free.
    /// - A miss in both may have missed the move between them, so the protected half is asked
    ///   again if anything came to it since. If the key is not there then, it was absent when the
    ///   evictable half was asked, or it left the protected half since. What leaves that half
    ///   never goes over to the other one: it is removed or has expired, so at that moment the key
    ///   was absent.
    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<Bytes> {
        let shard = self.shard(key);
        let arrivals = shard.arrivals();
        if !shard.is_empty()
            && let Some(value) = self.read_protected(shard, key)
        {
            return Some(value);
        }
        if let Some(value) = self.read_evictable(key) {
            return Some(value);
        }
        // Whoever moved the key counted that before it took the key out of the evictable half.
        fence(Ordering::SeqCst);
        if shard.arrivals() == arrivals {
            return None;
        }
        self.read_protected(shard, key)
    }

    fn read_protected(&self, shard: &Shard, key: KeyRef<'_>) -> Option<Bytes> {
        let mut entries = shard.lock();
        let slot = entries.slot_of(key)?;
        let (now, life) = (self.now(), entries.get(slot).life());
        if life.is_over(now) {
            return None;
        }
        if life.period > 0 {
            let deadline = now.saturating_add(life.period);
            entries.set_life(slot, Life { deadline, ..life });
        }
        Some(entries.get(slot).value.clone())
    }

    fn read_evictable(&self, key: KeyRef<'_>) -> Option<Bytes> {
        let entry = self.evictable.get(key)?;
        entry.read(self.now()).then_some(entry.value)
    }

    /// Writes `key`, whatever was there: a protected entry stays protected, else the entry is
    /// evictable.
    pub(crate) fn set(
        &self,
        key: KeyRef<'_>,
        value: &[u8],
        options: CacheEntryOptions,
    ) -> Result<()> {
        let value = Bytes::copy_from_slice(value);
        let stored = key.to_stored();
        self.evictable.keep_up();
        let mut locked = Locked::new(self, key);
        if locked.find_protected().is_none() {
            self.evictable.check_fits(key.text, &value)?;
            let life = self.life(options, &locked);
            self.evictable
                .insert(stored, EvictableEntry::new(value, life));
            return Ok(());
        }
        drop(locked);
        self.set_protected(key, value, options)
    }

    /// The rare part of `set`: where a protected entry stands, or stood a moment ago.
    fn set_protected(
        &self,
        key: KeyRef<'_>,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<()> {
        let mut write = self.new_write(value, options);
        let written = self.with_room(key, |locked| {
            let Some(slot) = locked.find_protected() else {
                return Ok(false);
            };
            write.life = self.life(options, locked);
            locked.write(&Standing::Protected(slot), &mut write)?;
            Ok(true)
        })?;
        if written {
            return Ok(());
        }
        self.set(key, &write.value, options)
    }

    /// `true` if `key` was absent and is now written.
    pub(crate) fn try_add(
        &self,
        key: KeyRef<'_>,
        value: &[u8],
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let mut write = self.new_write(Bytes::copy_from_slice(value), options);
        self.with_room(key, |locked| match locked.find() {
            Standing::Absent => {
                write.life = self.life(options, locked);
                locked.write(&Standing::Absent, &mut write)?;
                Ok(true)
            }
            _ => Ok(false),
        })
    }

    /// None if `key` was absent and is now written; else what stands there.
    pub(crate) fn get_or_add(
        &self,
        key: KeyRef<'_>,
        value: &[u8],
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        let mut write = self.new_write(Bytes::copy_from_slice(value), options);
        self.with_room(key, |locked| {
            let standing = locked.find();
            if let Some(value) = locked.value(&standing) {
                return Ok(Some(value.clone()));
            }
            write.life = self.life(options, locked);
            locked.write(&standing, &mut write)?;
            Ok(None)
        })
    }

    pub(crate) fn try_replace(
        &self,
        key: KeyRef<'_>,
        expected: &[u8],
        value: &[u8],
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let mut write = self.new_write(Bytes::copy_from_slice(value), options);
        self.with_room(key, |locked| {
            let standing = locked.find();
            if !locked.holds(&standing, expected) {
                return Ok(false);
            }
            write.life = self.life(options, locked);
            locked.write(&standing, &mut write)?;
            Ok(true)
        })
    }

    /// `true` if `expected` stood at `key` and is now gone; wakes who watches.
    pub(crate) fn try_remove(&self, key: KeyRef<'_>, expected: &[u8]) -> bool {
        let mut locked = Locked::new(self, key);
        let standing = locked.find();
        let removed = locked.holds(&standing, expected) && locked.remove(&standing);
        self.unlock_after_removal(locked, key, removed)
    }

    /// `true` if `key` was there and is now gone; wakes who watches.
    pub(crate) fn remove(&self, key: KeyRef<'_>) -> bool {
        let mut locked = Locked::new(self, key);
        let standing = locked.find();
        let removed = locked.remove(&standing);
        self.unlock_after_removal(locked, key, removed)
    }

    fn unlock_after_removal(&self, locked: Locked<'_>, key: KeyRef<'_>, removed: bool) -> bool {
        drop(locked);
        if removed {
            self.watchers.wake(key.text);
        }
        removed
    }

    pub(crate) fn try_extend(
        &self,
        key: KeyRef<'_>,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        self.with_room(key, |locked| {
            let standing = locked.find();
            if !locked.holds(&standing, expected) {
                return Ok(false);
            }
            let life = Life::fixed(time_to_live, locked.now);
            match &standing {
                Standing::Protected(slot) => locked.set_life(*slot, life),
                _ => {
                    let mut write = Write {
                        value: Bytes::copy_from_slice(expected),
                        life,
                        fencing: 0,
                        share: Share::Plain,
                    };
                    locked.write(&standing, &mut write)?;
                }
            }
            Ok(true)
        })
    }

    /// Adds `delta` to the number at `key`, which errors call `name`.
    pub(crate) fn increment(
        &self,
        key: KeyRef<'_>,
        name: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        let outcome = self.with_room(key, |locked| {
            let standing = locked.find();
            let sum = match locked.value(&standing).map(|value| number::parse(value)) {
                None => Ok(delta),
                Some(None) => Err("a value that is no decimal 64-bit number"),
                Some(Some(number)) => number
                    .checked_add(delta)
                    .ok_or("a number that the sum would take out of the 64-bit range"),
            };
            let Ok(sum) = sum else { return Ok(sum) };
            let mut write = self.new_write(Bytes::from(sum.to_string()), options);
            write.life = match &standing {
                Standing::Protected(slot) => locked.protected(*slot).life(),
                Standing::Evictable(_) | Standing::Absent => self.life(options, locked),
            };
            self.write_number(locked, &standing, write)?;
            Ok(Ok(sum))
        })?;
        outcome.map_err(|found| CachingError::wrong_kind(name, found))
    }

    /// Writes the new number; an evictable one keeps its life as it moves.
    fn write_number(
        &self,
        locked: &mut Locked<'_>,
        standing: &Standing,
        mut write: Write,
    ) -> Result<(), NoRoom> {
        locked.write(standing, &mut write)?;
        if let Standing::Evictable(entry) = standing
            && let Some(life) = entry.take_life(locked.now)
            && let Some(slot) = locked.find_protected()
        {
            locked.set_life(slot, life);
        }
        Ok(())
    }

    pub(crate) fn time_to_live(&self, key: KeyRef<'_>) -> Option<Duration> {
        let mut locked = Locked::new(self, key);
        let deadline = match locked.find() {
            Standing::Protected(slot) => locked.protected(slot).life().deadline,
            Standing::Evictable(entry) => entry.deadline(locked.now)?,
            Standing::Absent => return None,
        };
        Some(Duration::from_nanos(deadline - locked.now))
    }

    /// Drops what has expired from the protected half; wakes who watches it.
    pub(crate) fn drop_expired(&self) {
        for shard in &self.shards {
            while self.drop_some_expired(shard) {}
        }
    }

    /// Drops a bounded number of entries under one lock; `true` if there may be more.
    fn drop_some_expired(&self, shard: &Shard) -> bool {
        const BATCH: usize = 256;
        // Values are freed, and watchers woken, after the lock.
        let mut dropped = Vec::new();
        let mut entries = shard.lock();
        let now = self.now();
        while dropped.len() < BATCH
            && let Some(expired) = entries.pop_expired(now)
        {
            self.protected.release(expired.charge());
            dropped.push(expired);
        }
        let more = dropped.len() == BATCH;
        if !dropped.is_empty() && !more {
            entries.shrink();
        }
        drop(entries);
        for expired in &dropped {
            self.watchers.wake(&expired.key().text);
        }
        more
    }

    /// Runs `operation` under the lock of `key`; if it does not fit, makes room from what has
    /// expired anywhere and runs it once more.
    pub(crate) fn with_room<T>(
        &self,
        key: KeyRef<'_>,
        mut operation: impl FnMut(&mut Locked<'_>) -> Result<T, NoRoom>,
    ) -> Result<T> {
        if let Ok(done) = operation(&mut Locked::new(self, key)) {
            return Ok(done);
        }
        self.drop_expired();
        operation(&mut Locked::new(self, key)).map_err(|NoRoom| self.protected.full())
    }

    fn life(&self, options: CacheEntryOptions, locked: &Locked<'_>) -> Life {
        Life::of(options, self.default_time_to_live, locked.now)
    }

    /// A write whose life is set once its time is known.
    fn new_write(&self, value: Bytes, options: CacheEntryOptions) -> Write {
        Write {
            value,
            life: Life::default(),
            fencing: 0,
            share: if options.is_essential() {
                Share::Essential
            } else {
                Share::Plain
            },
        }
    }
}
