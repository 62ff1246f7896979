use std::fmt;
use std::sync::Arc;

use crate::capability::AssemblyProblem;

/// One configured value with everything an error text says about it.
#[derive(Clone)]
pub(super) struct Entry {
    /// The key as it was written, with `:` between its parts.
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) place: Place,
}

impl Entry {
    /// The entry as the subject of a problem: `name` (or the key as written) and where it stands.
    pub(super) fn subject(&self, name: Option<&str>) -> String {
        // A variable's name has lost the spelling of the key; a file's has not.
        let name = match (&self.place, name) {
            (Place::File { .. }, _) | (_, None) => &self.key,
            (_, Some(name)) => name,
        };
        format!("{name} ({})", self.place)
    }

    /// A problem with this entry.
    pub(super) fn problem(
        &self,
        name: Option<&str>,
        rule: impl Into<String>,
        remedy: impl Into<String>,
    ) -> AssemblyProblem {
        AssemblyProblem::new(self.subject(name), rule, remedy)
    }
}

/// A value as its source gives it; text is read as a number or a truth value where one is needed.
#[derive(Clone)]
pub(super) enum Value {
    Text(String),
    Integer(i128),
    Decimal(f64),
    Boolean(bool),
    /// An environment variable that is no Unicode text.
    NotUnicode,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
            Self::Decimal(number) => number.fmt(f),
            Self::Boolean(truth) => truth.fmt(f),
            Self::NotUnicode => f.write_str("text that is not Unicode"),
        }
    }
}

/// Where a value comes from. The order is the precedence: what comes later wins (C1).
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Place {
    Default,
    File { name: Arc<str>, line: Option<usize> },
    Environment(String),
    Code,
}

impl Place {
    pub(super) fn precedence(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File { .. } => 1,
            Self::Environment(_) => 2,
            Self::Code => 3,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("a default of the program"),
            Self::File { name, line: None } => f.write_str(name),
            Self::File {
                name,
                line: Some(line),
            } => write!(f, "{name}, line {line}"),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Code => f.write_str("set by the program"),
        }
    }
}
