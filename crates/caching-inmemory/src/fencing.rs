use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The store's fencing numbers (S6): one counter for all keys, so that a key that is gone costs no
/// memory and every number is larger than all before it, for whatever key.
#[derive(Debug, Default)]
pub(crate) struct FencingNumbers {
    last: AtomicU64,
}

impl FencingNumbers {
    /// The larger of the last number + 1 and the wall clock in microseconds.
    pub(crate) fn next(&self, unix_time: Duration) -> u64 {
        let clock = u64::try_from(unix_time.as_micros()).unwrap_or(u64::MAX / 2);
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            let next = clock.max(last + 1);
            match self
                .last
                .compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return next,
                Err(newer) => last = newer,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s6_numbers_follow_the_clock_and_never_step_back_with_it() {
        let numbers = FencingNumbers::default();
        assert_eq!(numbers.next(Duration::from_micros(500)), 500);
        assert_eq!(numbers.next(Duration::from_micros(500)), 501);
        assert_eq!(numbers.next(Duration::from_micros(10)), 502);
        assert_eq!(numbers.next(Duration::from_micros(900)), 900);
    }

    #[test]
    fn s6_a_clock_out_of_range_leaves_room_to_count_on() {
        let numbers = FencingNumbers::default();
        let first = numbers.next(Duration::MAX);
        assert_eq!(numbers.next(Duration::ZERO), first + 1);
    }
}
