//! What keys are called in Redis.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use caching_abstractions::{CacheKey, KeyPrefix, LeaseToken};
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

    fn push_stored(&self, buffer: &mut Vec<u8>, key: &CacheKey) {
        if let Some(prefix) = &self.prefix {
            buffer.extend_from_slice(prefix.as_str().as_bytes());
            buffer.push(b':');
        }
        buffer.extend_from_slice(key.as_str().as_bytes());
    }

    /// What a lease on `key` and its fencing number are called, and the token of the lease.
    ///
    /// All in one piece of memory, because the client shares what it is given.
    pub(crate) fn lease(&self, key: &CacheKey, token: &LeaseToken) -> [Bytes; 3] {
        let mut buffer = Vec::with_capacity(3 * key.as_str().len() + 128);
        self.push_stored(&mut buffer, key);
        let stored = buffer.len();
        push_fence(&mut buffer);
        let fence = buffer.len();
        buffer.extend_from_slice(token.as_bytes());
        let end = buffer.len();
        parts(buffer, [stored, fence, end])
    }

    /// What a lease on `key` is called, its token, and the channel on which its release is told.
    pub(crate) fn release(&self, key: &CacheKey, token: &LeaseToken) -> [Bytes; 3] {
        let mut buffer = Vec::with_capacity(2 * key.as_str().len() + 128);
        self.push_stored(&mut buffer, key);
        let stored = buffer.len();
        buffer.extend_from_slice(token.as_bytes());
        let token = buffer.len();
        buffer.extend_from_slice(self.channels.as_bytes());
        buffer.extend_from_within(..stored);
        let end = buffer.len();
        parts(buffer, [stored, token, end])
    }

    /// What an entry that may be a lease, and its fencing number, are called.
    pub(crate) fn fenced(&self, key: &CacheKey) -> [Bytes; 2] {
        let mut buffer = Vec::with_capacity(3 * key.as_str().len() + 64);
        self.push_stored(&mut buffer, key);
        let stored = buffer.len();
        push_fence(&mut buffer);
        let end = buffer.len();
        parts(buffer, [stored, end])
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

/// Appends the name of the key that holds the last fencing number of the lease whose name fills
/// `buffer`.
///
/// - It lies in the same slot, whatever braces the name has.
/// - It has a space, so that it is no user's key (K1) and no listing shows it.
/// - Different leases have different ones.
fn push_fence(buffer: &mut Vec<u8>) {
    let length = buffer.len();
    match hash_tag(buffer) {
        None if !buffer.contains(&b'}') => {
            buffer.push(b'{');
            buffer.extend_from_within(..length);
            buffer.extend_from_slice(b"} F");
            return;
        }
        Some(tag) => {
            buffer.push(b'{');
            buffer.extend_from_within(tag);
        }
        None => {
            let tag = &TAGS[usize::from(slot(buffer))];
            buffer.push(b'{');
            buffer.extend_from_slice(tag.as_bytes());
        }
    }
    buffer.extend_from_slice(b"} F:");
    buffer.extend_from_within(..length);
}

/// The parts of `buffer` that end at `ends`, without a copy.
fn parts<const N: usize>(buffer: Vec<u8>, ends: [usize; N]) -> [Bytes; N] {
    let whole = Bytes::from(buffer);
    let mut start = 0;
    ends.map(|end| {
        let part = whole.slice(start..end);
        start = end;
        part
    })
}

/// The part of a name that alone decides its slot, where there is one.
fn hash_tag(stored: &[u8]) -> Option<Range<usize>> {
    let begin = stored.iter().position(|byte| *byte == b'{')? + 1;
    let length = stored[begin..].iter().position(|byte| *byte == b'}')?;
    (length > 0).then_some(begin..begin + length)
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

    fn fence(stored: &[u8]) -> Bytes {
        let mut buffer = stored.to_vec();
        push_fence(&mut buffer);
        Bytes::from(buffer.split_off(stored.len()))
    }

    #[test]
    fn k4_the_parts_of_a_lease_are_the_names_it_has_alone() {
        let key = CacheKey::new("lock:report").unwrap();
        let token = LeaseToken::generate();
        for prefix in [None, Some(KeyPrefix::new("shop").unwrap())] {
            let keyspace = Keyspace::new(prefix, 3);
            let stored = keyspace.stored(&key);
            let channel = Bytes::from(keyspace.channel(&stored));
            let (number, text) = (fence(&stored), Bytes::copy_from_slice(token.as_bytes()));
            assert_eq!(keyspace.fenced(&key), [stored.clone(), number.clone()]);
            assert_eq!(
                keyspace.lease(&key, &token),
                [stored.clone(), number, text.clone()]
            );
            assert_eq!(keyspace.release(&key, &token), [stored, text, channel]);
        }
    }

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
