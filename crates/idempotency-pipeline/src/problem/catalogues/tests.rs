use std::collections::BTreeSet;
use std::time::Duration;

use caching_abstractions::{CachingError, ErrorCode};

use super::*;
use crate::problem::HttpCode;

/// One error of every kind that the workspace makes, with the parameters it is made with.
fn errors() -> Vec<CachingError> {
    let mut errors: Vec<_> = ErrorCode::ALL
        .into_iter()
        .filter(|code| !matches!(code.default_message_key(), "caching.lock.held"))
        .map(|code| CachingError::new(code, "own text"))
        .collect();
    errors.extend([
        CachingError::invalid_key("it is empty"),
        CachingError::key_required(),
        CachingError::invalid_expiration("it is zero"),
        CachingError::lock_held("report"),
        CachingError::lock_wait_timeout("report", Duration::from_secs(1)),
        CachingError::in_progress(),
        CachingError::key_reused("a", "b"),
        CachingError::response_unavailable(),
        CachingError::request_mismatch(),
        CachingError::wrong_kind("key", "a list"),
        CachingError::unavailable("away"),
        CachingError::store_full("full"),
        CachingError::internal("defect"),
    ]);
    errors
}

fn entries(language: &Language) -> Entries {
    let catalogues = Catalogues::built_in();
    let position = catalogues
        .languages()
        .iter()
        .position(|known| known == language);
    catalogues.0.entries[position.unwrap()].clone()
}

fn placeholders(template: &Option<Template>) -> BTreeSet<String> {
    let template = template.as_ref().unwrap();
    template.placeholders().map(str::to_owned).collect()
}

#[test]
fn x2_every_message_key_has_title_and_detail_in_both_languages() {
    let catalogues = Catalogues::built_in();
    assert_eq!(
        catalogues.languages(),
        [Language::ENGLISH, Language::SIMPLIFIED_CHINESE]
    );
    let codes = ErrorCode::ALL.map(ErrorCode::default_message_key);
    let http = HttpCode::ALL.map(HttpCode::message_key);
    let made = errors();
    let keys = codes
        .into_iter()
        .chain(http)
        .chain(made.iter().map(CachingError::message_key));
    let keys: BTreeSet<_> = keys.collect();
    assert!(keys.len() >= 25, "only {} keys", keys.len());
    for language in catalogues.languages() {
        let entries = entries(language);
        for key in &keys {
            let entry = entries
                .get(*key)
                .unwrap_or_else(|| panic!("{language}: no {key}"));
            assert!(
                entry.title.is_some() && entry.detail.is_some(),
                "{language}: {key}"
            );
        }
    }
}

#[test]
fn x2_every_error_has_the_parameters_its_text_needs() {
    let entries = entries(&Language::ENGLISH);
    for error in errors().into_iter().skip(ErrorCode::ALL.len() - 1) {
        let needed = placeholders(&entries[error.message_key()].detail);
        let given: BTreeSet<_> = error
            .parameters()
            .map(|(name, _)| name.to_owned())
            .collect();
        assert!(
            needed.is_subset(&given),
            "{}: {needed:?}",
            error.message_key()
        );
    }
}

#[test]
fn x2_both_catalogues_have_the_same_keys_and_placeholders() {
    let [english, chinese] = [Language::ENGLISH, Language::SIMPLIFIED_CHINESE].map(|l| entries(&l));
    let keys = |entries: &Entries| entries.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(keys(&english), keys(&chinese));
    for (key, entry) in &english {
        let other = &chinese[key];
        assert!(
            placeholders(&entry.title).is_empty(),
            "{key}: a title is the same for all"
        );
        assert!(
            placeholders(&other.title).is_empty(),
            "{key}: a title is the same for all"
        );
        assert_eq!(
            placeholders(&entry.detail),
            placeholders(&other.detail),
            "{key}"
        );
    }
}

#[test]
fn x2_every_category_has_an_entry() {
    for language in [Language::ENGLISH, Language::SIMPLIFIED_CHINESE] {
        let entries = entries(&language);
        for category in ErrorCategory::ALL {
            let entry = &entries[category_key(category)];
            assert!(
                entry.title.is_some() && entry.detail.is_some(),
                "{language}: {category}"
            );
        }
    }
}

#[test]
fn x2_an_application_adds_languages_and_replaces_texts() {
    let catalogues = Catalogues::built_in()
        .with("de", "[\"caching.lock.held\"]\ntitle = \"Gesperrt\"")
        .unwrap()
        .with("EN", "[caching.lock.held]\ntitle = \"Busy\"")
        .unwrap();
    assert_eq!(catalogues.languages().len(), 3);
    let parameters = [("resource", "r")];
    let wanted = |language| Wanted {
        key: "caching.lock.held",
        category: ErrorCategory::Conflict,
        parameters: &parameters,
        language,
    };
    let german = catalogues.negotiate(Some(b"de-AT"));
    assert_eq!(catalogues.title(&wanted(&german)), "Gesperrt");
    // What the added catalogue does not say comes from English.
    let (detail, language) = catalogues.detail(&wanted(&german), None);
    assert!(detail.contains("`r`"), "{detail}");
    assert_eq!(language, Language::ENGLISH);
    assert_eq!(catalogues.title(&wanted(&Language::ENGLISH)), "Busy");
}

#[test]
fn x2_a_catalogue_that_cannot_be_read_says_where() {
    let refused = |language, toml| {
        let error = Catalogues::built_in()
            .with(language, toml)
            .unwrap_err()
            .to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    };
    assert!(refused("two words", "").contains("language tag"));
    assert!(refused("de", "[a]\ntitle = \"x\"\nbroken").contains("line 3"));
    assert!(refused("de", "[a.b]\ntitle = \"{\"").contains("entry `a.b`: `title`"));
    assert!(refused("de", "[a]\ntitel = \"x\"").contains("`titel` is neither"));
    assert!(refused("de", "[a]\ntitle = 1").contains("has to be text"));
    assert!(refused("de", "title = \"x\"").contains("in the table of a message key"));
}
