//! Lifetimes and entry options (spec part 2).

use std::fmt;
use std::time::Duration;

use crate::error::{CachingError, Result};

const MILLISECONDS_PER_DAY: u64 = 24 * 60 * 60 * 1000;

/// How an entry expires when it is written.
///
/// ```
/// use caching_abstractions::{CacheEntryOptions, minutes};
///
/// let fixed = CacheEntryOptions::time_to_live(minutes(5))?;
/// let sliding = CacheEntryOptions::sliding_expiration(minutes(20))?;
/// let by_the_store = CacheEntryOptions::default();
/// # let _ = (fixed, sliding, by_the_store);
/// # Ok::<(), caching_abstractions::CachingError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CacheEntryOptions {
    expiration: Expiration,
    essential: bool,
}

/// Exactly one way to expire (E1); there is no entry that lives for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Expiration {
    /// The store's own default time to live.
    #[default]
    StoreDefault,
    /// A fixed time from the write.
    TimeToLive(TimeToLive),
    /// A time that each read restarts (E2).
    Sliding(TimeToLive),
}

impl CacheEntryOptions {
    /// The entry lives for `time_to_live` from the write.
    ///
    /// # Errors
    /// `CACHING_VALIDATION_002` if the duration is out of range (E3).
    pub fn time_to_live<T>(time_to_live: T) -> Result<Self>
    where
        T: TryInto<TimeToLive>,
        CachingError: From<T::Error>,
    {
        Ok(Expiration::TimeToLive(time_to_live.try_into()?).into())
    }

    /// The entry lives for `period` from the write or from its last read (E2).
    ///
    /// # Errors
    /// `CACHING_VALIDATION_002` if the duration is out of range (E3).
    pub fn sliding_expiration<T>(period: T) -> Result<Self>
    where
        T: TryInto<TimeToLive>,
        CachingError: From<T::Error>,
    {
        Ok(Expiration::Sliding(period.try_into()?).into())
    }

    /// The same options for an entry that may use the share of a full store which is kept for
    /// leases and idempotency markers (S2).
    ///
    /// For small entries that guard work, not for data.
    #[must_use]
    pub fn essential(mut self) -> Self {
        self.essential = true;
        self
    }

    /// How the entry expires.
    pub fn expiration(&self) -> Expiration {
        self.expiration
    }

    /// Whether the entry may use the share kept for leases and idempotency markers.
    pub fn is_essential(&self) -> bool {
        self.essential
    }
}

impl From<Expiration> for CacheEntryOptions {
    fn from(expiration: Expiration) -> Self {
        Self {
            expiration,
            essential: false,
        }
    }
}

impl From<TimeToLive> for CacheEntryOptions {
    fn from(time_to_live: TimeToLive) -> Self {
        Expiration::TimeToLive(time_to_live).into()
    }
}

/// A lifetime in range (E3): 1 ms to 100 years, in whole milliseconds.
///
/// A fraction of a millisecond rounds up, never down to nothing.
///
/// ```
/// use caching_abstractions::TimeToLive;
/// use std::time::Duration;
///
/// let lease = TimeToLive::new(Duration::from_micros(1500))?;
/// assert_eq!(lease.as_millis(), 2);
/// assert!(TimeToLive::new(Duration::ZERO).is_err());
/// # Ok::<(), caching_abstractions::CachingError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeToLive(u64);

impl TimeToLive {
    /// The shortest lifetime, 1 ms.
    pub const MIN: Self = Self(1);
    /// The longest lifetime, 100 years of 365.25 days.
    pub const MAX: Self = Self(36_525 * MILLISECONDS_PER_DAY);

