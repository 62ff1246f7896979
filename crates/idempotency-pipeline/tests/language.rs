//! Properties of language negotiation (X2).

use idempotency_pipeline::language::{Language, negotiate};
use proptest::prelude::*;

fn shipped() -> [Language; 2] {
    [Language::ENGLISH, Language::SIMPLIFIED_CHINESE]
}

/// Ranges with and without a quality, well formed or not.
fn header() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        "(en|zh|zh-CN|zh-Hans|zh-TW|en-US|fr|\\*)(;q=(0|1|0\\.[0-9]{0,3}))?"
            .prop_map(String::into_bytes),
        "[a-zA-Z0-9*;=.q -]{0,10}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.join(&b","[..]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2500))]

    #[test]
    fn x2_any_header_gives_one_of_the_languages(header in header()) {
        let available = shipped();
        prop_assert!(available.contains(&negotiate(Some(&header), &available)));
    }

    #[test]
    fn x2_case_and_white_space_decide_nothing(header in header()) {
        let available = shipped();
        let spaced: Vec<u8> = header
            .to_ascii_uppercase()
            .split(|byte| *byte == b',')
            .map(|part| [b" \t", part, b" "].concat())
            .collect::<Vec<_>>()
            .join(&b","[..]);
        prop_assert_eq!(
            negotiate(Some(&header), &available),
            negotiate(Some(&spaced), &available)
        );
    }

    #[test]
    fn x2_a_language_asked_for_first_and_by_name_is_given(rest in header(), chinese in any::<bool>()) {
        let available = shipped();
        let wanted = &available[usize::from(chinese)];
        // What follows may exclude the language, which is another rule.
        let rest = String::from_utf8_lossy(&rest).replace("q=0", "q=1");
        let header = format!("{wanted},{rest}");
        prop_assert_eq!(&negotiate(Some(header.as_bytes()), &available), wanted);
    }

    #[test]
    fn x2_a_language_tag_has_one_spelling(tag in "[a-zA-Z]{2,3}(-[a-zA-Z]{4})?(-[a-zA-Z]{2})?") {
        let language = Language::new(&tag).unwrap();
        prop_assert!(language.as_str().eq_ignore_ascii_case(&tag));
        prop_assert_eq!(Language::new(&tag.to_ascii_uppercase()), Some(language));
    }
}
