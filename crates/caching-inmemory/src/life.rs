//! When entries end, in nanoseconds of the store's monotonic clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use caching_abstractions::{CacheEntryOptions, Expiration, TimeToLive};

/// A moment or a span in nanoseconds; 584 years fit, and the longest lifetime is 100.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// When an entry ends, and what a read does about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) deadline: u64,
    /// What a read gives the entry from its own time on; 0 if reads change nothing (E2).
    pub(crate) period: u64,
}

impl Life {
    /// The whole expiration of an entry that is written at `now` (E1, E5).
    pub(crate) fn of(options: CacheEntryOptions, default: TimeToLive, now: u64) -> Self {
        match options.expiration() {
            Expiration::StoreDefault => Self::fixed(default, now),
            Expiration::TimeToLive(time_to_live) => Self::fixed(time_to_live, now),
            Expiration::Sliding(period) => {
                let period = nanoseconds(period.as_duration());
                Self {
                    deadline: now.saturating_add(period),
                    period,
                }
            }
        }
    }

    pub(crate) fn fixed(time_to_live: TimeToLive, now: u64) -> Self {
        Self {
            deadline: now.saturating_add(nanoseconds(time_to_live.as_duration())),
            period: 0,
        }
    }

    pub(crate) fn is_over(self, now: u64) -> bool {
        self.deadline <= now
    }
}

/// The deadline of an evictable sliding entry, which readers restart without the shard's lock.
///
/// Once it is [`GONE`](Self::GONE) it stays so. Whoever finds the entry expired, or takes it over
/// into the protected half, sets that first: a slow reader with an older time can then neither
/// bring an expired entry back nor restart a clock that no longer counts.
#[derive(Debug)]
pub(crate) struct SlidingLife {
    deadline: AtomicU64,
    period: u64,
}

impl SlidingLife {
    const GONE: u64 = 0;

    pub(crate) fn new(life: Life) -> Self {
        Self {
            deadline: AtomicU64::new(life.deadline),
            period: life.period,
        }
    }

    pub(crate) fn period(&self) -> u64 {
        self.period
    }

    /// The deadline if the entry is there at `now`; an expired one is gone for good.
    pub(crate) fn deadline(&self, now: u64) -> Option<u64> {
        self.update(now, |deadline| deadline)
    }

    /// Restarts the clock at `now`; `false` if the entry is no longer there.
    pub(crate) fn restart(&self, now: u64) -> bool {
        let restarted = now.saturating_add(self.period);
        self.update(now, |deadline| deadline.max(restarted))
            .is_some()
    }

    /// Ends this deadline for good; gives what it was if the entry was there at `now`.
    pub(crate) fn take(&self, now: u64) -> Option<u64> {
        self.update(now, |_| Self::GONE)
    }

    /// Applies `change` to a deadline after `now`, else sets it to gone; gives the old one.
    fn update(&self, now: u64, change: impl Fn(u64) -> u64) -> Option<u64> {
        let mut deadline = self.deadline.load(Ordering::Acquire);
        loop {
            let live = deadline > now;
            let changed = if live { change(deadline) } else { Self::GONE };
            if changed == deadline {
                return live.then_some(deadline);
            }
            match self.deadline.compare_exchange_weak(
                deadline,
                changed,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return live.then_some(deadline),
                Err(newer) => deadline = newer,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sliding(deadline: u64, period: u64) -> SlidingLife {
        SlidingLife::new(Life { deadline, period })
    }

    #[test]
    fn e2_a_restart_never_shortens_what_a_later_read_gave() {
        let life = sliding(10, 10);
        assert!(life.restart(9));
        assert!(life.restart(3));
        assert_eq!(life.deadline(0), Some(19));
    }

    #[test]
    fn e4_an_expired_entry_is_not_brought_back_by_a_reader_with_an_older_time() {
        let life = sliding(10, 10);
        assert_eq!(life.deadline(10), None);
        assert!(!life.restart(9));
        assert_eq!(life.deadline(0), None);
    }

    #[test]
    fn e2_what_was_taken_over_is_no_longer_restarted() {
        let life = sliding(10, 10);
        assert_eq!(life.take(5), Some(10));
        assert!(!life.restart(6));
        assert_eq!(life.take(6), None);
    }

    #[test]
    fn e3_a_hundred_years_fit() {
        let life = Life::fixed(TimeToLive::MAX, nanoseconds(TimeToLive::MAX.as_duration()));
        assert!(life.deadline < u64::MAX);
    }
}
