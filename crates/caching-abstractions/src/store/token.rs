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

    /// A fresh token of 128 random bits from the operating system, as 32 hexadecimal digits.
    ///
    /// # Panics
    /// If the operating system has no randomness to give: a lock with a guessable token would be
    /// worse than none.
    #[must_use]
    pub fn generate() -> Self {
        let mut random = [0_u8; Self::RANDOM_BYTES];
        #[expect(
            clippy::expect_used,
            reason = "no lock may go out with a guessable token"
        )]
        getrandom::fill(&mut random).expect("the operating system provides randomness");
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let text: String = random
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 0xf])
            .map(|digit| char::from(DIGITS[usize::from(digit)]))
            .collect();
        Self(text.into())
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
