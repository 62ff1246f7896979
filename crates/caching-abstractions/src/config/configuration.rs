use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

use super::entry::{Entry, Place, Value};
use super::file::{self, Format};
use super::section::Section;
use super::suggest::nearest;
use crate::capability::{AssemblyError, AssemblyProblem};

/// Raw settings from a file, the environment and code (C1).
///
/// - A file is TOML or JSON, by its extension, with sections nested as in the keys:
///   `XiHan:Caching:Provider` is `Provider` in the table `[XiHan.Caching]`.
/// - An environment variable's name is the key with `__` for `:`, as in
///   `XIHAN__CACHING__PROVIDER=redis`.
/// - Keys are compared without regard to case.
/// - What wins: [`with`](Self::with), then the environment, then the file, then
///   [`with_default`](Self::with_default).
///
/// Nothing is checked here but the file's syntax;
/// [`CachingSettings::from_configuration`](crate::CachingSettings::from_configuration) says what
/// the values mean. `Debug` prints keys and never values (C2).
///
/// ```
/// use caching_abstractions::{CachingSettings, Configuration};
///
/// let configuration = Configuration::from_toml("[XiHan.Caching]\nProvider = 'inmemory'")?
///     .environment([("XIHAN__CACHING__PROVIDER", "redis")]);
/// let settings = CachingSettings::from_configuration(&configuration)?;
/// assert_eq!(settings.provider.as_deref(), Some("redis"));
/// # Ok::<(), caching_abstractions::AssemblyError>(())
/// ```
#[derive(Clone, Default)]
pub struct Configuration {
    /// By key in lower case.
    entries: BTreeMap<String, Entry>,
    /// What is wrong with the environment's names; reported with everything else.
    misnamed: Vec<AssemblyProblem>,
    owned: Option<Vec<String>>,
}

impl Configuration {
    /// The variable that names the file for [`load`](Self::load).
    pub const FILE_VARIABLE: &'static str = "XIHAN_CONFIG";
    /// The file that [`load`](Self::load) reads where no other is named.
    pub const DEFAULT_FILE: &'static str = "xihan.toml";

    /// What the process finds: the file that `XIHAN_CONFIG` names, else `xihan.toml` in the
    /// working directory if it is there; then the environment.
    ///
    /// # Errors
    /// A file that is named and cannot be read, or that is no valid TOML or JSON; with its path
    /// and line.
    pub fn load() -> Result<Self, AssemblyError> {
        Self::load_in(Path::new(""), std::env::vars_os())
    }

    /// The file at `path` (the `--config FILE` of a program), then the environment.
    ///
    /// # Errors
    /// A file that cannot be read, or that is no valid TOML or JSON; with its path and line.
    pub fn load_from(path: impl AsRef<Path>) -> Result<Self, AssemblyError> {
        Ok(Self::from_file(path)?.environment(std::env::vars_os()))
    }

