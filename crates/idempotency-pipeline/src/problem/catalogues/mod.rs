use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use caching_abstractions::ErrorCategory;

use super::template::Template;
use crate::language::{Language, negotiate};

/// Titles and details of problems, by language and message key (X2).
///
/// English and Simplified Chinese are there for every message key of the workspace. An
/// application adds languages, and entries for its own failures, with [`with`](Self::with).
///
/// - An entry that a language lacks is taken from English, and if English lacks it too, the
///   failure's own text is used under a title that says its category.
/// - A detail whose placeholder has no parameter is not used.
/// - Some parameters are English text from code, such as `reason`: a translation puts its own
///   sentence around them and keeps them as they are.
///
/// ```
/// use idempotency_pipeline::{Catalogues, Failure, Language, Problem};
///
/// let catalogues = Catalogues::built_in()
///     .with("en", r#"
///         [ORDERS_CONFLICT_001]
///         title = "Out of stock"
///         detail = "{product} is out of stock."
///     "#)?
///     .with("zh-CN", r#"
///         [ORDERS_CONFLICT_001]
///         title = "缺货"
///         detail = "{product} 缺货。"
///     "#)?;
///
/// let language = catalogues.negotiate(Some(b"zh, en;q=0.5"));
/// let failure = Failure::new("ORDERS_CONFLICT_001").with_parameter("product", "Unobtainium");
/// let problem = Problem::of_failure(&failure, &catalogues, &language);
/// assert_eq!(problem.title(), "缺货");
/// assert_eq!(problem.detail(), "Unobtainium 缺货。");
/// # Ok::<(), idempotency_pipeline::problem::CatalogueError>(())
/// ```
///
/// Cheap to clone: clones share the texts.
#[derive(Clone)]
pub struct Catalogues(Arc<Shelf>);

#[derive(Clone, Default)]
struct Shelf {
    languages: Vec<Language>,
    /// One for each of `languages`.
    entries: Vec<Entries>,
}

type Entries = HashMap<Box<str>, Entry>;

#[derive(Clone, Debug, Default)]
struct Entry {
    title: Option<Template>,
    detail: Option<Template>,
}

impl Catalogues {
    /// The catalogues that ship: `en`, the default, and `zh-CN`.
    ///
    /// Reads the embedded texts; call it once, at assembly, and share the result.
    #[expect(
        clippy::expect_used,
        reason = "the embedded texts never change at run time, and the tests of this crate read them"
    )]
    pub fn built_in() -> Self {
        let empty = Self(Arc::default());
        empty
            .with("en", include_str!("en.toml"))
            .and_then(|catalogues| catalogues.with("zh-CN", include_str!("zh-CN.toml")))
            .expect("the embedded catalogues are well formed")
    }

    /// Adds the entries of `toml` to the catalogue of `language`; they win over those it has.
    ///
    /// Each entry is a table named as the message key, quoted or not, with `title`, `detail` or
    /// both, in which `{name}` stands for a parameter and `{{` for a brace.
    ///
    /// # Errors
    /// If `language` is no language tag, `toml` is no TOML, or an entry breaks these rules; the
    /// error says where.
    pub fn with(mut self, language: &str, toml: &str) -> Result<Self, CatalogueError> {
        let fault = |key: &str, rule: Cow<'static, str>| CatalogueError {
            language: language.to_owned(),
            key: key.to_owned(),
            rule,
        };
        let tag = Language::new(language)
            .ok_or_else(|| fault("", "its language is no language tag such as `en`".into()))?;
        let table: toml::Table = toml::from_str(toml).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(toml, span.start));
            fault(
                "",
                format!("line {line}: {}", one_line(error.message())).into(),
            )
        })?;
        let mut added = Entries::new();
        read(&mut added, &mut String::new(), &table).map_err(|(key, rule)| fault(&key, rule))?;
        let shelf = Arc::make_mut(&mut self.0);
        let position = shelf.languages.iter().position(|known| *known == tag);
        let position = position.unwrap_or_else(|| {
            shelf.languages.push(tag);
            shelf.entries.push(Entries::new());
            shelf.languages.len() - 1
        });
        for (key, entry) in added {
            let known = shelf.entries[position].entry(key).or_default();
            known.title = entry.title.or(known.title.take());
            known.detail = entry.detail.or(known.detail.take());
        }
        Ok(self)
    }

    /// The languages there is a catalogue for, the default first.
    pub fn languages(&self) -> &[Language] {
        &self.0.languages
    }

    /// The language for a call with this `Accept-Language` header, if it has one.
    pub fn negotiate(&self, accept_language: Option<&[u8]>) -> Language {
        negotiate(accept_language, &self.0.languages)
    }

    /// The title of a message key, else of the category.
    pub(super) fn title(&self, wanted: &Wanted<'_>) -> Cow<'_, str> {
        let of_key = self.find(wanted.key, wanted, |entry| entry.title.as_ref());
        let of_category = || {
            let key = category_key(wanted.category);
            self.find(key, wanted, |entry| entry.title.as_ref())
        };
        of_key
            .or_else(of_category)
            .map_or(Cow::Borrowed(wanted.category.word()), |(title, _)| title)
    }

    /// The detail of a message key, else `own`, else of the category; and its language.
    pub(super) fn detail<'a>(
        &'a self,
        wanted: &Wanted<'_>,
        own: Option<&'a str>,
    ) -> (Cow<'a, str>, Language) {
        let of_key = self.find(wanted.key, wanted, |entry| entry.detail.as_ref());
        let own = || Some((Cow::Borrowed(own?), &Language::ENGLISH));
        let of_category = || {
            let key = category_key(wanted.category);
            self.find(key, wanted, |entry| entry.detail.as_ref())
        };
        let found = of_key.or_else(own).or_else(of_category);
        let (detail, language) =
            found.unwrap_or((Cow::Borrowed(wanted.category.word()), &Language::ENGLISH));
        (detail, language.clone())
    }

    /// The text of `key` in the language that is wanted, else in English.
    fn find(
        &self,
        key: &str,
        wanted: &Wanted<'_>,
        part: impl Fn(&Entry) -> Option<&Template>,
    ) -> Option<(Cow<'_, str>, &Language)> {
        [wanted.language, &Language::ENGLISH]
            .into_iter()
            .find_map(|language| {
                let position = self
                    .0
                    .languages
                    .iter()
                    .position(|known| known == language)?;
                let template = part(self.0.entries[position].get(key)?)?;
                let text = template.render(wanted.parameters)?;
                Some((text, &self.0.languages[position]))
            })
    }
}

