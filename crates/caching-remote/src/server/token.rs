use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use caching_abstractions::KeyPrefix;
use sha2::{Digest as _, Sha256};

use super::error::ServerError;

/// What a client shows to be let in: a secret, and the key prefix it is bound to, if any.
///
/// - A token that is bound to a prefix sees and touches only the keys of that prefix (K4).
/// - `Debug` prints the prefix and never the secret (X3).
///
/// ```
/// use caching_abstractions::KeyPrefix;
/// use caching_remote::server::AccessToken;
///
/// let everything = AccessToken::new("correct-horse-battery-staple")?;
/// let shop = AccessToken::new("another-long-secret")?.bound_to(KeyPrefix::new("shop")?);
/// assert_eq!(shop.prefix().map(KeyPrefix::as_str), Some("shop"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AccessToken {
    digest: [u8; 32],
    prefix: Option<KeyPrefix>,
}

impl AccessToken {
    /// A token for the whole keyspace.
    ///
    /// Take a long random text: whoever guesses it is in.
    ///
    /// # Errors
    /// If `secret` is empty or has anything but printable ASCII characters without spaces, which is
    /// what a header can carry.
    pub fn new(secret: impl AsRef<str>) -> Result<Self, ServerError> {
        let secret = secret.as_ref();
        if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ServerError::token(
                "a token is printable ASCII text without spaces, and not empty",
            ));
        }
        Ok(Self {
            digest: digest(secret.as_bytes()),
            prefix: None,
        })
    }

    /// The same token, bound to `prefix`.
    #[must_use]
    pub fn bound_to(mut self, prefix: KeyPrefix) -> Self {
        self.prefix = Some(prefix);
        self
    }

    /// The prefix it is bound to; none if it may touch every key.
    pub fn prefix(&self) -> Option<&KeyPrefix> {
        self.prefix.as_ref()
    }

    /// The tokens of a file: one a line, `token` or `token prefix`. Empty lines and lines that
    /// begin with `#` count for nothing.
    ///
    /// # Errors
    /// If the file cannot be read, has no token, or a line of it is neither form or repeats the
    /// token of another line, which could only open two things by accident. The error names the
    /// line and never what stands in it.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Vec<Self>, ServerError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ServerError::token(format!("`{}`: {error}", path.display())))?;
        Self::parse(&text)
            .map_err(|reason| ServerError::token(format!("`{}`: {reason}", path.display())))
    }

    fn parse(text: &str) -> Result<Vec<Self>, String> {
        let mut tokens = Vec::new();
        let mut first_lines = HashMap::new();
        for (position, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |reason: &dyn fmt::Display| format!("line {}: {reason}", position + 1);
            let mut words = line.split_whitespace();
            let mut token =
                Self::new(words.next().unwrap_or_default()).map_err(|error| wrong(&error))?;
            if let Some(prefix) = words.next() {
                token = token.bound_to(KeyPrefix::new(prefix).map_err(|error| wrong(&error))?);
            }
            if words.next().is_some() {
                return Err(wrong(&"a line is `token` or `token prefix`"));
            }
            if let Some(first) = first_lines.insert(token.digest, position + 1) {
                return Err(wrong(&format_args!(
                    "it has the token of line {first}; give each line a token of its own"
                )));
            }
            tokens.push(token);
        }
        if tokens.is_empty() {
            return Err("there is no token in it; write one to a line".to_owned());
        }
        Ok(tokens)
    }

    pub(super) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

/// Secrets are compared by what this gives, so that no comparison depends on their lengths.
pub(super) fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken")
            .field("secret", &format_args!("***"))
            .field("prefix", &self.prefix)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k4_a_file_has_tokens_with_and_without_a_prefix() {
        let tokens = AccessToken::parse("# ours\n\nfirst\n  second\tshop \n").unwrap();
        let prefixes: Vec<_> = tokens.iter().map(AccessToken::prefix).collect();
        assert_eq!(prefixes, [None, Some(&KeyPrefix::new("shop").unwrap())]);
        assert_eq!(tokens[1].digest(), &digest(b"second"));
    }

    #[test]
    fn k4_a_file_of_another_system_has_the_same_tokens() {
        let tokens = AccessToken::parse("# ours\r\nfirst\r\nsecond shop\r\n").unwrap();
        let digests: Vec<_> = tokens.iter().map(AccessToken::digest).collect();
        assert_eq!(digests, [&digest(b"first"), &digest(b"second")]);
        assert_eq!(tokens[1].prefix().map(KeyPrefix::as_str), Some("shop"));
    }

    #[test]
    fn x3_a_wrong_line_is_named_and_not_shown() {
        for (text, says) in [
            ("", "no token"),
            ("# only\n", "no token"),
            ("good\nSECRET a:b", "line 2"),
            ("SECRET shop more", "line 1"),
            ("SECRÉT", "line 1"),
            (
                "SECRET shop\n\nSECRET",
                "line 3: it has the token of line 1",
            ),
            ("SECRET\nSECRET blog", "line 2: it has the token of line 1"),
            ("SECRET shop\nSECRET shop", "line 2"),
            ("\u{feff}SECRET", "line 1"),
        ] {
            let reason = AccessToken::parse(text).unwrap_err();
            assert!(reason.contains(says), "{reason}");
            assert!(!reason.contains("SECR"), "{reason}");
        }
    }

    #[test]
    fn x3_a_token_does_not_print() {
        let printed = format!("{:?}", AccessToken::new("SECRET").unwrap());
        assert!(printed.contains("***") && !printed.contains("SECRET"));
    }
}
