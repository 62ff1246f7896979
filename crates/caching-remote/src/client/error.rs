//! What goes wrong between this process and the server, and what callers are told.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use caching_abstractions::{CachingError, ErrorCode};
use h2::Reason;
use tonic::{Code, Status};

use crate::wire;

/// The result of an attempt to have an operation executed.
pub(crate) type Attempt<T> = Result<T, Fault>;

/// Why an operation has no answer that counts.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It certainly was not executed: it did not leave this process, or the server says that it
    /// did not look at it.
    NotSent(Cause),
    /// It may have been executed: the connection broke or the answer did not come in time.
    Unknown(Cause),
    /// The server answered with an error.
    Refused(CachingError),
}

/// What happened, in words for a log. Holds no secret.
#[derive(Clone, Debug)]
pub(crate) struct Cause(Arc<str>);

impl Cause {
    pub(crate) fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Cause {}

impl From<&io::Error> for Cause {
    fn from(error: &io::Error) -> Self {
        Self::new(error.to_string().to_lowercase())
    }
}

impl From<&h2::Error> for Cause {
    fn from(error: &h2::Error) -> Self {
        match (error.get_io(), error.reason()) {
            (Some(error), _) => error.into(),
            (None, Some(Reason::NO_ERROR)) if error.is_go_away() => {
                Self::new("the server is shutting down")
            }
            (None, _) => Self::new(error.to_string()),
        }
    }
}

impl Fault {
    pub(crate) fn not_answered(limit: Duration) -> Self {
        let text = format!("it did not answer within {} ms", limit.as_millis());
        Self::Unknown(Cause::new(text))
    }

    /// What happened to a request that was on its way.
    ///
    /// A stream that the server refuses, or that is newer than the last one it says it looked at,
    /// was not processed.
    pub(crate) fn of_stream(error: &h2::Error) -> Self {
        let is_unprocessed = error.is_remote()
            && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM));
        if is_unprocessed {
            Self::NotSent(error.into())
        } else {
            Self::Unknown(error.into())
        }
    }

    /// What the status of a failed call says.
    pub(crate) fn of_status(status: &Status) -> Self {
        match status.code() {
            // Something between here and the server's code ended the call.
            Code::Cancelled | Code::DeadlineExceeded if status.details().is_empty() => {
                let text = format!("the call ended with {:?}", status.code());
                Self::Unknown(Cause::new(text))
            }
            _ => Self::Refused(wire::error::from_status(status)),
        }
    }

    /// What a failed attempt says where the answer to an earlier one was lost: also a refusal no
    /// longer proves that nothing changed (S4).
    pub(crate) fn after_a_lost_answer(self) -> Self {
        match self {
            Self::NotSent(cause) | Self::Unknown(cause) => Self::Unknown(cause),
            Self::Refused(error) => Self::Unknown(Cause::new(format!(
                "an answer was lost, and the next attempt was refused: {error}"
            ))),
        }
    }

    /// What a failed part of a batch says where other parts were executed before it: that this one
    /// certainly was not does not hold for the batch (S4).
    pub(crate) fn after_other_parts(self) -> Self {
        match self {
            Self::NotSent(cause) | Self::Unknown(cause) => Self::Unknown(cause),
            Self::Refused(error) if error.code() == ErrorCode::StoreUnavailable => {
                Self::Unknown(Cause::new(error.to_string()))
            }
            refused @ Self::Refused(_) => refused,
        }
    }

    /// The error that callers get.
    pub(crate) fn at(self, operation: &'static str) -> CachingError {
        let error = match self {
            Self::NotSent(cause) => {
                CachingError::unavailable(format!("the remote store cannot be reached: {cause}"))
                    .certainly_not_sent()
                    .with_source(cause)
            }
            Self::Unknown(cause) => {
                let detail = format!("the remote store did not answer: {cause}");
                CachingError::unavailable(detail).with_source(cause)
            }
            Self::Refused(error) => error,
        };
        error.with_operation(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_what_was_not_sent_was_certainly_not_applied_and_a_lost_answer_may_have_been() {
        let away = Fault::NotSent(Cause::new("connection refused")).at("set");
        assert_eq!(away.code(), ErrorCode::StoreUnavailable);
        assert!(!away.may_have_been_applied());
        let lost = Fault::not_answered(Duration::from_secs(2)).at("set");
        assert!(lost.may_have_been_applied());
        assert!(lost.to_string().contains("2000 ms"));
    }

    #[test]
    fn s4_a_call_that_was_cut_short_may_have_been_applied() {
        for status in [
            Status::cancelled("timeout expired"),
            Status::deadline_exceeded("late"),
        ] {
            let error = Fault::of_status(&status).at("set");
            assert_eq!(error.code(), ErrorCode::StoreUnavailable);
            assert!(error.may_have_been_applied(), "{error}");
        }
    }

    #[test]
    fn s4_after_a_lost_answer_every_fault_is_of_unknown_outcome() {
        for fault in [
            Fault::Refused(CachingError::store_full("full")),
            Fault::NotSent(Cause::new("connection refused")),
            Fault::not_answered(Duration::from_secs(2)),
        ] {
            let error = fault.after_a_lost_answer().at("try_lease");
            assert!(error.may_have_been_applied(), "{error}");
        }
    }

    #[test]
    fn s4_after_other_parts_of_a_batch_no_outage_says_that_nothing_changed() {
        for fault in [
            Fault::NotSent(Cause::new("connection refused")),
            Fault::Refused(CachingError::unavailable("away").certainly_not_sent()),
            Fault::not_answered(Duration::from_secs(2)),
        ] {
            let error = fault.after_other_parts().at("set_many");
            assert!(error.may_have_been_applied(), "{error}");
        }
        let full = Fault::Refused(CachingError::store_full("full"));
        let error = full.after_other_parts().at("set_many");
        assert_eq!(error.code(), ErrorCode::StoreFull);
    }

    #[test]
    fn x1_an_error_of_the_server_keeps_its_code_and_names_the_operation() {
        let sent = wire::error::to_status(&CachingError::wrong_kind("k", "a list"));
        let error = Fault::of_status(&sent).at("increment");
        assert_eq!(error.code(), ErrorCode::WrongKind);
        assert_eq!(error.parameter("key"), Some("k"));
        assert_eq!(error.operation(), Some("increment"));
    }
}
