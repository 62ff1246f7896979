/// The decimal i64 that `value` spells as `0` or `-?[1-9][0-9]*`, or none.
///
/// Stricter than `str::parse`: `+1`, `01` and `-0` are text that `increment` would not give back.
pub(crate) fn parse(value: &[u8]) -> Option<i64> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    match digits {
        b"0" if digits.len() == value.len() => return Some(0),
        [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {}
        _ => return None,
    }
    // What is left to refuse is a number that does not fit.
    str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn part3_a_number_has_exactly_one_spelling() {
        for number in [0, 1, -1, 10, i64::MAX, i64::MIN] {
            assert_eq!(parse(number.to_string().as_bytes()), Some(number));
        }
        let others: [&[u8]; 14] = [
            b"",
            b"-",
            b"-0",
            b"00",
            b"01",
            b"+1",
            b" 1",
            b"1 ",
            b"1.0",
            b"0x1",
            b"--1",
            b"9223372036854775808",
            b"-9223372036854775809",
            "١".as_bytes(),
        ];
        for text in others {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
