//! What keys are called in Redis.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use caching_abstractions::{CacheKey, KeyPrefix};
use fred::util::redis_keyslot;

/// The slots of a Cluster.
pub(crate) const SLOTS: usize = 16384;

/// The names under one key prefix, or in a whole database (K4).
#[derive(Clone, Debug)]
pub(crate) struct Keyspace {
    prefix: Option<KeyPrefix>,
    /// What the name of every channel begins with.
    channels: Arc<str>,
}

impl Keyspace {
    pub(crate) fn new(prefix: Option<KeyPrefix>, database: u8) -> Self {
        let channels = format!("xihan:wake:{database}:").into();
        Self { prefix, channels }
    }

    /// What `key` is called in Redis.
    pub(crate) fn stored(&self, key: &CacheKey) -> Bytes {
        match &self.prefix {
            Some(prefix) => Bytes::from(prefix.stored(key)),
            None => Bytes::copy_from_slice(key.as_str().as_bytes()),
        }
    }

    /// The key that `stored` is the name of; none if it is another prefix's or no key at all.
    pub(crate) fn key(&self, stored: &[u8]) -> Option<CacheKey> {
        let stored = std::str::from_utf8(stored).ok()?;
        let text = match &self.prefix {
            Some(prefix) => prefix.strip(stored)?,
            None => stored,
        };
        CacheKey::from_stored(text).ok()
    }

    /// The glob pattern of every stored key that begins with the literal `prefix`.
    pub(crate) fn pattern(&self, prefix: &str) -> String {
        let mut pattern = String::new();
        if let Some(own) = &self.prefix {
            escape_glob(&mut pattern, own.as_str());
            pattern.push(':');
        }
        escape_glob(&mut pattern, prefix);
        pattern.push('*');
        pattern
    }

    /// The channel on which a release of `stored` is told. Channels are not divided by database.
    pub(crate) fn channel(&self, stored: &[u8]) -> String {
        [&*self.channels, &*String::from_utf8_lossy(stored)].concat()
    }
}

fn escape_glob(pattern: &mut String, literal: &str) {
    for character in literal.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\' | '^') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
}

/// The slot of a stored key.
pub(crate) fn slot(stored: &[u8]) -> u16 {
    redis_keyslot(stored)
}

/// The key that holds the last fencing number of the lease `stored`.
///
/// - It lies in the same slot, whatever braces the name has.
/// - It has a space, so that it is no user's key (K1) and no listing shows it.
/// - Different leases have different ones.
pub(crate) fn fence(stored: &[u8]) -> Bytes {
    let tagged = |tag: &[u8]| [b"{", tag, b"} F:", stored].concat();
    Bytes::from(match hash_tag(stored) {
        Some(tag) => tagged(tag),
        None if !stored.contains(&b'}') => [b"{", stored, b"} F"].concat(),
        None => tagged(TAGS[usize::from(slot(stored))].as_bytes()),
    })
}

/// The part of a name that alone decides its slot, where there is one.
fn hash_tag(stored: &[u8]) -> Option<&[u8]> {
    let begin = stored.iter().position(|byte| *byte == b'{')? + 1;
    let after = &stored[begin..];
    let tag = &after[..after.iter().position(|byte| *byte == b'}')?];
    (!tag.is_empty()).then_some(tag)
}

/// A short text for each slot that hashes into it.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut tags = vec![String::new(); SLOTS];
    let mut missing = SLOTS;
    for number in 0_u32.. {
        if missing == 0 {
            break;
        }
        let text = format!("{number:x}");
        let tag = &mut tags[usize::from(slot(text.as_bytes()))];
        if tag.is_empty() {
            *tag = text;
            missing -= 1;
        }
    }
    tags
});

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const ODD: &[&str] = &[
        "a",
        "lock:report",
        "{a}b",
        "x{a}y{b}",
        "}{",
        "a}b",
        "{}x",
        "{}",
        "{",
        "}",
        "{{a}}",
        "a{b",
        "a{}b{c}",
        "{a",
        "a}",
        "é{ü}",
        "%",
        "\u{1f512}",
    ];

    #[test]
    fn s6_a_fence_lies_in_the_slot_of_its_lease() {
        for name in ODD {
            let fence = fence(name.as_bytes());
            assert_eq!(slot(&fence), slot(name.as_bytes()), "{name}");
        }
        for number in 0..20_000_u32 {
            let digits = format!("{number:o}");
            let name: String = digits
                .chars()
                .map(|digit| {
                    if digit == '0' {
                        '{'
                    } else if digit == '1' {
                        '}'
                    } else {
                        digit
                    }
                })
                .collect();
            assert_eq!(
                slot(&fence(name.as_bytes())),
                slot(name.as_bytes()),
                "{name}"
            );
        }
    }

    #[test]
    fn s6_no_user_key_meets_a_fence_and_no_two_leases_share_one() {
        let mut fences = HashSet::new();
        for name in ODD {
            let fence = fence(name.as_bytes());
            assert!(CacheKey::new(std::str::from_utf8(&fence).unwrap()).is_err());
            assert_eq!(Keyspace::new(None, 0).key(&fence), None);
            assert!(fences.insert(fence), "{name}");
        }
    }

    #[test]
    fn every_slot_has_a_short_tag() {
        for (number, tag) in TAGS.iter().enumerate() {
            assert_eq!(usize::from(slot(tag.as_bytes())), number);
            assert!((1..=5).contains(&tag.len()), "{tag}");
        }
    }

    #[test]
    fn k4_a_stored_key_is_the_prefix_and_the_key() {
        let key = CacheKey::new("k:1").unwrap();
        let shop = Keyspace::new(Some(KeyPrefix::new("shop").unwrap()), 0);
        assert_eq!(shop.stored(&key), "shop:k:1");
        assert_eq!(shop.key(b"shop:k:1"), Some(key.clone()));
        assert_eq!(shop.key(b"shopping:k"), None);
        assert_eq!(shop.key(b"shop:two words"), None);
        assert_eq!(shop.key(b"shop:\xff"), None);
        let whole = Keyspace::new(None, 0);
        assert_eq!(whole.stored(&key), "k:1");
        assert_eq!(whole.key(b"k:1"), Some(key));
    }

    #[test]
    fn glob_characters_are_literal() {
        let space = Keyspace::new(Some(KeyPrefix::new("a*").unwrap()), 0);
        assert_eq!(space.pattern("[x]?\\^"), "a\\*:\\[x\\]\\?\\\\\\^*");
    }
}
