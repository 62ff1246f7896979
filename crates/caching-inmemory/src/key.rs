//! Keys as the store holds them, hashed once per operation.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use caching_abstractions::{CacheKey, KeyPrefix};
use equivalent::Equivalent;

/// Hashes keys with SipHash under a seed of the operating system's randomness.
///
/// Clients choose keys (an idempotency key comes over the wire), so the hash must resist someone
/// who wants all of them in one bucket. Quicker hashes promise that only in part, and on keys of
/// this length SipHash costs a few per cent of an operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyHasher(RandomState);

impl KeyHasher {
    pub(crate) fn hash(&self, text: &str) -> u64 {
        self.0.hash_one(text)
    }
}

/// A key to look for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRef<'a> {
    pub(crate) hash: u64,
    pub(crate) text: &'a str,
}

impl KeyRef<'_> {
    pub(crate) fn to_stored(self) -> StoredKey {
        StoredKey {
            hash: self.hash,
            text: self.text.into(),
        }
    }
}

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Equivalent<StoredKey> for KeyRef<'_> {
    fn equivalent(&self, key: &StoredKey) -> bool {
        self.text == &*key.text
    }
}

/// A key with its hash, owned by an entry.
#[derive(Debug)]
pub(crate) struct StoredKey {
    pub(crate) hash: u64,
    pub(crate) text: Box<str>,
}

impl PartialEq for StoredKey {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for StoredKey {}

impl Hash for StoredKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Passes on the hash that [`KeyRef`] and [`StoredKey`] carry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CarriedHash;

impl BuildHasher for CarriedHash {
    type Hasher = CarriedHasher;

    fn build_hasher(&self) -> CarriedHasher {
        CarriedHasher(0)
    }
}

#[derive(Debug)]
pub(crate) struct CarriedHasher(u64);

impl Hasher for CarriedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    /// Only `write_u64` is ever called; this keeps the trait honest for other input.
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
}

/// The text `key` is stored under: without a prefix the key itself (K4).
pub(crate) fn stored_text<'a>(prefix: Option<&KeyPrefix>, key: &'a CacheKey) -> Cow<'a, str> {
    match prefix {
        None => Cow::Borrowed(key.as_str()),
        Some(prefix) => Cow::Owned(prefix.stored(key)),
    }
}
