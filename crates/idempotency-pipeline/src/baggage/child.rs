use caching_abstractions::{CacheKey, CachingError, Result};

/// The idempotency key of a downstream call that belongs to the call with the key `parent` (P13).
///
/// Keys are not handed on by themselves: a downstream call that is to happen once per call of the
/// parent gets a key made on purpose. `label` names that downstream call within the parent, such
/// as `payment` or `mail/2`.
///
/// - The same parent and label always give the same key, so a retry of the parent finds the
///   downstream call's record.
/// - Two different pairs of parent and label never give the same key: the result is
///   `<parent>:<label>` with the label escaped as in K3, so that its last `:` is the separator.
///
/// ```
/// use idempotency_pipeline::baggage::{Baggage, derive_child_key};
///
/// let key = derive_child_key("order-1", "payment")?;
/// assert_eq!(key.as_str(), "order-1:payment");
/// let downstream = Baggage::new().with_idempotency_key(key);
/// # Ok::<(), caching_abstractions::CachingError>(())
/// ```
///
/// # Errors
/// `CACHING_VALIDATION_001` if `label` is empty or the result breaks K1; a key is never cut.
pub fn derive_child_key(parent: &str, label: &str) -> Result<CacheKey> {
    if parent.is_empty() || label.is_empty() {
        return Err(CachingError::invalid_key(
            "a child key needs its parent's key and a label",
        ));
    }
    let mut text = String::with_capacity(parent.len() + 1 + label.len());
    text.push_str(parent);
    text.push(':');
    CacheKey::escape_segment(&mut text, label);
    CacheKey::new(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn p13_a_child_key_needs_a_label_and_room() {
        assert!(derive_child_key("a", "").is_err());
        assert!(derive_child_key("", "a").is_err());
        assert!(derive_child_key(&"k".repeat(510), "a").is_ok());
        assert!(derive_child_key(&"k".repeat(511), "a").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn p13_different_pairs_give_different_keys(
            left in ("[a:%3A]{1,4}", "[a:%3A é]{1,4}"),
            right in ("[a:%3A]{1,4}", "[a:%3A é]{1,4}"),
        ) {
            let key = |(parent, label): &(String, String)| derive_child_key(parent, label).unwrap();
            prop_assert_eq!(left == right, key(&left) == key(&right));
        }
    }
}
