use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A language tag such as `en` or `zh-CN`, in its usual spelling.
///
/// Cloning never copies text; the two languages that ship own no memory.
///
/// ```
/// use idempotency_pipeline::language::Language;
///
/// assert_eq!(Language::new("zh-cn"), Some(Language::SIMPLIFIED_CHINESE));
/// assert_eq!(Language::new("sr-latn-rs").unwrap().as_str(), "sr-Latn-RS");
/// assert_eq!(Language::new("two words"), None);
/// ```
#[derive(Clone)]
pub struct Language(Tag);

#[derive(Clone)]
enum Tag {
    Shipped(&'static str),
    Given(Arc<str>),
}

impl Language {
    /// `en`, the default.
    pub const ENGLISH: Self = Self(Tag::Shipped("en"));
    /// `zh-CN`, which ships as well.
    pub const SIMPLIFIED_CHINESE: Self = Self(Tag::Shipped("zh-CN"));

    /// The language with this tag, or none if `tag` is no language tag: a language of 2 to 8
    /// letters, then subtags of 1 to 8 letters and digits, separated by `-`.
    ///
    /// The spelling becomes the usual one, so that `ZH-cn` and `zh-CN` are one language.
    pub fn new(tag: &str) -> Option<Self> {
        if !is_well_formed(tag.as_bytes()) {
            return None;
        }
        let shipped = [Self::ENGLISH, Self::SIMPLIFIED_CHINESE]
            .into_iter()
            .find(|language| language.as_str().eq_ignore_ascii_case(tag));
        Some(shipped.unwrap_or_else(|| Self(Tag::Given(usual_spelling(tag).into()))))
    }

    /// The tag, as it stands in `Content-Language`.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Tag::Shipped(tag) => tag,
            Tag::Given(tag) => tag,
        }
    }
}

/// Whether `tag` can be a language tag or, in `Accept-Language`, a language range other than `*`.
pub(super) fn is_well_formed(tag: &[u8]) -> bool {
    tag.split(|byte| *byte == b'-')
        .enumerate()
        .all(|(position, subtag)| match position {
            0 => (2..=8).contains(&subtag.len()) && subtag.iter().all(u8::is_ascii_alphabetic),
            _ => (1..=8).contains(&subtag.len()) && subtag.iter().all(u8::is_ascii_alphanumeric),
        })
}

/// `zh-Hans-CN`: the language in lower case, a script with one capital, a region in capitals.
fn usual_spelling(tag: &str) -> String {
    let mut spelled = String::with_capacity(tag.len());
    for (position, subtag) in tag.split('-').enumerate() {
        if position > 0 {
            spelled.push('-');
        }
        let start = spelled.len();
        spelled.push_str(subtag);
        let subtag = &mut spelled[start..];
        subtag.make_ascii_lowercase();
        match subtag.len() {
            2 if position > 0 => subtag.make_ascii_uppercase(),
            4 if position > 0 => subtag[..1].make_ascii_uppercase(),
            _ => {}
        }
    }
    spelled
}

impl Default for Language {
    fn default() -> Self {
        Self::ENGLISH
    }
}

impl PartialEq for Language {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Language {}

impl Hash for Language {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Language({self})")
    }
}
