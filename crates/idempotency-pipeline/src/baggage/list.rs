use std::borrow::Cow;
use std::fmt;

use caching_abstractions::{CacheKey, CachingError, Result};

use super::grammar;

/// The names of baggage members that the pipeline gives a meaning.
#[derive(Debug)]
pub struct BaggageKeys;

impl BaggageKeys {
    /// The member that holds the idempotency key of a call.
    pub const IDEMPOTENCY_KEY: &'static str = "xihan.idempotency-key";
}

/// What a call carries in its `baggage` header: the idempotency key, and the other members for
/// whoever is called next.
///
/// - Empty baggage owns no memory. Our member costs one allocation, two if it is percent-encoded;
///   members of others cost one more for all of them.
/// - Members of others are kept as they were written, in their order, with their properties.
///   Those that break the grammar are left out.
/// - `Debug` shows the key and how many other members there are, not what they say: baggage of
///   others may be private.
///
/// ```
/// use caching_abstractions::CacheKey;
/// use idempotency_pipeline::baggage::Baggage;
///
/// let baggage = Baggage::parse([&b"user=7, xihan.idempotency-key=order%2C1;ttl=5"[..]])?;
/// assert_eq!(baggage.idempotency_key(), Some("order,1"));
/// assert_eq!(baggage.members().collect::<Vec<_>>(), ["user=7"]);
///
/// let downstream = baggage.without_idempotency_key();
/// assert_eq!(downstream.to_header_value().as_deref(), Some("user=7"));
///
/// let client = Baggage::new().with_idempotency_key(CacheKey::new("订单-1")?);
/// assert_eq!(
///     client.to_header_value().as_deref(),
///     Some("xihan.idempotency-key=%E8%AE%A2%E5%8D%95-1"),
/// );
/// # Ok::<(), caching_abstractions::CachingError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Baggage {
    idempotency_key: Option<CacheKey>,
    /// Well-formed members of others, joined with `,`; none of them contains a `,`.
    others: String,
}

impl Baggage {
    /// The most bytes that all `baggage` lines of one call have together.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// Baggage without any member.
    pub const fn new() -> Self {
        Self {
            idempotency_key: None,
            others: String::new(),
        }
    }

