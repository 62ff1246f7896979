use std::fmt;
use std::sync::Arc;

use crate::error::{CachingError, Result};

/// What identifies one grant of a lease: unguessable text, kept by its holder alone.
///
/// The stored value of a lease is this text and nothing else (L3). `Debug` prints `***` and there
/// is no `Display`, so that a token does not end in a log (X3).
///
/// ```
/// use caching_abstractions::LeaseToken;
///
/// let token = LeaseToken::generate();
/// assert_ne!(token, LeaseToken::generate());
/// assert_eq!(format!("{token:?}"), "LeaseToken(***)");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LeaseToken(Arc<str>);

impl LeaseToken {
    const RANDOM_BYTES: usize = 16;
    const MAX_BYTES: usize = 512;

    /// A fresh token of 128 random bits, as 32 hexadecimal digits.
    ///
    /// The bits come from a cryptographic generator that the operating system seeds.
    #[must_use]
    pub fn generate() -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let random: [u8; Self::RANDOM_BYTES] = rand::random();
        let mut text = [0; 2 * Self::RANDOM_BYTES];
        for (pair, byte) in text.chunks_exact_mut(2).zip(random) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 0xf)];
        }
        Self(String::from_utf8_lossy(&text).into())
    }

    /// A token that somebody else made, for example one that comes over a wire.
    ///
    /// # Errors
    /// `CACHING_VALIDATION_001` if it is empty or longer than 512 bytes.
    pub fn new(text: impl AsRef<str> + Into<Arc<str>>) -> Result<Self> {
        match text.as_ref().len() {
            1..=Self::MAX_BYTES => Ok(Self(text.into())),
            length => Err(CachingError::invalid_key(format!(
                "a lease token has 1 to {} bytes, not {length}",
                Self::MAX_BYTES
            ))),
        }
    }

    /// The token as text. Do not log it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The token as it is stored.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseToken(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l1_a_token_is_128_random_bits_as_text() {
        let token = LeaseToken::generate();
        assert_eq!(token.as_str().len(), 32);
        assert!(token.as_str().bytes().all(|b| b.is_ascii_hexdigit()));
    }

    #[test]
    fn x3_a_token_does_not_print() {
        let token = LeaseToken::new("secret").unwrap();
        assert!(!format!("{token:?}").contains("secret"));
    }
}
