use std::time::{Duration, SystemTime, UNIX_EPOCH};

use caching_abstractions::{CacheEntryOptions, CachingError, Result, TimeToLive};

/// How an entry of a [`DistributedCache`](crate::DistributedCache) expires.
///
/// | given | becomes |
/// | --- | --- |
/// | absolute and/or relative | the earlier one, as a time to live |
/// | sliding alone | sliding |
/// | sliding with an absolute or relative one | the time to live; reads do not extend it |
/// | nothing | the store's default, not "for ever" |
///
/// Whatever is given has to be in range, also where something else decides: an instant that is
/// not in the future, zero, and more than 100 years are refused (`CACHING_VALIDATION_002`).
///
/// ```
/// use caching_abstractions::{hours, minutes};
/// use distcache_adapter::DistributedCacheEntryOptions;
///
/// let session = DistributedCacheEntryOptions::new().sliding(minutes(20));
/// let report = DistributedCacheEntryOptions::new().relative(hours(1));
/// assert_eq!(session.sliding_expiration, Some(minutes(20)));
/// assert_eq!(report.absolute_expiration_relative_to_now, Some(hours(1)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DistributedCacheEntryOptions {
    /// The instant at which the entry is over.
    pub absolute_expiration: Option<SystemTime>,
    /// How long the entry lives from the write.
    pub absolute_expiration_relative_to_now: Option<Duration>,
    /// How long the entry lives from the write or from its last read.
    pub sliding_expiration: Option<Duration>,
}

impl DistributedCacheEntryOptions {
    /// Nothing given: the store's default.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same options with the instant at which the entry is over.
    #[must_use]
    pub fn absolute(mut self, instant: SystemTime) -> Self {
        self.absolute_expiration = Some(instant);
        self
    }

    /// The same options with the time the entry lives from the write.
    #[must_use]
    pub fn relative(mut self, time_to_live: Duration) -> Self {
        self.absolute_expiration_relative_to_now = Some(time_to_live);
        self
    }

    /// The same options with the time the entry lives from its last read.
    #[must_use]
    pub fn sliding(mut self, period: Duration) -> Self {
        self.sliding_expiration = Some(period);
        self
    }

    /// What the options mean at `now`, the time since the Unix epoch.
    pub(crate) fn at(&self, now: Duration) -> Result<CacheEntryOptions> {
        let absolute = self.absolute_expiration.map(|instant| until(instant, now));
        let relative = self
            .absolute_expiration_relative_to_now
            .map(TimeToLive::new);
        let sliding = self.sliding_expiration.map(TimeToLive::new);
        let (absolute, relative) = (absolute.transpose()?, relative.transpose()?);
        let sliding = sliding.transpose()?;
        let earlier = absolute.into_iter().chain(relative).min();
        match (earlier, sliding) {
            (Some(time_to_live), _) => Ok(time_to_live.into()),
            (None, Some(period)) => CacheEntryOptions::sliding_expiration(period),
            (None, None) => Ok(CacheEntryOptions::default()),
        }
    }
}

fn until(instant: SystemTime, now: Duration) -> Result<TimeToLive> {
    let left = instant
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|instant| instant.checked_sub(now))
        .filter(|left| !left.is_zero());
    match left {
        Some(left) => TimeToLive::new(left),
        None => Err(CachingError::invalid_expiration(
            "the absolute instant is not in the future",
        )),
    }
}

#[cfg(test)]
mod tests {
    use caching_abstractions::{ErrorCode, Expiration, days, seconds};

    use super::*;

    const NOW: Duration = Duration::from_secs(1_000_000);

    fn options() -> DistributedCacheEntryOptions {
        DistributedCacheEntryOptions::new()
    }

    #[test]
    fn d4_what_is_given_has_to_be_in_range_even_if_something_else_decides() {
        let soon = UNIX_EPOCH + NOW + seconds(10);
        let centuries = days(200 * 365);
        for bad in [
            options().absolute(soon).relative(centuries),
            options().absolute(soon).relative(Duration::ZERO),
            options().absolute(soon).sliding(Duration::ZERO),
            options().relative(seconds(1)).sliding(centuries),
            options()
                .relative(seconds(1))
                .absolute(UNIX_EPOCH - seconds(1)),
            options().relative(seconds(1)).absolute(UNIX_EPOCH + NOW),
            options().absolute(UNIX_EPOCH + NOW + centuries),
        ] {
            let error = bad.at(NOW).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidExpiration, "{bad:?}");
        }
    }

    #[test]
    fn e3_an_instant_less_than_a_millisecond_away_is_a_millisecond() {
        let soon = UNIX_EPOCH + NOW + Duration::from_micros(1);
        let expiration = options().absolute(soon).at(NOW).unwrap().expiration();
        assert_eq!(expiration, Expiration::TimeToLive(TimeToLive::MIN));
    }
}