    /// Reads the `baggage` lines of one call; all of them together are one list (H1).
    ///
    /// - The bytes need not be UTF-8. Empty members, and members of others that break the
    ///   grammar, are skipped.
    /// - Our member's value is trimmed, then percent-decoded (`+` stays `+`), then checked
    ///   against K1. Its properties are ignored.
    /// - Our member may stand there several times with one decoded value.
    /// - Reading takes time proportional to the number of bytes, once.
    ///
    /// # Errors
    /// `CACHING_VALIDATION_001`, saying which rule is broken:
    /// - our member has no `=`, no value, or an octet or property that baggage does not allow;
    /// - its value does not decode, or decodes to what is no key;
    /// - it stands there with two different values;
    /// - the lines have more than [`MAX_BYTES`](Self::MAX_BYTES) bytes; the line that goes beyond
    ///   is not read.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Self> {
        let mut baggage = Self::new();
        let mut room = Self::MAX_BYTES;
        for line in lines {
            room = room.checked_sub(line.len()).ok_or_else(|| {
                CachingError::invalid_key(format!(
                    "the baggage has more than {} bytes",
                    Self::MAX_BYTES
                ))
            })?;
            baggage.read(line)?;
        }
        Ok(baggage)
    }

    fn read(&mut self, line: &[u8]) -> Result<()> {
        for member in line.split(|byte| *byte == b',') {
            let member = grammar::trim(member);
            if let Some(rest) = grammar::after_name(member, BaggageKeys::IDEMPOTENCY_KEY) {
                self.read_ours(rest)?;
            } else if let Some(member) = grammar::foreign_member(member) {
                if self.others.is_empty() {
                    self.others.reserve_exact(line.len());
                } else {
                    self.others.push(',');
                }
                self.others.push_str(member);
            }
        }
        Ok(())
    }

    fn read_ours(&mut self, rest: &[u8]) -> Result<()> {
        let value = grammar::our_value(rest).map_err(refused)?;
        match &self.idempotency_key {
            Some(key) if key.as_str() == value => {}
            Some(_) => return Err(refused("stands there with two different values")),
            None => self.idempotency_key = Some(checked(value)?),
        }
        Ok(())
    }

    /// The idempotency key, decoded; none if the call has none. It follows K1.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_ref().map(CacheKey::as_str)
    }

    /// The members of others, as they were written.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        self.others.split(',').filter(|member| !member.is_empty())
    }

    /// Whether there is neither a key nor another member.
    pub fn is_empty(&self) -> bool {
        self.idempotency_key.is_none() && self.others.is_empty()
    }

    /// The same members with `key` as the idempotency key, in place of the one that was there.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: impl Into<CacheKey>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// What a call hands on to the services and messages it causes: everything but the key (P13).
    ///
    /// For a downstream call that is to be deduplicated as well, add a key of its own, made with
    /// [`derive_child_key`](super::derive_child_key).
    #[must_use]
    pub fn without_idempotency_key(&self) -> Self {
        Self {
            idempotency_key: None,
            others: self.others.clone(),
        }
    }

    /// Takes the key of an `Idempotency-Key` header in (H1).
    ///
    /// The result has the key that is given in either place; `header_key` none changes nothing.
    ///
    /// # Errors
    /// `CACHING_VALIDATION_001` if both are given and differ.
    pub fn reconcile(self, header_key: Option<CacheKey>) -> Result<Self> {
        match (&self.idempotency_key, header_key) {
            (Some(own), Some(header)) if *own != header => Err(refused(
                "and the header `Idempotency-Key` name two different keys",
            )),
            (None, Some(header)) => Ok(self.with_idempotency_key(header)),
            _ => Ok(self),
        }
    }

    /// The value of a `baggage` header with all members, or none if there are none.
    ///
    /// It is ASCII: the key is percent-encoded where it has to be.
    pub fn to_header_value(&self) -> Option<Cow<'_, str>> {
        let Some(key) = self.idempotency_key() else {
            return (!self.others.is_empty()).then_some(Cow::Borrowed(self.others.as_str()));
        };
        let name = BaggageKeys::IDEMPOTENCY_KEY;
        let mut value = String::with_capacity(name.len() + 1 + key.len() + 1 + self.others.len());
        value.push_str(name);
        value.push('=');
        grammar::encode(&mut value, key);
        if !self.others.is_empty() {
            value.push(',');
            value.push_str(&self.others);
        }
        Some(Cow::Owned(value))
    }
}

impl fmt::Debug for Baggage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Baggage")
            .field("idempotency_key", &self.idempotency_key())
            .field("other_members", &self.members().count())
            .finish()
    }
}

fn checked(value: Cow<'_, str>) -> Result<CacheKey> {
    let key = match value {
        Cow::Borrowed(text) => CacheKey::new(text),
        Cow::Owned(text) => CacheKey::new(text),
    };
    key.map_err(|error| {
        let reason = error
            .parameter("reason")
            .unwrap_or("it breaks the grammar of keys");
        refused(format_args!("is no key once it is decoded: {reason}"))
    })
}

