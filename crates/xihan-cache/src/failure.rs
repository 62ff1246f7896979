//! What can go wrong, with the exit status it gives.

use std::fmt;
use std::io;

use serde_json::{Value, json};
use xihan_caching::{CachingError, ErrorCode};

use crate::status::Status;

/// A command that did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for something that cannot be.
    Usage(String),
    /// The store, or a rule of the workspace, says no.
    Caching(CachingError),
    /// Standard input or output.
    Stream(io::Error),
    /// The operating system refuses what the program needs.
    System(String),
}

impl Failure {
    /// The exit status.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Usage(_) => Status::USAGE,
            Self::Stream(_) => Status::INPUT_OUTPUT,
            Self::System(_) => Status::INTERNAL,
            Self::Caching(error) => match error.code() {
                ErrorCode::LockHeld => Status::HELD,
                ErrorCode::InvalidKey | ErrorCode::InvalidExpiration => Status::USAGE,
                ErrorCode::WrongKind => Status::WRONG_KIND,
                ErrorCode::StoreUnavailable
                | ErrorCode::StoreFull
                | ErrorCode::Unauthenticated
                | ErrorCode::Forbidden => Status::UNAVAILABLE,
                _ => Status::INTERNAL,
            },
        }
    }

    /// Whether the exit status says enough: somebody else holds a lock that was not to be waited
    /// for, or the reader of a pipe went away.
    pub(crate) fn is_expected(&self) -> bool {
        match self {
            Self::Caching(error) => error.message_key() == "caching.lock.held",
            Self::Stream(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Self::Usage(_) | Self::System(_) => false,
        }
    }

    /// The same for programs.
    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({ "message": self.to_string() });
        if let Self::Caching(cause) = self {
            error["code"] = cause.code().as_str().into();
            error["messageKey"] = cause.message_key().into();
            let parameters = cause.parameters();
            error["parameters"] = parameters
                .map(|(name, value)| (name.to_owned(), Value::from(value)))
                .collect();
        }
        json!({ "error": error })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::System(text) => f.write_str(text),
            Self::Caching(error) => fmt::Display::fmt(error, f),
            Self::Stream(error) => write!(f, "standard input or output failed: {error}"),
        }
    }
}

impl From<CachingError> for Failure {
    fn from(error: CachingError) -> Self {
        Self::Caching(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Stream(error)
    }
}