    /// Checks `duration` and rounds it up to whole milliseconds.
    ///
    /// # Errors
    /// `CACHING_VALIDATION_002` if `duration` is zero or longer than 100 years.
    pub fn new(duration: Duration) -> Result<Self> {
        if duration.is_zero() {
            return Err(CachingError::invalid_expiration(
                "it is zero; the least is 1 ms",
            ));
        }
        let milliseconds = duration.as_nanos().div_ceil(1_000_000);
        match u64::try_from(milliseconds) {
            Ok(milliseconds) if milliseconds <= Self::MAX.0 => Ok(Self(milliseconds)),
            _ => Err(CachingError::invalid_expiration(format!(
                "it is {} s; the most is 100 years ({} s)",
                duration.as_secs(),
                Self::MAX.0 / 1000
            ))),
        }
    }

    /// A lifetime of whole milliseconds.
    ///
    /// # Errors
    /// `CACHING_VALIDATION_002` if it is zero or longer than 100 years.
    pub fn from_millis(milliseconds: u64) -> Result<Self> {
        Self::new(Duration::from_millis(milliseconds))
    }

    /// A configured number of seconds, decimals allowed (E3).
    ///
    /// # Errors
    /// `CACHING_VALIDATION_002` if it is not a number in range.
    pub fn from_secs_f64(seconds: f64) -> Result<Self> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if duration.is_zero() && seconds > 0.0 => Ok(Self::MIN),
            Ok(duration) => Self::new(duration),
            Err(_) if seconds > 0.0 => Err(CachingError::invalid_expiration(format!(
                "it is {seconds} s; the most is 100 years ({} s)",
                Self::MAX.0 / 1000
            ))),
            Err(_) => Err(CachingError::invalid_expiration(format!(
                "it is {seconds} s; the least is 1 ms"
            ))),
        }
    }

    /// The lifetime in milliseconds, at least 1.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The lifetime as a duration.
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl TryFrom<Duration> for TimeToLive {
    type Error = CachingError;

    fn try_from(duration: Duration) -> Result<Self> {
        Self::new(duration)
    }
}

impl From<TimeToLive> for Duration {
    fn from(time_to_live: TimeToLive) -> Self {
        time_to_live.as_duration()
    }
}

impl fmt::Debug for TimeToLive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimeToLive({:?})", self.as_duration())
    }
}

/// `count` milliseconds, for readable lifetimes.
pub const fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// `count` seconds, for readable lifetimes.
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// `count` minutes, for readable lifetimes.
pub const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(60))
}

/// `count` hours, for readable lifetimes.
pub const fn hours(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(60 * 60))
}

/// `count` days, for readable lifetimes.
pub const fn days(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(24 * 60 * 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    fn refused(result: Result<TimeToLive>) {
        assert_eq!(result.unwrap_err().code(), ErrorCode::InvalidExpiration);
    }

    #[test]
    fn e3_a_fraction_rounds_up() {
        assert_eq!(
            TimeToLive::new(Duration::from_nanos(1)).unwrap(),
            TimeToLive::MIN
        );
        assert_eq!(
            TimeToLive::new(Duration::from_micros(400))
                .unwrap()
                .as_millis(),
            1
        );
        assert_eq!(TimeToLive::from_secs_f64(0.0015).unwrap().as_millis(), 2);
        assert_eq!(TimeToLive::from_secs_f64(1e-12).unwrap(), TimeToLive::MIN);
    }

    #[test]
    fn e3_zero_and_more_than_a_hundred_years_are_refused() {
        refused(TimeToLive::new(Duration::ZERO));
        refused(TimeToLive::new(days(200 * 365)));
        refused(TimeToLive::new(Duration::MAX));
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX] {
            refused(TimeToLive::from_secs_f64(seconds));
        }
    }

    #[test]
    fn e3_both_ends_are_allowed() {
        assert_eq!(TimeToLive::new(milliseconds(1)).unwrap(), TimeToLive::MIN);
        assert_eq!(TimeToLive::new(days(36_525)).unwrap(), TimeToLive::MAX);
        refused(TimeToLive::new(days(36_525) + Duration::from_nanos(1)));
    }
}
