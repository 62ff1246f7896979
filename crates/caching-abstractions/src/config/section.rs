use std::any::type_name;
use std::fmt::Display;
use std::str::FromStr;

use super::entry::{Entry, Value};
use super::suggest::nearest;
use super::{Configuration, Secret};
use crate::capability::AssemblyProblem;

/// The settings below one path of a [`Configuration`].
///
/// An application reads its own section with the same rules, sources and error texts as the
/// framework's:
///
/// ```
/// use caching_abstractions::Configuration;
///
/// let configuration = Configuration::from_toml("[Orders]\nHttpPort = 5000")?
///     .environment([("ORDERS__HTTPPORT", "8080")]);
/// let orders = configuration.section("Orders");
/// assert_eq!(orders.parse::<u16>("HttpPort")?, Some(8080));
/// assert_eq!(orders.parse::<u16>("GrpcPort")?, None);
/// assert!(orders.unknown_keys(&["HttpPort", "GrpcPort"]).is_empty());
/// # Ok::<(), caching_abstractions::AssemblyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Section<'a> {
    configuration: &'a Configuration,
    path: String,
}

impl<'a> Section<'a> {
    pub(super) fn new(configuration: &'a Configuration, path: String) -> Self {
        Self {
            configuration,
            path,
        }
    }

    /// The section's path, as it was asked for.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The section `path` within this one.
    #[must_use]
    pub fn section(&self, path: &str) -> Self {
        Self::new(self.configuration, self.full(path))
    }

    /// The value of `key` as text, whatever its type; none if it is not set.
    ///
    /// # Errors
    /// An environment variable that is no Unicode text, or a section where a value is expected.
    pub fn text(&self, key: &str) -> Result<Option<String>, AssemblyProblem> {
        Ok(self.entry(key)?.map(|entry| entry.value.to_string()))
    }

    /// The value of `key`, parsed as `T`: a number, a truth value, an address …; none if it is not
    /// set.
    ///
    /// The error text holds the value, so a secret is read with [`secret`](Self::secret) instead.
    ///
    /// # Errors
    /// A value that is no `T`, with key, place and reason.
    pub fn parse<T>(&self, key: &str) -> Result<Option<T>, AssemblyProblem>
    where
        T: FromStr,
        T::Err: Display,
    {
        let Some(entry) = self.entry(key)? else {
            return Ok(None);
        };
        let text = entry.value.to_string();
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(entry.problem(
                Some(&self.full(key)),
                format!("`{text}` is not valid: {error}"),
                format!("set it to a value of type {}", short_type_name::<T>()),
            )),
        }
    }

    /// The value of `key`, or the content of the file that `<key>File` names (C2), without the
    /// white space at its end; none if neither is set.
    ///
    /// # Errors
    /// Both are set, the file cannot be read, or the value is empty. The error never holds the
    /// value.
    pub fn secret(&self, key: &str) -> Result<Option<Secret>, AssemblyProblem> {
        match self.secret_source(key)? {
            None => Ok(None),
            Some(SecretSource::Value(secret)) => Ok(Some(secret)),
            Some(SecretSource::File(file)) => {
                read_secret(file, &self.full(&format!("{key}File"))).map(Some)
            }
        }
    }

    /// As [`secret`](Self::secret), without reading the file.
    pub(super) fn secret_source(
        &self,
        key: &str,
    ) -> Result<Option<SecretSource<'a>>, AssemblyProblem> {
        let file_key = format!("{key}File");
        let (name, file_name) = (self.full(key), self.full(&file_key));
        match (self.entry(key)?, self.entry(&file_key)?) {
            (None, None) => Ok(None),
            (None, Some(file)) => Ok(Some(SecretSource::File(file))),
            (Some(entry), Some(file)) => Err(file.problem(
                Some(&file_name),
                format!("is set although {} is set, too", entry.subject(Some(&name))),
                "remove one of the two",
            )),
            (Some(entry), None) => match entry.value.to_string() {
                empty if empty.is_empty() => Err(entry.problem(
                    Some(&name),
                    "is empty",
                    format!("give it a value, or set {file_name} instead"),
                )),
                value => Ok(Some(SecretSource::Value(Secret::new(value)))),
            },
        }
    }

    /// One problem for each setting below this section that is not among `known`.
    ///
    /// `known` holds keys relative to the section, nested ones as `Outer:Inner`. Each problem
    /// names the known key that is most likely meant.
    pub fn unknown_keys(&self, known: &[&str]) -> Vec<AssemblyProblem> {
        let whole: Vec<String> = known.iter().map(|key| self.full(key)).collect();
        let is_known = |key: &str| whole.iter().any(|name| name.to_lowercase() == key);
        let whole = || whole.iter().map(String::as_str);
        // What is below a known key that has no value is reported when the value is read.
        let is_below_known = |key: &str| {
            whole().any(|name| {
                key.starts_with(&format!("{}:", name.to_lowercase()))
                    && self.configuration.entry(name).is_none()
            })
        };
        self.configuration
            .below(&self.path)
            .filter(|(key, _)| !is_known(key) && !is_below_known(key))
            .map(|(key, entry)| {
                let is_section =
                    whole().any(|name| name.to_lowercase().starts_with(&format!("{key}:")));
                if is_section {
                    return entry.problem(
                        None,
                        "is a section and not a value",
                        "put its settings below it",
                    );
                }
                let remedy = match nearest(&entry.key, whole()) {
                    Some(name) => format!("did you mean {name}"),
                    None => format!("remove it, or see the settings of {}", self.path),
                };
                entry.problem(None, "is no known setting", remedy)
            })
            .collect()
    }

    /// The entry of `key`; none if it is not set.
    pub(super) fn entry(&self, key: &str) -> Result<Option<&'a Entry>, AssemblyProblem> {
        let name = self.full(key);
        match self.configuration.entry(&name) {
            Some(entry) if matches!(entry.value, Value::NotUnicode) => Err(entry.problem(
                Some(&name),
                "is text that is not Unicode",
                "set it to Unicode text",
            )),
            Some(entry) => Ok(Some(entry)),
            None => match self.configuration.below(&name).next() {
                Some((_, entry)) => Err(AssemblyProblem::new(
                    format!("{name} ({})", entry.place),
                    "is a section or a list and has to be one value",
                    "set it to one value",
                )),
                None => Ok(None),
            },
        }
    }

    /// The whole key of `key` in this section.
    pub(super) fn full(&self, key: &str) -> String {
        format!("{}:{key}", self.path)
    }
}

/// Where a secret stands.
pub(super) enum SecretSource<'a> {
    Value(Secret),
    File(&'a Entry),
}

fn read_secret(file: &Entry, name: &str) -> Result<Secret, AssemblyProblem> {
    let path = file.value.to_string();
    let text = std::fs::read_to_string(&path).map_err(|error| {
        file.problem(
            Some(name),
            format!("the file `{path}` cannot be read: {error}"),
            "name a UTF-8 text file that this process may read",
        )
    })?;
    match text.trim_end() {
        "" => Err(file.problem(
            Some(name),
            format!("the file `{path}` is empty"),
            "put the secret into it",
        )),
        secret => Ok(Secret::new(secret)),
    }
}

fn short_type_name<T>() -> &'static str {
    let name = type_name::<T>();
    name.rsplit("::").next().unwrap_or(name)
}
