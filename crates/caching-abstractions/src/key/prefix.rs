use std::fmt;
use std::sync::Arc;

use super::{CacheKey, check};
use crate::error::{CachingError, Result};

/// What several applications on one store put before their keys (K4).
///
/// A prefix follows K1 and has no `:`. The stored key is `<prefix>:<key>`, so two prefixes never
/// meet. Above the provider it is invisible.
///
/// ```
/// use caching_abstractions::{CacheKey, KeyPrefix};
///
/// let shop = KeyPrefix::new("shop")?;
/// let key = CacheKey::new("order:1")?;
/// assert_eq!(shop.stored(&key), "shop:order:1");
/// assert_eq!(shop.strip("shop:order:1"), Some("order:1"));
/// assert_eq!(shop.strip("shopping:1"), None);
/// # Ok::<(), caching_abstractions::CachingError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyPrefix(Arc<str>);

impl KeyPrefix {
    /// Checks `text` and makes it a prefix.
    ///
    /// # Errors
    /// `CACHING_VALIDATION_001` if `text` breaks K1 or has a `:`.
    pub fn new(text: impl AsRef<str> + Into<Arc<str>>) -> Result<Self> {
        check(text.as_ref())?;
        if text.as_ref().contains(':') {
            return Err(CachingError::invalid_key("a key prefix has no `:`"));
        }
        Ok(Self(text.into()))
    }

    /// The prefix as text, without the `:` that follows it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text under which `key` is stored.
    pub fn stored(&self, key: &CacheKey) -> String {
        let mut stored = String::with_capacity(self.0.len() + 1 + key.as_str().len());
        stored.push_str(&self.0);
        stored.push(':');
        stored.push_str(key.as_str());
        stored
    }

    /// `key` as a key of the store around this prefix, where it may be longer than 512 characters.
    pub(crate) fn stored_key(&self, key: &CacheKey) -> CacheKey {
        CacheKey(self.stored(key).into())
    }

    /// The key's text in `stored`, or none if `stored` is not of this prefix.
    pub fn strip<'a>(&self, stored: &'a str) -> Option<&'a str> {
        stored.strip_prefix(&*self.0)?.strip_prefix(':')
    }
}

impl fmt::Display for KeyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k4_a_prefix_follows_k1_and_has_no_colon() {
        for text in ["", "a b", "a:b", ":", "a\n"] {
            assert!(KeyPrefix::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn k4_a_stored_key_is_a_key_or_one_below_a_prefix() {
        let longest = "é".repeat(CacheKey::MAX_CHARACTERS);
        for text in ["a", "a:b", &longest, &format!("shop:{longest}")] {
            assert_eq!(CacheKey::from_stored(text).unwrap().as_str(), text);
        }
        let too_long = format!("{longest}é");
        for text in ["", "a b", "a:b c", &too_long, &format!("shop:{too_long}")] {
            assert!(CacheKey::from_stored(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn k4_two_prefixes_never_meet() {
        let (a, ab) = (KeyPrefix::new("a").unwrap(), KeyPrefix::new("ab").unwrap());
        let (bc, c) = (CacheKey::new("bc").unwrap(), CacheKey::new("c").unwrap());
        assert_ne!(a.stored(&bc), ab.stored(&c));
        assert_eq!(a.strip(&ab.stored(&c)), None);
    }
}
