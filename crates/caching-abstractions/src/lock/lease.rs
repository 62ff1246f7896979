use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::Clock;
use crate::expiration::TimeToLive;

/// Both clocks read at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    monotonic: Duration,
    unix_time: Duration,
}

impl Moment {
    pub(super) fn now(clock: &dyn Clock) -> Self {
        Self {
            monotonic: clock.monotonic(),
            unix_time: clock.unix_time(),
        }
    }

    /// What the monotonic clock said.
    pub(super) fn monotonic(self) -> Duration {
        self.monotonic
    }

    /// The wall-clock time; a clock too far in the future to print counts as 1970.
    pub(super) fn wall_time(self) -> SystemTime {
        at(self.unix_time)
    }

    /// How long ago `earlier` was, by the clock that says more.
    ///
    /// The monotonic clock may stand still while the machine sleeps, and the wall clock may be set
    /// back: neither is believed alone.
    pub(super) fn since(self, earlier: Self) -> Duration {
        let monotonic = self.monotonic.saturating_sub(earlier.monotonic);
        let wall = self.unix_time.saturating_sub(earlier.unix_time);
        monotonic.max(wall)
    }
}

/// How long a lease may be relied on, counted from before the request that granted it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    from: Moment,
    time_to_live: Duration,
}

impl Lease {
    pub(super) fn new(from: Moment, time_to_live: TimeToLive) -> Self {
        Self {
            from,
            time_to_live: time_to_live.as_duration(),
        }
    }

    /// What is left of the time in which the lease is trusted; zero once either clock says that it
    /// is over.
    pub(super) fn trusted_for(&self, now: Moment) -> Duration {
        let trusted = self.time_to_live - drift_allowance(self.time_to_live);
        trusted.saturating_sub(now.since(self.from))
    }

    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.trusted_for(now).is_zero()
    }

    /// Whether the lease has run out in the store, too, if the store's clock keeps time with ours.
    pub(super) fn has_run_out(&self, now: Moment) -> bool {
        now.since(self.from) >= self.time_to_live
    }

    /// How long it is until the lease has been running for `part` of its time.
    pub(super) fn until(&self, part: Duration, now: Moment) -> Duration {
        part.saturating_sub(now.since(self.from))
    }

    /// Whether the lease ends after `other` by the monotonic clock.
    pub(super) fn outlives(&self, other: &Self) -> bool {
        self.from.monotonic + self.time_to_live > other.from.monotonic + other.time_to_live
    }

    pub(super) fn expires_at(&self) -> SystemTime {
        at(self.from.unix_time.saturating_add(self.time_to_live))
    }
}

/// What two clocks may differ by over `time_to_live` (one in a thousand, more than any sane
/// quartz), and what a timer may come late by.
fn drift_allowance(time_to_live: Duration) -> Duration {
    let allowance = time_to_live / 1000 + Duration::from_millis(2);
    allowance.min(time_to_live / 4)
}

fn at(unix_time: Duration) -> SystemTime {
    UNIX_EPOCH.checked_add(unix_time).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::expiration::{milliseconds, minutes, seconds};

    fn lease(clock: &ManualClock, time_to_live: Duration) -> Lease {
        Lease::new(Moment::now(clock), TimeToLive::new(time_to_live).unwrap())
    }

    #[test]
    fn l4_a_lease_is_over_when_the_monotonic_clock_says_so() {
        let clock = ManualClock::new();
        let wall = clock.unix_time();
        let lease = lease(&clock, seconds(10));
        clock.advance(seconds(10));
        clock.set_unix_time(wall);
        assert!(lease.is_over(Moment::now(&clock)));
    }

    #[test]
    fn l4_a_lease_is_over_when_the_wall_clock_says_so() {
        let clock = ManualClock::new();
        let lease = lease(&clock, seconds(10));
        clock.set_unix_time(clock.unix_time() + seconds(10));
        assert!(lease.is_over(Moment::now(&clock)));
    }

    #[test]
    fn l12_a_lease_stops_being_trusted_a_little_before_it_ends() {
        for time_to_live in [milliseconds(1), milliseconds(300), seconds(30), minutes(5)] {
            let clock = ManualClock::new();
            let lease = lease(&clock, time_to_live);
            let trusted = lease.trusted_for(Moment::now(&clock));
            assert!(trusted < time_to_live, "{time_to_live:?}");
            assert!(trusted >= time_to_live * 3 / 4, "{time_to_live:?}");
            clock.advance(trusted);
            assert!(lease.is_over(Moment::now(&clock)));
            assert!(!lease.has_run_out(Moment::now(&clock)));
        }
    }

    #[test]
    fn l4_the_longest_lease_has_an_end_that_can_be_told() {
        let clock = ManualClock::new();
        let lease = Lease::new(Moment::now(&clock), TimeToLive::MAX);
        assert!(lease.expires_at() > Moment::now(&clock).wall_time());
        assert!(!lease.is_over(Moment::now(&clock)));
    }
}
