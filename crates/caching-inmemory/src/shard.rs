use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use hashbrown::HashTable;
use parking_lot::{Mutex, MutexGuard};

use crate::budget::protected_charge;
use crate::deadlines::Deadlines;
use crate::key::{KeyRef, StoredKey};
use crate::life::Life;

/// One shard: the lock under which every change of its keys happens, in both halves, and the
/// protected entries themselves.
///
/// Two numbers outside the lock spare readers the lock where they show that it would find nothing.
/// They change at the same point of an operation as the entries do.
///
/// Aligned so that two shards never share a cache line, or a pair that is fetched together.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Shard {
    entries: Mutex<ProtectedEntries>,
    /// How many entries there are.
    occupied: AtomicUsize,
    /// How many entries ever came.
    arrivals: AtomicU64,
}

impl Shard {
    pub(crate) fn lock(&self) -> LockedShard<'_> {
        LockedShard {
            shard: self,
            entries: self.entries.lock(),
        }
    }

    /// Whether there is no entry.
    ///
    /// Whoever read [`arrivals`](Self::arrivals) before sees here every entry counted there.
    pub(crate) fn is_empty(&self) -> bool {
        self.occupied.load(Ordering::Acquire) == 0
    }

    /// A number that is another one after an entry came.
    pub(crate) fn arrivals(&self) -> u64 {
        self.arrivals.load(Ordering::Acquire)
    }
}

/// A shard under its lock.
pub(crate) struct LockedShard<'a> {
    shard: &'a Shard,
    entries: MutexGuard<'a, ProtectedEntries>,
}

impl LockedShard<'_> {
    /// Adds the entry of a key that is not there.
    pub(crate) fn insert(&mut self, entry: ProtectedEntry) {
        self.entries.insert(entry);
        self.publish_occupied();
        self.shard.arrivals.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes the entry of `slot` out.
    pub(crate) fn remove(&mut self, slot: usize) -> ProtectedEntry {
        let removed = self.entries.remove(slot);
        self.publish_occupied();
        removed
    }

    /// Takes out the entry that expired first, if there is one at `now`.
    pub(crate) fn pop_expired(&mut self, now: u64) -> Option<ProtectedEntry> {
        let expired = self.entries.pop_expired(now);
        self.publish_occupied();
        expired
    }

    /// Replaces the value of `slot` and what goes with it.
    pub(crate) fn replace(&mut self, slot: usize, value: Bytes, life: Life, fencing: u64) {
        self.entries.replace(slot, value, life, fencing);
    }

    pub(crate) fn set_life(&mut self, slot: usize, life: Life) {
        self.entries.set_life(slot, life);
    }

    /// Gives memory back if most of it is unused.
    pub(crate) fn shrink(&mut self) {
        self.entries.shrink();
    }

    fn publish_occupied(&self) {
        let occupied = self.entries.entries.len();
        self.shard.occupied.store(occupied, Ordering::Release);
    }
}

impl Deref for LockedShard<'_> {
    type Target = ProtectedEntries;

    fn deref(&self) -> &ProtectedEntries {
        &self.entries
    }
}

/// The protected entries of one shard, with an exact index of their deadlines.
///
/// Entries lie densely in a vector; the table holds their slots. So the table is small, growing it
/// moves four bytes an entry, and a slot names the same entry in vector and index.
#[derive(Debug, Default)]
pub(crate) struct ProtectedEntries {
    entries: Vec<ProtectedEntry>,
    slots: HashTable<u32>,
    deadlines: Deadlines,
}

/// One protected entry.
#[derive(Debug)]
pub(crate) struct ProtectedEntry {
    key: StoredKey,
    pub(crate) value: Bytes,
    life: Life,
    /// The fencing number of the lease that stands here; 0 if it is none.
    pub(crate) fencing: u64,
}

impl ProtectedEntry {
    pub(crate) fn new(key: KeyRef<'_>, value: Bytes, life: Life, fencing: u64) -> Self {
        Self {
            key: key.to_stored(),
            value,
            life,
            fencing,
        }
    }

    pub(crate) fn key(&self) -> &StoredKey {
        &self.key
    }

    pub(crate) fn life(&self) -> Life {
        self.life
    }

    pub(crate) fn charge(&self) -> u64 {
        protected_charge(&self.key.text, &self.value)
    }
}

impl ProtectedEntries {
    /// Memory for fewer entries than this is not given back.
    const KEPT_CAPACITY: usize = 256;

    /// The slot of `key`, expired or not.
    pub(crate) fn slot_of(&self, key: KeyRef<'_>) -> Option<usize> {
        let is_it = |&slot: &u32| {
            let stored = &self.entries[slot as usize].key;
            stored.hash == key.hash && &*stored.text == key.text
        };
        self.slots.find(key.hash, is_it).map(|&slot| slot as usize)
    }

    pub(crate) fn get(&self, slot: usize) -> &ProtectedEntry {
        &self.entries[slot]
    }

    /// Adds the entry of a key that is not there.
    fn insert(&mut self, entry: ProtectedEntry) {
        let Self { entries, slots, .. } = self;
        let (slot, hash) = (entries.len() as u32, entry.key.hash);
        self.deadlines.push(entry.life.deadline);
        entries.push(entry);
        slots.insert_unique(hash, slot, |&slot| entries[slot as usize].key.hash);
    }

