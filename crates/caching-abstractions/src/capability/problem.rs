use std::error::Error;
use std::fmt;

/// One thing that is wrong with an assembly, and what to do about it.
///
/// Neither text holds a secret (X3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssemblyProblem {
    subject: String,
    rule: String,
    remedy: String,
}

impl AssemblyProblem {
    /// A problem with `subject` (a configuration key, a provider or a feature): the `rule` it
    /// breaks and its `remedy`. Each is one line without a final stop.
    pub fn new(
        subject: impl Into<String>,
        rule: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            rule: rule.into(),
            remedy: remedy.into(),
        }
    }

    /// The configuration key, provider or feature it is about.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The rule that is broken, with the value where it is no secret.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// What to do about it.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl fmt::Display for AssemblyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.subject, self.rule, self.remedy)
    }
}

impl Error for AssemblyProblem {}

/// Everything that is wrong with an assembly, found before any connection is opened (R2, C1).
#[derive(Clone, PartialEq, Eq)]
pub struct AssemblyError {
    problems: Vec<AssemblyProblem>,
}

impl AssemblyError {
    /// `Ok` if `problems` is empty, else the error that lists them all.
    ///
    /// # Errors
    /// The list itself, if there is anything in it.
    pub fn check(problems: Vec<AssemblyProblem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self { problems })
        }
    }

    /// The problems, in the order they were found; never empty.
    pub fn problems(&self) -> &[AssemblyProblem] {
        &self.problems
    }
}

impl From<AssemblyProblem> for AssemblyError {
    fn from(problem: AssemblyProblem) -> Self {
        Self {
            problems: vec![problem],
        }
    }
}

impl fmt::Display for AssemblyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        write!(f, "the caching assembly has {count} {noun}:")?;
        for problem in &self.problems {
            write!(f, "\n  - {problem}")?;
        }
        Ok(())
    }
}

/// As `Display`: `main` prints a returned error with `Debug`, and people read it there.
impl fmt::Debug for AssemblyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for AssemblyError {}
