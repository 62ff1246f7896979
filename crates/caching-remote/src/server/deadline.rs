//! Until when a client waits for the answer to a call.

use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;

const TIMEOUT: &str = "grpc-timeout";

/// The moment at which the time of a call that arrives now is over; none if its client waits for
/// ever, or says something that is no time.
pub(super) fn deadline(headers: &HeaderMap) -> Option<Instant> {
    let timeout = timeout(headers.get(TIMEOUT)?.as_bytes())?;
    Instant::now().checked_add(timeout)
}

/// At most eight digits and a unit.
fn timeout(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if !matches!(digits.len(), 1..=8) {
        return None;
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + u64::from(digit - b'0'))
    })?;
    match unit {
        b'H' => Some(Duration::from_secs(number * 60 * 60)),
        b'M' => Some(Duration::from_secs(number * 60)),
        b'S' => Some(Duration::from_secs(number)),
        b'm' => Some(Duration::from_millis(number)),
        b'u' => Some(Duration::from_micros(number)),
        b'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_digits_and_a_unit() {
        for (text, duration) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("99999999S", Duration::from_secs(99_999_999)),
            ("1m", Duration::from_millis(1)),
            ("0u", Duration::ZERO),
            ("7n", Duration::from_nanos(7)),
        ] {
            assert_eq!(timeout(text.as_bytes()), Some(duration), "{text}");
        }
        for text in ["", "S", "1", "1s", "-1S", "1.5S", "100000000S", "x1S"] {
            assert_eq!(timeout(text.as_bytes()), None, "{text}");
        }
    }
}
