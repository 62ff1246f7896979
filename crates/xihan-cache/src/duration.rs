//! Durations as people write them: `500ms`, `10s`, `4m`, `1h30m`.

use std::time::Duration;

use xihan_caching::{CachingError, TimeToLive};

/// A duration, zero included.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| {
        "write numbers with their units, such as 500ms, 10s, 4m or 1h30m (ms, s, m, h, d)"
            .to_owned()
    })
}

/// A duration from 1 ms to 100 years (E3).
pub(crate) fn parse_lifetime(text: &str) -> Result<TimeToLive, String> {
    let refused = |error: CachingError| error.detail().to_owned();
    TimeToLive::new(parse(text)?).map_err(refused)
}

/// `duration` in whole milliseconds, in a form that [`parse`] reads.
pub(crate) fn format(duration: Duration) -> String {
    let milliseconds = duration.as_nanos().div_ceil(1_000_000);
    let rounded = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(u64::MAX));
    humantime::format_duration(rounded)
        .to_string()
        .replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e3_durations_are_read_as_people_write_them() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("4m", 240_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("2d", 172_800_000),
            ("1us", 1),
        ] {
            let lifetime = parse_lifetime(text).unwrap();
            assert_eq!(lifetime.as_millis(), milliseconds, "{text}");
        }
    }

    #[test]
    fn e3_what_is_out_of_range_or_has_no_unit_is_refused() {
        for (text, says) in [
            ("0s", "it is zero"),
            ("0", "it is zero"),
            ("101y", "100 years"),
            ("10", "with their units"),
            ("", "with their units"),
            ("-1s", "with their units"),
            ("ten seconds", "with their units"),
            ("99999999999999999999s", "with their units"),
        ] {
            let refusal = parse_lifetime(text).unwrap_err();
            assert!(refusal.contains(says), "{text}: {refusal}");
        }
    }

    #[test]
    fn what_is_printed_can_be_given_again() {
        for milliseconds in [1, 999, 60_000, 5_400_123, 86_400_000] {
            let duration = Duration::from_millis(milliseconds);
            assert_eq!(parse(&format(duration)), Ok(duration));
        }
        assert_eq!(format(Duration::from_micros(1500)), "2ms");
    }
}
