use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use super::entry::{Entry, Value};
use super::section::{SecretSource, Section};
use super::{Configuration, Secret};
use crate::capability::AssemblyProblem;
use crate::expiration::TimeToLive;

/// Reads one section value by value, remembers every key it was asked for, and collects the
/// problems instead of stopping at the first.
pub(super) struct Reader<'a> {
    section: Section<'a>,
    known: Vec<&'static str>,
    problems: Vec<AssemblyProblem>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(configuration: &'a Configuration, path: &str) -> Self {
        Self {
            section: configuration.section(path),
            known: Vec::new(),
            problems: configuration.problems(),
        }
    }

    /// Every problem, unknown keys included.
    pub(super) fn finish(mut self) -> Vec<AssemblyProblem> {
        self.problems.extend(self.section.unknown_keys(&self.known));
        self.problems
    }

    /// The value of `key` after `check`, whose error is the broken rule and its remedy; none if
    /// it is not set or does not pass.
    pub(super) fn value<T>(
        &mut self,
        key: &'static str,
        check: impl FnOnce(&Value) -> Result<T, (String, String)>,
    ) -> Option<T> {
        self.known.push(key);
        match self.section.entry(key) {
            Ok(None) => None,
            Ok(Some(entry)) => match check(&entry.value) {
                Ok(value) => Some(value),
                Err((rule, remedy)) => {
                    self.problem(key, entry, rule, remedy);
                    None
                }
            },
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    /// Text that is not empty.
    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.value(key, |value| match value {
            Value::Text(text) if !text.is_empty() => Ok(text.clone()),
            Value::Text(_) => Err(rule("is empty", "give it a value, or remove it")),
            other => Err(rule(
                format!("`{other}` is no text"),
                "write the value in quotes",
            )),
        })
    }

    pub(super) fn boolean(&mut self, key: &'static str, default: bool) -> bool {
        let checked = self.value(key, |value| {
            match value.to_string().to_ascii_lowercase().as_str() {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(rule(
                    format!("`{value}` is no truth value"),
                    "set it to true or false",
                )),
            }
        });
        checked.unwrap_or(default)
    }

    /// A positive whole number.
    pub(super) fn bytes(&mut self, key: &'static str, default: u64) -> u64 {
        let remedy = format!("set it to a whole number of bytes above 0 (default {default})");
        let checked = self.value(key, |value| {
            let number = match value {
                Value::Integer(number) => Some(*number),
                Value::Text(text) => text.parse().ok(),
                _ => None,
            };
            match number.map(u64::try_from) {
                None => Err(rule(format!("`{value}` is no whole number"), remedy)),
                Some(Ok(bytes)) if bytes > 0 => Ok(bytes),
                Some(Err(_)) if number > Some(0) => {
                    Err(rule(format!("`{value}` is too large"), remedy))
                }
                Some(_) => Err(rule(format!("`{value}` is not positive"), remedy)),
            }
        });
        checked.unwrap_or(default)
    }

    /// A positive number of seconds; decimals round up to whole milliseconds (E3).
    pub(super) fn seconds(&mut self, key: &'static str, default: TimeToLive) -> TimeToLive {
        let default_seconds = default.as_duration().as_secs();
        self.optional_seconds(key, default_seconds)
            .unwrap_or(default)
    }

    /// As [`seconds`](Self::seconds), where being absent has a meaning of its own.
    pub(super) fn optional_seconds(
        &mut self,
        key: &'static str,
        default: u64,
    ) -> Option<TimeToLive> {
        let remedy = format!("set it to a number of seconds above 0 (default {default})");
        self.value(key, |value| lifetime(value, 1.0, remedy))
    }

    /// A number of seconds that is not negative.
    pub(super) fn seconds_or_zero(&mut self, key: &'static str, default: Duration) -> Duration {
        let default_seconds = default.as_secs();
        let checked = self.value(key, |value| {
            let remedy =
                format!("set it to 0 or to a number of seconds (default {default_seconds})");
            match number(value) {
                Some(0.0) => Ok(Duration::ZERO),
                Some(negative) if negative < 0.0 => {
                    Err(rule(format!("`{value}` is negative"), remedy))
                }
                _ => lifetime(value, 1.0, remedy).map(TimeToLive::as_duration),
            }
        });
        checked.unwrap_or(default)
    }

    /// A positive number of milliseconds; decimals round up (E3).
    pub(super) fn milliseconds(&mut self, key: &'static str, default: Duration) -> Duration {
        let remedy = format!(
            "set it to a number of milliseconds above 0 (default {})",
            default.as_millis()
        );
        self.value(key, |value| lifetime(value, 1000.0, remedy))
            .map_or(default, TimeToLive::as_duration)
    }

    /// The path of a file; it must be readable if the file `is_needed` by this program.
    pub(super) fn file(&mut self, key: &'static str, is_needed: bool) -> Option<PathBuf> {
        let path = PathBuf::from(self.text(key)?);
        let readable = File::open(&path).and_then(|file| file.metadata());
        let reason = match readable {
            Ok(found) if found.is_file() => return Some(path),
            _ if !is_needed => return Some(path),
            Ok(_) => "it is no file".to_owned(),
            Err(error) => error.to_string(),
        };
        let broken = format!("the file `{}` cannot be read: {reason}", path.display());
        self.note(key, broken, "name a file that this process may read");
        None
    }

    /// A secret or the content of its file, which is read only if it `is_needed`.
    pub(super) fn secret(
        &mut self,
        key: &'static str,
        file_key: &'static str,
        is_needed: bool,
    ) -> Option<Secret> {
        self.known.extend([key, file_key]);
        let read = match self.section.secret_source(key) {
            Ok(Some(SecretSource::File(_))) if !is_needed => Ok(None),
            Ok(_) => self.section.secret(key),
            Err(problem) => Err(problem),
        };
        read.unwrap_or_else(|problem| {
            self.problems.push(problem);
            None
        })
    }

    /// Notes that the value of `key`, set or not, breaks a rule.
    pub(super) fn note(
        &mut self,
        key: &'static str,
        rule: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        match self.section.entry(key) {
            Ok(Some(entry)) => self.problem(key, entry, rule.into(), remedy.into()),
            _ => {
                let name = format!("{} (not set)", self.section.full(key));
                self.problems.push(AssemblyProblem::new(name, rule, remedy));
            }
        }
    }

    /// Notes misspelt neighbours of the section itself, such as `XiHan:Cachng`.
    pub(super) fn check_neighbours(
        &mut self,
        configuration: &Configuration,
        parent: &str,
        name: &str,
    ) {
        if let Some(entry) = configuration.entry(parent) {
            self.problems.push(entry.problem(
                None,
                "is a section and not a value",
                "put its settings below it",
            ));
        }
        let mut seen = String::new();
        for (_, entry) in configuration.below(parent) {
            let Some(written) = entry.key.split(':').nth(1) else {
                continue;
            };
            let is_itself = written.eq_ignore_ascii_case(name);
            let lower = written.to_lowercase();
            let is_like_it = lower.starts_with(&name.to_lowercase())
                || super::suggest::nearest(written, [name]).is_some();
            let is_value = is_itself && entry.key.split(':').count() == 2;
            if is_value {
                self.problems.push(entry.problem(
                    None,
                    "is a section and not a value",
                    "put its settings below it",
                ));
            } else if !is_itself && is_like_it && lower != seen {
                self.problems.push(entry.problem(
                    None,
                    format!("nothing reads the section {parent}:{written}"),
                    format!("did you mean {parent}:{name}"),
                ));
            }
            seen = lower;
        }
    }

    fn problem(&mut self, key: &str, entry: &Entry, rule: String, remedy: String) {
        let name = self.section.full(key);
        self.problems.push(entry.problem(Some(&name), rule, remedy));
    }
}

fn rule(rule: impl Into<String>, remedy: impl Into<String>) -> (String, String) {
    (rule.into(), remedy.into())
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Decimal(number) => Some(*number),
        // Every number of seconds that is in range is exact in an f64.
        Value::Integer(number) => Some(*number as f64),
        Value::Text(text) => text.parse().ok(),
        Value::Boolean(_) | Value::NotUnicode => None,
    }
}

/// `value` in a unit of which `per_second` make a second.
fn lifetime(
    value: &Value,
    per_second: f64,
    remedy: String,
) -> Result<TimeToLive, (String, String)> {
    let Some(number) = number(value) else {
        return Err(rule(format!("`{value}` is no number"), remedy));
    };
    if number.is_nan() || number <= 0.0 {
        return Err(rule(format!("`{value}` is not positive"), remedy));
    }
    TimeToLive::from_secs_f64(number / per_second)
        .map_err(|_| rule(format!("`{value}` is more than 100 years"), remedy))
}
