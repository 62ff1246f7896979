//! The table of `baggage` headers and properties of the parser (H1).

use caching_abstractions::{CacheKey, ErrorCode};
use idempotency_pipeline::baggage::{Baggage, BaggageKeys, idempotency_key_header};
use proptest::prelude::*;

#[test]
fn h1_every_row_of_the_table() {
    let table = include_str!("data/baggage.tsv");
    let mut rows = 0;
    for row in table.lines().filter(|line| !line.starts_with('#')) {
        let [lines, expected, why] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a row has three columns: {row}");
        };
        let lines: Vec<String> = serde_json::from_str(lines).unwrap();
        let result = Baggage::parse(lines.iter().map(String::as_bytes));
        match expected {
            "absent" => assert_eq!(result.unwrap().idempotency_key(), None, "{why}"),
            "invalid" => {
                let error = result.expect_err(why);
                assert_eq!(error.code(), ErrorCode::InvalidKey, "{why}");
                assert!(error.parameter("reason").is_some(), "{why}");
            }
            key => {
                let key: String = serde_json::from_str(key).unwrap();
                assert_eq!(result.unwrap().idempotency_key(), Some(&*key), "{why}");
            }
        }
        rows += 1;
    }
    assert!(rows >= 34, "only {rows} rows");
}

/// Bytes, and pieces that lead the parser further in than random bytes do.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let name = BaggageKeys::IDEMPOTENCY_KEY.as_bytes().to_vec();
    let piece = prop_oneof![
        Just(name),
        proptest::collection::vec(any::<u8>(), 0..4),
        "[ \t,;=%a\"\\\\:é]{0,6}".prop_map(String::into_bytes),
        "%[0-9a-fA-F]{2}".prop_map(String::into_bytes),
        Just(b"=".to_vec()),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Keys as K1 has them.
fn key() -> impl Strategy<Value = CacheKey> {
    prop_oneof!["[!-~]{1,64}", "\\PC{1,64}", "[%+,;=\"\\\\é订:]{1,64}"]
        .prop_filter_map("no key", |text| CacheKey::new(text).ok())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn h1_any_bytes_give_a_key_or_an_error_and_never_a_panic(
        lines in proptest::collection::vec(pieces(), 0..4),
    ) {
        match Baggage::parse(lines.iter().map(Vec::as_slice)) {
            Err(error) => prop_assert_eq!(error.code(), ErrorCode::InvalidKey),
            Ok(baggage) => {
                if let Some(key) = baggage.idempotency_key() {
                    prop_assert!(CacheKey::new(key).is_ok());
                }
                // What was kept is well formed: it is read again as the same baggage.
                let header = baggage.to_header_value().unwrap_or_default();
                let again = Baggage::parse([header.as_bytes()]).unwrap();
                prop_assert_eq!(again, baggage);
            }
        }
    }

    #[test]
    fn h1_our_member_is_never_lost(
        before in pieces(),
        value in proptest::collection::vec(any::<u8>(), 0..6),
        after in pieces(),
    ) {
        let lines = [before, [b"xihan.idempotency-key=", &value[..]].concat(), after];
        if let Ok(baggage) = Baggage::parse(lines.iter().map(Vec::as_slice)) {
            prop_assert!(baggage.idempotency_key().is_some());
        }
    }

    #[test]
    fn h1_lines_are_one_list(lines in proptest::collection::vec(pieces(), 1..4)) {
        let split = Baggage::parse(lines.iter().map(Vec::as_slice));
        let joined = Baggage::parse([lines.join(&b","[..]).as_slice()]);
        prop_assert_eq!(split.ok(), joined.ok());
    }

    #[test]
    fn h1_what_is_written_parses_back(key in key(), others in pieces()) {
        let Ok(others) = Baggage::parse([&others[..]]) else { return Ok(()) };
        let written = others.clone().with_idempotency_key(&key);
        let header = written.to_header_value().unwrap();
        prop_assert!(header.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)));
        let read = Baggage::parse([header.as_bytes()]).unwrap();
        prop_assert_eq!(read.idempotency_key(), Some(key.as_str()));
        prop_assert!(read.members().eq(others.members()));
    }

    #[test]
    fn h1_any_bytes_in_the_idempotency_key_header(line in pieces()) {
        match idempotency_key_header([&line[..]]) {
            Err(error) => prop_assert_eq!(error.code(), ErrorCode::InvalidKey),
            Ok(key) => prop_assert!(key.is_some()),
        }
    }

    #[test]
    fn h1_a_quoted_key_parses_back(key in "[!-~]{1,64}") {
        let quoted = format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""));
        let read = idempotency_key_header([quoted.as_bytes()]).unwrap().unwrap();
        prop_assert_eq!(read.as_str(), key);
    }
}

/// 16 KiB of what makes parsers slow; each byte is looked at a few times at most, so thousands of
/// them are done in a moment, and a quadratic parser would be seen by the eye.
#[test]
fn h1_sixteen_kib_of_separators_are_read() {
    for filler in [
        &b","[..],
        b";",
        b"=",
        b"a=1;",
        b"a=1,",
        b" ",
        b"%",
        b"%41",
        b"\xff",
    ] {
        let mut line = filler.repeat(Baggage::MAX_BYTES / filler.len() - 32);
        line.extend_from_slice(b",xihan.idempotency-key=a");
        for _ in 0..50 {
            let baggage = Baggage::parse([&line[..]]).unwrap();
            assert_eq!(baggage.idempotency_key(), Some("a"));
        }
    }
}