/// The catalogues that ship.
impl Default for Catalogues {
    fn default() -> Self {
        Self::built_in()
    }
}

/// What a text is looked for.
pub(super) struct Wanted<'a> {
    pub(super) key: &'a str,
    pub(super) category: ErrorCategory,
    pub(super) parameters: &'a [(&'a str, &'a str)],
    pub(super) language: &'a Language,
}

/// The entry that stands in for a message key nobody translated.
fn category_key(category: ErrorCategory) -> &'static str {
    match category {
        ErrorCategory::Validation => "category.validation",
        ErrorCategory::Unauthenticated => "category.unauthenticated",
        ErrorCategory::Forbidden => "category.forbidden",
        ErrorCategory::NotFound => "category.not_found",
        ErrorCategory::Conflict => "category.conflict",
        ErrorCategory::Exhausted => "category.exhausted",
        ErrorCategory::Unavailable => "category.unavailable",
        _ => "category.internal",
    }
}

/// Reads `table`, whose name is `path`, and the tables in it.
fn read(
    into: &mut Entries,
    path: &mut String,
    table: &toml::Table,
) -> Result<(), (String, Cow<'static, str>)> {
    for (name, value) in table {
        match value {
            toml::Value::Table(inner) => {
                let length = path.len();
                if length > 0 {
                    path.push('.');
                }
                path.push_str(name);
                read(into, path, inner)?;
                path.truncate(length);
            }
            toml::Value::String(text) if !path.is_empty() => {
                let template = Template::parse(text)
                    .map_err(|rule| (path.clone(), format!("`{name}`: {rule}").into()))?;
                let entry = into.entry(path.as_str().into()).or_default();
                match name.as_str() {
                    "title" => entry.title = Some(template),
                    "detail" => entry.detail = Some(template),
                    _ => {
                        let rule = format!("`{name}` is neither `title` nor `detail`");
                        return Err((path.clone(), rule.into()));
                    }
                }
            }
            _ => {
                let rule = format!("`{name}` has to be text in the table of a message key");
                return Err((path.clone(), rule.into()));
            }
        }
    }
    Ok(())
}

fn line_of(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    before.filter(|byte| **byte == b'\n').count() + 1
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Debug for Catalogues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.0.entries.iter().map(HashMap::len);
        f.debug_map()
            .entries(self.0.languages.iter().zip(sizes))
            .finish()
    }
}

/// A catalogue that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueError {
    language: String,
    key: String,
    rule: Cow<'static, str>,
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the catalogue `{}` cannot be read: ", self.language)?;
        if !self.key.is_empty() {
            write!(f, "entry `{}`: ", self.key)?;
        }
        f.write_str(&self.rule)
    }
}

impl Error for CatalogueError {}

#[cfg(test)]
mod tests;