    /// Replaces the value of `slot` and what goes with it.
    fn replace(&mut self, slot: usize, value: Bytes, life: Life, fencing: u64) {
        let entry = &mut self.entries[slot];
        entry.value = value;
        entry.fencing = fencing;
        self.set_life(slot, life);
    }

    fn set_life(&mut self, slot: usize, life: Life) {
        self.entries[slot].life = life;
        self.deadlines.set(slot, life.deadline);
    }

    /// Takes the entry of `slot` out.
    fn remove(&mut self, slot: usize) -> ProtectedEntry {
        let entry = self.entries.swap_remove(slot);
        self.deadlines.swap_remove(slot);
        let taken = slot as u32;
        if let Ok(occupied) = self
            .slots
            .find_entry(entry.key.hash, |&found| found == taken)
        {
            occupied.remove();
        }
        // The last entry has moved into the hole.
        if let Some(moved) = self.entries.get(slot) {
            let last = self.entries.len() as u32;
            if let Some(found) = self.slots.find_mut(moved.key.hash, |&found| found == last) {
                *found = taken;
            }
        }
        entry
    }

    /// Takes out the entry that expired first, if there is one at `now`.
    fn pop_expired(&mut self, now: u64) -> Option<ProtectedEntry> {
        let (deadline, slot) = self.deadlines.first()?;
        (deadline <= now).then(|| self.remove(slot))
    }

    /// Gives memory back if most of it is unused.
    fn shrink(&mut self) {
        let Self { entries, slots, .. } = self;
        let target = (entries.len() * 2).max(Self::KEPT_CAPACITY);
        if entries.capacity() > 2 * target {
            entries.shrink_to(target);
            self.deadlines.shrink_to(target);
            slots.shrink_to(target, |&slot| entries[slot as usize].key.hash);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ProtectedEntry> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    fn life(deadline: u64) -> Life {
        Life {
            deadline,
            period: 0,
        }
    }

    /// Hashes that collide often, so that a slot is never found by its hash alone.
    fn key(text: &str) -> KeyRef<'_> {
        let hash = text.bytes().map(u64::from).sum::<u64>() % 3;
        KeyRef { hash, text }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, u64),
        Replace(u8, u64),
        Remove(u8),
        Expire(u64),
        Shrink,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0_u8..20, 0_u64..100).prop_map(|(name, at)| Step::Insert(name, at)),
            2 => (0_u8..20, 0_u64..100).prop_map(|(name, at)| Step::Replace(name, at)),
            2 => (0_u8..20).prop_map(Step::Remove),
            1 => (0_u64..100).prop_map(Step::Expire),
            1 => Just(Step::Shrink),
        ]
    }

    fn expire(shard: &mut ProtectedEntries, model: &mut HashMap<String, u64>, now: u64) {
        while let Some(entry) = shard.pop_expired(now) {
            assert_eq!(
                model.remove(&*entry.key().text),
                Some(entry.life().deadline)
            );
        }
        assert!(model.values().all(|&deadline| deadline > now));
    }

    proptest! {
        #[test]
        fn s2_a_shard_is_a_map_with_exact_deadlines(
            steps in proptest::collection::vec(step(), 1..200),
        ) {
            let mut shard = ProtectedEntries::default();
            let mut model: HashMap<String, u64> = HashMap::new();
            for step in steps {
                match step {
                    Step::Insert(name, at) | Step::Replace(name, at) => {
                        let text = name.to_string();
                        let value = Bytes::from(at.to_string());
                        match shard.slot_of(key(&text)) {
                            Some(slot) => shard.replace(slot, value, life(at), 0),
                            None => shard.insert(ProtectedEntry::new(key(&text), value, life(at), 0)),
                        }
                        model.insert(text, at);
                    }
                    Step::Remove(name) => {
                        let text = name.to_string();
                        let removed = shard.slot_of(key(&text)).map(|slot| shard.remove(slot));
                        prop_assert_eq!(removed.map(|e| e.life().deadline), model.remove(&text));
                    }
                    Step::Expire(now) => expire(&mut shard, &mut model, now),
                    Step::Shrink => shard.shrink(),
                }
                prop_assert_eq!(shard.iter().count(), model.len());
                for (text, at) in &model {
                    let entry = shard.get(shard.slot_of(key(text)).unwrap());
                    prop_assert_eq!(&*entry.key().text, text);
                    prop_assert_eq!(&entry.value, &Bytes::from(at.to_string()));
                }
            }
        }
    }

    #[test]
    fn s2_memory_is_given_back_when_a_crowd_has_gone() {
        let mut shard = ProtectedEntries::default();
        for number in 0..10_000 {
            let text = number.to_string();
            shard.insert(ProtectedEntry::new(key(&text), Bytes::new(), life(1), 0));
        }
        while shard.pop_expired(1).is_some() {}
        assert_eq!(shard.iter().count(), 0);
        shard.shrink();
        assert!(shard.entries.capacity() <= 2 * ProtectedEntries::KEPT_CAPACITY);
    }
}
