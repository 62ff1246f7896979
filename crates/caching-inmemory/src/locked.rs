use bytes::Bytes;

use crate::backing::Backing;
use crate::budget::{NoRoom, Share, protected_charge};
use crate::eviction::EvictableEntry;
use crate::key::KeyRef;
use crate::life::Life;
use crate::shard::{LockedShard, ProtectedEntry};

/// One key under the lock of its shard: what every change goes through.
pub(crate) struct Locked<'a> {
    backing: &'a Backing,
    entries: LockedShard<'a>,
    key: KeyRef<'a>,
    /// The time of the operation, read under the lock: no other change of the key happens later
    /// and decides by an earlier time.
    pub(crate) now: u64,
}

/// What stands at a key: in one half, or nowhere.
#[derive(Debug)]
pub(crate) enum Standing {
    Protected(usize),
    Evictable(EvictableEntry),
    Absent,
}

/// A protected entry to write.
#[derive(Debug)]
pub(crate) struct Write {
    /// Taken when the write fits, so that an attempt that does not fit can be repeated.
    pub(crate) value: Bytes,
    pub(crate) life: Life,
    pub(crate) fencing: u64,
    pub(crate) share: Share,
}

impl<'a> Locked<'a> {
    pub(crate) fn new(backing: &'a Backing, key: KeyRef<'a>) -> Self {
        let entries = backing.shard(key).lock();
        Self {
            backing,
            entries,
            key,
            now: backing.now(),
        }
    }

    /// What stands at the key now; what has expired is cleaned up on the way (E4).
    pub(crate) fn find(&mut self) -> Standing {
        if let Some(slot) = self.find_protected() {
            return Standing::Protected(slot);
        }
        match self.backing.evictable.peek(self.key) {
            None => Standing::Absent,
            Some(entry) if entry.deadline(self.now).is_some() => Standing::Evictable(entry),
            Some(_) => {
                self.backing.evictable.remove(self.key);
                Standing::Absent
            }
        }
    }

    /// The slot of the key if it stands in the protected half.
    pub(crate) fn find_protected(&mut self) -> Option<usize> {
        let slot = self.entries.slot_of(self.key)?;
        if self.entries.get(slot).life().is_over(self.now) {
            let expired = self.entries.remove(slot);
            self.backing.protected.release(expired.charge());
            return None;
        }
        Some(slot)
    }

    pub(crate) fn protected(&self, slot: usize) -> &ProtectedEntry {
        self.entries.get(slot)
    }

    pub(crate) fn value<'s>(&'s self, standing: &'s Standing) -> Option<&'s Bytes> {
        match standing {
            Standing::Protected(slot) => Some(&self.protected(*slot).value),
            Standing::Evictable(entry) => Some(&entry.value),
            Standing::Absent => None,
        }
    }

    /// Whether `expected` stands at the key.
    pub(crate) fn holds(&self, standing: &Standing, expected: &[u8]) -> bool {
        self.value(standing).is_some_and(|value| value == expected)
    }

    /// Writes a protected entry in the place of `standing`; what was evictable moves (S2).
    pub(crate) fn write(&mut self, standing: &Standing, write: &mut Write) -> Result<(), NoRoom> {
        let old = match standing {
            Standing::Protected(slot) => self.protected(*slot).charge(),
            _ => 0,
        };
        let new = protected_charge(self.key.text, &write.value);
        self.backing.protected.change(old, new, write.share)?;
        let value = std::mem::take(&mut write.value);
        if let Standing::Protected(slot) = standing {
            self.entries
                .replace(*slot, value, write.life, write.fencing);
            return Ok(());
        }
        let entry = ProtectedEntry::new(self.key, value, write.life, write.fencing);
        self.entries.insert(entry);
        if let Standing::Evictable(_) = standing {
            self.backing.evictable.remove(self.key);
        }
        Ok(())
    }

    /// Gives the entry of `slot` another life, as it is otherwise.
    pub(crate) fn set_life(&mut self, slot: usize, life: Life) {
        self.entries.set_life(slot, life);
    }

    /// Takes `standing` away; `true` if it was there.
    pub(crate) fn remove(&mut self, standing: &Standing) -> bool {
        match standing {
            Standing::Protected(slot) => {
                let removed = self.entries.remove(*slot);
                self.backing.protected.release(removed.charge());
                true
            }
            Standing::Evictable(_) => {
                self.backing.evictable.remove(self.key);
                true
            }
            Standing::Absent => false,
        }
    }
}
