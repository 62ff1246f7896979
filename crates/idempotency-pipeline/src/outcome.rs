//! How an invocation ends (P2).

use std::any::Any;
use std::error::Error;
use std::fmt;

use bytes::Bytes;
use caching_abstractions::{CachingError, ErrorCategory};

use crate::problem::Failure;
use crate::rendering::Rendering;

/// What every stage returns: an outcome, which is recorded, or an exception, which is not.
pub type Completion = Result<Outcome, Exception>;

/// The end of a call that counts: a success, or a business failure.
#[derive(Clone, Debug)]
pub struct Outcome {
    result: Result<Success, Failure>,
    rendering: Option<Rendering>,
}

impl Outcome {
    /// The success or the business failure.
    pub fn result(&self) -> Result<&Success, &Failure> {
        self.result.as_ref()
    }

    /// The success or the business failure, taken.
    pub fn into_result(self) -> Result<Success, Failure> {
        self.result
    }

    /// Whether a repeat is to get this outcome again (P2, P6).
    ///
    /// A failure that says "not now" (exhausted, unavailable, internal) passes: nobody wants it
    /// replayed for a day, so it is not recorded, and a retry runs.
    pub fn counts(&self) -> bool {
        match &self.result {
            Ok(_) => true,
            Err(failure) => !matches!(
                failure.category(),
                ErrorCategory::Exhausted | ErrorCategory::Unavailable | ErrorCategory::Internal
            ),
        }
    }

    /// The answer as the transport gave it, or gave it first.
    pub fn rendering(&self) -> Option<&Rendering> {
        self.rendering.as_ref()
    }

    #[cfg(feature = "http")]
    pub(crate) fn take_rendering(&mut self) -> Option<Rendering> {
        self.rendering.take()
    }

    pub(crate) fn with_rendering(mut self, rendering: Option<Rendering>) -> Self {
        self.rendering = rendering;
        self
    }
}

impl From<Success> for Outcome {
    fn from(success: Success) -> Self {
        Self {
            result: Ok(success),
            rendering: None,
        }
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self {
            result: Err(failure),
            rendering: None,
        }
    }
}

/// A success: the response in the operation's codec and what describes it on any transport.
///
/// `Debug` shows the length of the response and not what it says (X3).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Success {
    /// The response in the operation's codec; none for a plain call.
    pub response: Option<Bytes>,
    /// Which kind of success it is.
    pub status: SuccessStatus,
    /// Where the created or accepted thing is to be found.
    pub location: Option<String>,
}

impl fmt::Debug for Success {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.response.as_ref().map(Bytes::len);
        f.debug_struct("Success")
            .field("response_bytes", &bytes)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// The kinds of success an operation can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SuccessStatus {
    /// Done (HTTP 200).
    #[default]
    Done,
    /// Something was created (HTTP 201).
    Created,
    /// The work will be done later (HTTP 202).
    Accepted,
}

/// The end of a call that does not count: it is not recorded, and a retry runs again.
#[derive(Clone, Debug)]
pub struct Exception {
    error: CachingError,
}

impl Exception {
    /// The error the caller sees.
    pub fn error(&self) -> &CachingError {
        &self.error
    }

    /// The exception of a handler that panicked: `CACHING_INTERNAL_001`.
    ///
    /// The message goes to the log, not to the caller: it may hold anything.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        tracing::error!(panic = message, "a handler or a stage panicked");
        Self {
            error: CachingError::internal("the handler panicked"),
        }
    }
}

impl From<CachingError> for Exception {
    fn from(error: CachingError) -> Self {
        Self { error }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Exception {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// What a handler returns when it does not succeed; made with `?` from any error.
///
/// - A [`Failure`] is a business failure: recorded, and replayed to a repeat.
/// - A [`CachingError`] about a conflict or a bad input is a business failure as well, also where
///   it is how a call that the handler made was refused.
/// - Every other error is an exception: not recorded, and a retry runs again (P2).
///
/// ```
/// use idempotency_pipeline::{Failure, InvocationError};
///
/// fn number(text: &str) -> Result<u32, InvocationError> {
///     Ok(text.parse::<u32>()?)
/// }
/// assert!(matches!(number("x"), Err(InvocationError::Exception(_))));
///
/// let failure: InvocationError = Failure::new("ORDERS_CONFLICT_001").into();
/// assert!(matches!(failure, InvocationError::Failure(_)));
/// ```
// It is no `std::error::Error` itself: that is what allows `?` from every type that is one.
#[derive(Clone, Debug)]
pub enum InvocationError {
    /// A business failure.
    Failure(Failure),
    /// Anything else.
    Exception(Exception),
}

impl<E> From<E> for InvocationError
where
    E: Error + Send + Sync + 'static,
{
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        let error = match error.downcast::<Failure>() {
            Ok(failure) => return Self::Failure(*failure),
            Err(error) => error,
        };
        let error = match error.downcast::<Exception>() {
            Ok(exception) => return Self::Exception(*exception),
            Err(error) => error,
        };
        match error.downcast::<CachingError>() {
            Ok(error) => Self::from_caching(*error),
            Err(error) => Self::Exception(
                CachingError::internal("the handler failed")
                    .with_source(error)
                    .into(),
            ),
        }
    }
}

impl InvocationError {
    /// What the error is when a handler passes it on: the refusal of a call that the handler made
    /// is an answer the handler's own caller has to deal with (P2).
    pub(crate) fn passed_on(self) -> Self {
        match self {
            Self::Failure(failure) => Self::Failure(failure),
            Self::Exception(exception) => Self::from_caching(exception.error),
        }
    }

    fn from_caching(error: CachingError) -> Self {
        match error.code().category() {
            ErrorCategory::Conflict | ErrorCategory::Validation => Self::Failure(error.into()),
            _ => Self::Exception(error.into()),
        }
    }
}

impl fmt::Display for InvocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(failure) => failure.fmt(f),
            Self::Exception(exception) => exception.fmt(f),
        }
    }
}

impl From<InvocationError> for Completion {
    fn from(error: InvocationError) -> Self {
        match error {
            InvocationError::Failure(failure) => Ok(failure.into()),
            InvocationError::Exception(exception) => Err(exception),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p2_conflicts_and_bad_input_are_business_failures_everything_else_is_not() {
        let is_failure = |error: CachingError| {
            matches!(InvocationError::from(error), InvocationError::Failure(_))
        };
        assert!(is_failure(CachingError::lock_held("a")));
        assert!(is_failure(CachingError::invalid_key("empty")));
        assert!(is_failure(CachingError::invalid_expiration("zero")));
        assert!(!is_failure(CachingError::unavailable("away")));
        assert!(!is_failure(CachingError::store_full("full")));
        assert!(!is_failure(CachingError::internal("panic")));
    }

    #[test]
    fn p2_an_unknown_error_is_an_exception_that_hides_its_text() {
        let error = std::io::Error::other("password=hunter2");
        let InvocationError::Exception(exception) = InvocationError::from(error) else {
            panic!("an io error is an exception");
        };
        assert!(!exception.to_string().contains("hunter2"));
        assert!(exception.source().unwrap().to_string().contains("hunter2"));
    }
}