    fn load_in<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        directory: &Path,
        environment: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, AssemblyError> {
        let environment: Vec<(OsString, OsString)> = environment
            .into_iter()
            .map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned()))
            .collect();
        let named = environment
            .iter()
            .find(|(name, value)| name == Self::FILE_VARIABLE && !value.is_empty());
        let default = directory.join(Self::DEFAULT_FILE);
        let read = match named {
            Some((_, path)) => Self::from_file(directory.join(path))?,
            // A link that leads nowhere, or a file without permission, is there all the same.
            None if default.symlink_metadata().is_ok() => Self::from_file(default)?,
            None => Self::empty(),
        };
        Ok(read.environment(environment))
    }

    /// The file at `path` alone, without the environment.
    ///
    /// # Errors
    /// A file that cannot be read, or that is no valid TOML or JSON; with its path and line.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, AssemblyError> {
        Self::of_file(file::read(path.as_ref())?)
    }

    /// The content of a TOML file alone, without the environment.
    ///
    /// # Errors
    /// Text that is no valid TOML; with its line.
    pub fn from_toml(text: &str) -> Result<Self, AssemblyError> {
        Self::of_file(file::parse("configuration", text, Format::Toml)?)
    }

    /// The content of a JSON file alone, without the environment.
    ///
    /// # Errors
    /// Text that is no valid JSON object; with its line.
    pub fn from_json(text: &str) -> Result<Self, AssemblyError> {
        Self::of_file(file::parse("configuration", text, Format::Json)?)
    }

    /// No settings at all: every default counts.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The same configuration with these environment variables above the file (C1).
    ///
    /// A variable without `__` in its name is no setting and is passed over.
    #[must_use]
    pub fn environment<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        for (name, value) in variables {
            let Some(name) = name.as_ref().to_str() else {
                continue;
            };
            let key = name.replace("__", ":");
            if !key.contains(':') || key.split(':').any(str::is_empty) {
                self.note_single_underscores(name);
                continue;
            }
            let value = match value.as_ref().to_str() {
                Some(text) => Value::Text(text.to_owned()),
                None => Value::NotUnicode,
            };
            let place = Place::Environment(name.to_owned());
            if let Err(problem) = self.insert(Entry { key, value, place }) {
                self.misnamed.push(problem);
            }
        }
        self
    }

    /// The same configuration with `key` set by the program, above file and environment.
    ///
    /// For what a command line says, and for tests.
    #[must_use]
    pub fn with(self, key: impl Into<String>, value: impl ToString) -> Self {
        self.set(key.into(), value.to_string(), Place::Code)
    }

    /// The same configuration with a default for `key`, below file and environment.
    #[must_use]
    pub fn with_default(self, key: impl Into<String>, value: impl ToString) -> Self {
        self.set(key.into(), value.to_string(), Place::Default)
    }

    /// The same configuration, knowing that the program itself reads these top-level `sections`.
    ///
    /// From then on any other top-level section of the file but `XiHan` is a problem: most likely
    /// a misspelt one. Without this call the file may hold sections of other programs.
    #[must_use]
    pub fn owning<S: Into<String>>(mut self, sections: impl IntoIterator<Item = S>) -> Self {
        let sections = sections.into_iter().map(Into::into);
        self.owned.get_or_insert_default().extend(sections);
        self
    }

    /// The settings below `path`, such as `Orders` or `XiHan:Caching`, present or not.
    pub fn section(&self, path: impl Into<String>) -> Section<'_> {
        Section::new(self, path.into())
    }

    /// Misspelt top-level sections and settings given twice, as far as they can be told.
    pub(super) fn problems(&self) -> Vec<AssemblyProblem> {
        let misnamed = self.misnamed.iter().cloned();
        misnamed.chain(self.foreign_sections()).collect()
    }

    fn foreign_sections(&self) -> Vec<AssemblyProblem> {
        let Some(owned) = &self.owned else {
            return Vec::new();
        };
        let known = || owned.iter().map(String::as_str).chain(["XiHan"]);
        let mut problems: Vec<AssemblyProblem> = Vec::new();
        let mut last = None;
        for (key, entry) in &self.entries {
            let top = key.split(':').next().unwrap_or_default();
            let is_new = last.replace(top) != Some(top);
            let is_known = known().any(|name| name.to_lowercase() == top);
            if is_new && !is_known && matches!(entry.place, Place::File { .. }) {
                let written = entry.key.split(':').next().unwrap_or_default();
                problems.push(AssemblyProblem::new(
                    format!("{written} ({})", entry.place),
                    "nothing in this program reads this section",
                    match nearest(written, known()) {
                        Some(name) => format!("did you mean {name}"),
                        None => "remove it".to_owned(),
                    },
                ));
            }
        }
        problems
    }

    /// `key` with the place where it is set, as the subject of a problem.
    pub(crate) fn subject(&self, key: &str) -> String {
        match self.entry(key) {
            Some(entry) => entry.subject(Some(key)),
            None => key.to_owned(),
        }
    }

    /// The entry of a whole key, in any case.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(&key.to_lowercase())
    }

    /// Every entry below `path`, with its key in lower case.
    pub(super) fn below(&self, path: &str) -> impl Iterator<Item = (&str, &Entry)> {
        let start = format!("{}:", path.to_lowercase());
        self.entries
            .range(start.clone()..)
            .take_while(move |(key, _)| key.starts_with(&start))
            .map(|(key, entry)| (key.as_str(), entry))
    }

    fn of_file(entries: Vec<Entry>) -> Result<Self, AssemblyError> {
        let mut configuration = Self::empty();
        let doubles: Vec<AssemblyProblem> = entries
            .into_iter()
            .filter_map(|entry| configuration.insert(entry).err())
            .collect();
        AssemblyError::check(doubles)?;
        Ok(configuration)
    }

    fn set(mut self, key: String, value: String, place: Place) -> Self {
        let lower = key.to_lowercase();
        let value = Value::Text(value);
        match self.entries.get(&lower) {
            Some(there) if there.place.precedence() > place.precedence() => {}
            // Code may say a thing again; the last word counts.
            _ => {
                self.entries.insert(lower, Entry { key, value, place });
            }
        }
        self
    }

    /// Puts `entry` in unless something stronger stands there; two of one kind are a problem.
    fn insert(&mut self, entry: Entry) -> Result<(), AssemblyProblem> {
        let lower = entry.key.to_lowercase();
        match self.entries.entry(lower) {
            Slot::Vacant(free) => {
                free.insert(entry);
            }
            Slot::Occupied(mut there) => {
                let (old, new) = (there.get().place.precedence(), entry.place.precedence());
                let is_same_variable = matches!(entry.place, Place::Environment(_))
                    && there.get().place == entry.place;
                if old == new && !is_same_variable {
                    let rule = format!("is set a second time, after {}", there.get().place);
                    return Err(entry.problem(None, rule, "remove one of the two"));
                }
                if old <= new {
                    there.insert(entry);
                }
            }
        }
        Ok(())
    }

    /// `XIHAN_CACHING_PROVIDER` looks like a setting and is none.
    fn note_single_underscores(&mut self, name: &str) {
        let looks_like_one = name.to_uppercase().starts_with("XIHAN_CACHING_");
        if looks_like_one && !name.contains("__") {
            let problem = AssemblyProblem::new(
                format!("environment variable {name}"),
                "is no setting: the parts of a key are joined with two underscores",
                "write XIHAN__CACHING__ and the rest of the key, with two underscores between parts",
            );
            self.misnamed.push(problem);
        }
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subjects = self.entries.values().map(|entry| entry.subject(None));
        f.debug_set().entries(subjects).finish()
    }
}

#[cfg(test)]
mod tests;
