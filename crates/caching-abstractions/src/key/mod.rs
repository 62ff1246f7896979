//! Keys and key prefixes (spec part 1).

mod prefix;
mod segments;

pub use prefix::KeyPrefix;

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{CachingError, Result};

/// The name of an entry: 1 to 512 characters, none of them white space or a control character.
///
/// - The rule (K1) is checked once, here; whoever holds a `CacheKey` holds a valid one.
/// - A key is never trimmed, normalised, hashed or cut. Comparison is byte for byte (K2).
/// - Cloning is cheap: clones share one allocation.
///
/// Two doors: [`new`](Self::new) refuses what is invalid, [`from_segments`](Self::from_segments)
/// escapes it.
///
/// ```
/// use caching_abstractions::CacheKey;
///
/// let plain = CacheKey::new("report:daily")?;
/// let built = CacheKey::from_segments(["user name", "a:b"])?;
/// assert_eq!(plain.as_str(), "report:daily");
/// assert_eq!(built.as_str(), "user%20name:a%3Ab");
/// # Ok::<(), caching_abstractions::CachingError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey(Arc<str>);

impl CacheKey {
    /// The most characters (Unicode scalar values) a key has.
    pub const MAX_CHARACTERS: usize = 512;

    /// Checks `text` and makes it a key.
    ///
    /// # Errors
    /// `CACHING_VALIDATION_001` if `text` breaks K1; the error says which rule and where.
    pub fn new(text: impl AsRef<str> + Into<Arc<str>>) -> Result<Self> {
        check(text.as_ref())?;
        Ok(Self(text.into()))
    }

    /// Joins `segments` with `:` and escapes in each what would be mistaken or refused (K3).
    ///
    /// `%`, `:`, white space and control characters become `%XX` of their UTF-8 bytes, so two
    /// different lists never give the same key.
    ///
    /// # Errors
    /// `CACHING_VALIDATION_001` if the result is empty or longer than 512 characters.
    pub fn from_segments<I>(segments: I) -> Result<Self>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        Self::new(segments::join(segments))
    }

    /// A key as a store holds it: one that follows K1, or one below a [`KeyPrefix`], which makes it
    /// longer (K4).
    ///
    /// For a store that lists what it holds; everybody else uses [`new`](Self::new).
    #[doc(hidden)]
    pub fn from_stored(text: &str) -> Result<Self> {
        let plain = Self::new(text);
        match text.split_once(':') {
            Some((prefix, key)) if plain.is_err() => {
                KeyPrefix::new(prefix)?;
                check(key)?;
                Ok(Self(text.into()))
            }
            _ => plain,
        }
    }

    /// Escapes one segment as [`from_segments`](Self::from_segments) does, without checking K1.
    ///
    /// For keys whose last part is to stay as it is:
    /// ```
    /// use caching_abstractions::CacheKey;
    ///
    /// let mut text = String::from("idem:");
    /// CacheKey::escape_segment(&mut text, "a:b");
    /// assert_eq!(text, "idem:a%3Ab");
    /// ```
    pub fn escape_segment(into: &mut String, segment: &str) {
        segments::escape(into, segment);
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// K1, for keys and for everything else that follows it.
fn check(text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(CachingError::invalid_key(
            "it is empty; a key has 1 to 512 characters",
        ));
    }
    // Nearly every key is short and printable ASCII: looked at whole, many bytes at a time.
    let is_plain = text
        .bytes()
        .fold(true, |plain, byte| plain & byte.is_ascii_graphic());
    if is_plain && text.len() <= CacheKey::MAX_CHARACTERS {
        return Ok(());
    }
    let mut characters = 0_usize;
    for character in text.chars() {
        characters += 1;
        // Everything printable in ASCII is allowed; the tables are only asked about the rest.
        if character.is_ascii_graphic() {
            continue;
        }
        let kind = if character.is_whitespace() {
            "white space"
        } else if character.is_control() {
            "a control character"
        } else {
            continue;
        };
        let point = u32::from(character);
        return Err(CachingError::invalid_key(format!(
            "character {characters} (U+{point:04X}) is {kind}"
        )));
    }
    if characters > CacheKey::MAX_CHARACTERS {
        return Err(CachingError::invalid_key(format!(
            "it has {characters} characters; a key has at most {}",
            CacheKey::MAX_CHARACTERS
        )));
    }
    Ok(())
}

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheKey({:?})", &*self.0)
    }
}

impl AsRef<str> for CacheKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for CacheKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for CacheKey {
    type Err = CachingError;

    fn from_str(text: &str) -> Result<Self> {
        Self::new(text)
    }
}

impl TryFrom<&str> for CacheKey {
    type Error = CachingError;

    fn try_from(text: &str) -> Result<Self> {
        Self::new(text)
    }
}

impl TryFrom<String> for CacheKey {
    type Error = CachingError;

    fn try_from(text: String) -> Result<Self> {
        Self::new(text)
    }
}

impl From<&CacheKey> for CacheKey {
    fn from(key: &CacheKey) -> Self {
        key.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn k1_the_error_says_which_rule_and_where() {
        let reason = |text: &str| {
            let error = CacheKey::new(text).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidKey);
            error.parameter("reason").unwrap().to_owned()
        };
        assert!(reason("").contains("empty"));
        assert_eq!(reason("ab c"), "character 3 (U+0020) is white space");
        assert_eq!(
            reason("a\u{7}"),
            "character 2 (U+0007) is a control character"
        );
        assert!(reason(&"é".repeat(513)).contains("513 characters"));
    }

    #[test]
    fn k1_counts_characters_not_bytes() {
        assert!(CacheKey::new("é".repeat(512)).is_ok());
    }

    /// K1 as it is written: every character by itself.
    fn is_a_key(text: &str) -> bool {
        let allowed = |c: char| !c.is_whitespace() && !c.is_control();
        (1..=512).contains(&text.chars().count()) && text.chars().all(allowed)
    }

    #[test]
    fn k1_every_character_is_judged_by_itself_at_every_place() {
        for character in '\0'..=char::MAX {
            let text = format!("a{character}");
            assert_eq!(CacheKey::new(&*text).is_ok(), is_a_key(&text), "{text:?}");
        }
        let telling = "\0\t\n \u{1f}!~\u{7f}\u{80}\u{85}\u{9f}\u{a0}\u{a1}\u{1680}\u{200b}\u{2028}\u{3000}\u{feff}";
        for length in (0..70).chain(505..=513) {
            for at in 0..=length {
                for character in telling.chars() {
                    let text = format!("{}{character}{}", "k".repeat(at), "k".repeat(length - at));
                    assert_eq!(CacheKey::new(&*text).is_ok(), is_a_key(&text), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn k2_case_and_normalisation_matter() {
        assert_ne!(CacheKey::new("a").unwrap(), CacheKey::new("A").unwrap());
        assert_ne!(
            CacheKey::new("\u{e9}").unwrap(),
            CacheKey::new("e\u{301}").unwrap()
        );
    }

    #[test]
    fn k2_a_key_hashes_like_its_text() {
        use std::hash::{BuildHasher, RandomState};
        let state = RandomState::new();
        let key = CacheKey::new("order").unwrap();
        assert_eq!(state.hash_one(&key), state.hash_one("order"));
    }
}