/// The error about our own member; `fault` continues the sentence after its name.
fn refused(fault: impl fmt::Display) -> CachingError {
    CachingError::invalid_key(format!(
        "the baggage member `{}` {fault}",
        BaggageKeys::IDEMPOTENCY_KEY
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(header: &[u8]) -> String {
        let error = Baggage::parse([header]).unwrap_err();
        error.parameter("reason").unwrap().to_owned()
    }

    #[test]
    fn h1_the_reason_names_the_rule() {
        for (member, expected) in [
            ("xihan.idempotency-key", "has no `=`"),
            ("xihan.idempotency-key;ttl=5", "has no `=`"),
            ("xihan.idempotency-key: a", "has something else than `=`"),
            ("xihan.idempotency-key a=b", "has something else than `=`"),
            ("xihan.idempotency-key= ", "has no value"),
            ("xihan.idempotency-key=ab\"", "byte 3 of its value"),
            (
                "xihan.idempotency-key=a%4",
                "broken percent triplet at byte 2",
            ),
            ("xihan.idempotency-key=%ff", "is not UTF-8"),
            ("xihan.idempotency-key=a;", "malformed property"),
            ("xihan.idempotency-key=a;p=\"x\"", "malformed property"),
            ("xihan.idempotency-key=a%20", "character 2 (U+0020)"),
        ] {
            let reason = reason(member.as_bytes());
            assert!(reason.contains(expected), "{member}: {reason}");
            assert!(reason.contains(BaggageKeys::IDEMPOTENCY_KEY), "{reason}");
        }
        assert!(reason(&[b','; Baggage::MAX_BYTES + 1]).contains("more than 16384 bytes"));
    }

    #[test]
    fn h1_a_longer_name_is_another_member() {
        let header = b"xihan.idempotency-key2=a,xihan.idempotency-key.x=b";
        let baggage = Baggage::parse([&header[..]]).unwrap();
        assert_eq!(baggage.idempotency_key(), None);
        assert_eq!(baggage.members().count(), 2);
    }

    #[test]
    fn h1_the_limit_counts_all_lines_together() {
        let line = [b','; Baggage::MAX_BYTES / 2];
        assert!(Baggage::parse([&line[..], &line[..]]).is_ok());
        assert!(Baggage::parse([&line[..], &line[..], b"x"]).is_err());
    }

    #[test]
    fn h1_members_of_others_are_kept_as_written() {
        let lines: [&[u8]; 3] = [
            b" a = 1 ; p ; q = 2 ,@@,\xff=1,b=\"x\"",
            b"xihan.idempotency-key=k",
            b"c=%zz,\t,d=",
        ];
        let baggage = Baggage::parse(lines).unwrap();
        let members: Vec<_> = baggage.members().collect();
        assert_eq!(members, ["a = 1 ; p ; q = 2", "c=%zz", "d="]);
        assert_eq!(
            baggage.to_header_value().unwrap(),
            "xihan.idempotency-key=k,a = 1 ; p ; q = 2,c=%zz,d="
        );
    }

    #[test]
    fn p13_downstream_baggage_has_no_key() {
        let baggage = Baggage::parse([&b"a=1,xihan.idempotency-key=k,b=2"[..]]).unwrap();
        let downstream = baggage.without_idempotency_key();
        assert_eq!(downstream.idempotency_key(), None);
        assert_eq!(downstream.to_header_value().unwrap(), "a=1,b=2");
        assert!(Baggage::new().to_header_value().is_none());
    }

    #[test]
    fn h1_both_places_may_name_one_key_and_not_two() {
        let baggage = Baggage::parse([&b"xihan.idempotency-key=a"[..]]).unwrap();
        let key = |text: &str| Some(CacheKey::new(text).unwrap());
        let same = baggage.clone().reconcile(key("a")).unwrap();
        assert_eq!(same.idempotency_key(), Some("a"));
        assert!(baggage.clone().reconcile(key("b")).is_err());
        assert_eq!(baggage.clone().reconcile(None).unwrap(), baggage);
        let header_only = Baggage::new().reconcile(key("b")).unwrap();
        assert_eq!(header_only.idempotency_key(), Some("b"));
    }

    #[test]
    fn x3_debug_keeps_other_members_to_itself() {
        let baggage = Baggage::parse([&b"user=secret,xihan.idempotency-key=k"[..]]).unwrap();
        let text = format!("{baggage:?}");
        assert!(!text.contains("secret") && text.contains("\"k\""), "{text}");
    }
}
