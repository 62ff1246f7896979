//! How a value is stored.
//!
//! An entry without sliding expiration is the plain value, so that any other program reads it. A
//! sliding one carries its period in a header of sixteen bytes: a mark, then the period in
//! milliseconds. A plain value that begins with the mark gets a header with the period 0.
//!
//! The mark is no UTF-8, so it can begin no lease token.

use bytes::{BufMut, Bytes, BytesMut};
use caching_abstractions::TimeToLive;

const MARK: &[u8; 8] = b"\xffxhslid\x01";
const HEADER: usize = 16;

/// What is stored for `value` without sliding.
pub(crate) fn plain(value: Bytes) -> Bytes {
    if value.starts_with(MARK) {
        with_header(0, &value)
    } else {
        value
    }
}

/// What is stored for `value` that each read keeps for another `period`.
pub(crate) fn sliding(value: &[u8], period: TimeToLive) -> Bytes {
    with_header(period.as_millis(), value)
}

fn with_header(period: u64, value: &[u8]) -> Bytes {
    let mut stored = BytesMut::with_capacity(HEADER + value.len());
    stored.put_slice(MARK);
    stored.put_u64(period);
    stored.put_slice(value);
    stored.freeze()
}

/// A stored value, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) value: Bytes,
    /// The header of a sliding entry, and its period in milliseconds.
    pub(crate) slides: Option<(Bytes, u64)>,
}

/// Takes `stored` apart.
pub(crate) fn read(mut stored: Bytes) -> Stored {
    if stored.len() < HEADER || !stored.starts_with(MARK) {
        return Stored {
            value: stored,
            slides: None,
        };
    }
    let header = stored.split_to(HEADER);
    let mut period = [0; 8];
    period.copy_from_slice(&header[MARK.len()..]);
    let period = u64::from_be_bytes(period);
    Stored {
        value: stored,
        slides: (period > 0).then_some((header, period)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &'static [u8]) -> Bytes {
        Bytes::from_static(value)
    }

    #[test]
    fn a_plain_value_is_stored_as_it_is() {
        for value in [&b""[..], b"v", b"\xff", b"\xffxhslid", &[0; 40]] {
            let value = Bytes::copy_from_slice(value);
            assert_eq!(plain(value.clone()), value);
            assert_eq!(read(value.clone()).value, value);
            assert_eq!(read(value).slides, None);
        }
    }

    #[test]
    fn a_plain_value_that_looks_sliding_comes_back_plain() {
        let tricky = sliding(b"v", TimeToLive::MAX);
        for value in [
            tricky,
            text(MARK),
            text(b"\xffxhslid\x01more than a header"),
        ] {
            let stored = plain(value.clone());
            assert_ne!(stored, value);
            assert_eq!(read(stored.clone()).value, value);
            assert_eq!(read(stored).slides, None);
        }
    }

    #[test]
    fn e2_a_sliding_value_keeps_its_period() {
        for value in [&b""[..], b"v", MARK] {
            let period = TimeToLive::from_millis(1500).unwrap();
            let found = read(sliding(value, period));
            assert_eq!(found.value, value);
            let (header, period) = found.slides.unwrap();
            assert_eq!(period, 1500);
            assert_eq!(header.len(), HEADER);
        }
    }

    #[test]
    fn l3_no_token_begins_with_the_mark() {
        assert!(String::from_utf8(MARK.to_vec()).is_err());
    }
}
