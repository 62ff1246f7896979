//! How many bytes the entries take, and how many they may.

use std::sync::atomic::{AtomicU64, Ordering};

use caching_abstractions::CachingError;

/// What a protected entry takes beside its key and value: its slot in the shard's tables with the
/// slack of their growth, three allocations, and the shared header of a value that was read.
const PROTECTED_OVERHEAD: u64 = 192;

/// What an evictable entry takes beside its key and value: the cache's nodes for the table, the
/// order of use and the timer.
const EVICTABLE_OVERHEAD: u64 = 464;

/// Of the protected budget one part in so many is kept for leases and essential writes (S2).
const RESERVE_DIVISOR: u64 = 20;

pub(crate) fn protected_charge(key: &str, value: &[u8]) -> u64 {
    PROTECTED_OVERHEAD + key.len() as u64 + value.len() as u64
}

pub(crate) fn evictable_charge(key: &str, value: &[u8]) -> u64 {
    EVICTABLE_OVERHEAD + key.len() as u64 + value.len() as u64
}

/// Which share of the protected budget a write may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// All but the reserve.
    Plain,
    /// Half of the reserve as well: what the caller marked as essential.
    Essential,
    /// All of it: leases. Records that took the room of their markers can fill the other half of
    /// the reserve for a day, and locks must not wait for that.
    Lease,
}

/// A write does not fit; nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// The bytes of the protected half.
#[derive(Debug)]
pub(crate) struct ProtectedBudget {
    used: AtomicU64,
    limit: u64,
}

impl ProtectedBudget {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            used: AtomicU64::new(0),
            limit,
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Replaces a charge of `old` bytes by one of `new`; what does not grow always fits.
    pub(crate) fn change(&self, old: u64, new: u64, share: Share) -> Result<(), NoRoom> {
        if new <= old {
            self.release(old - new);
            return Ok(());
        }
        let growth = new - old;
        let limit = match share {
            Share::Plain => self.limit - self.limit / RESERVE_DIVISOR,
            Share::Essential => self.limit - self.limit / RESERVE_DIVISOR / 2,
            Share::Lease => self.limit,
        };
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(growth).filter(|&sum| sum <= limit)
            })
            .map(drop)
            .map_err(|_| NoRoom)
    }

    pub(crate) fn release(&self, charge: u64) {
        self.used.fetch_sub(charge, Ordering::Relaxed);
    }

    /// What a caller is told whose write did not fit.
    pub(crate) fn full(&self) -> CachingError {
        let (used, limit) = (self.used(), self.limit);
        tracing::debug!(used, limit, "a write does not fit into the in-memory store");
        CachingError::store_full(format!(
            "the protected entries of the in-memory store take {used} of {limit} bytes and leave \
             no room for this one; raise XiHan:Caching:InMemory:MaxProtectedBytes or use shorter \
             lifetimes"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_a_share_is_kept_for_essential_writes() {
        let budget = ProtectedBudget::new(1000);
        assert_eq!(budget.change(0, 951, Share::Plain), Err(NoRoom));
        assert_eq!(budget.change(0, 950, Share::Plain), Ok(()));
        assert_eq!(budget.change(0, 1, Share::Plain), Err(NoRoom));
        assert_eq!(budget.change(0, 25, Share::Essential), Ok(()));
        assert_eq!(budget.change(0, 1, Share::Essential), Err(NoRoom));
        assert_eq!(budget.change(0, 25, Share::Lease), Ok(()));
        assert_eq!(budget.change(0, 1, Share::Lease), Err(NoRoom));
        assert_eq!(budget.used(), 1000);
    }

    #[test]
    fn s2_what_does_not_grow_fits_into_a_full_budget() {
        let budget = ProtectedBudget::new(1000);
        budget.change(0, 1000, Share::Lease).unwrap();
        assert_eq!(budget.change(100, 100, Share::Plain), Ok(()));
        assert_eq!(budget.change(100, 40, Share::Plain), Ok(()));
        assert_eq!(budget.used(), 940);
    }

    #[test]
    fn s2_a_sum_out_of_range_does_not_fit() {
        let budget = ProtectedBudget::new(u64::MAX);
        budget.change(0, 10, Share::Plain).unwrap();
        assert_eq!(budget.change(0, u64::MAX, Share::Lease), Err(NoRoom));
    }
}
