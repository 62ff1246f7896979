//! What goes wrong between this process and the server, and what callers are told.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use caching_abstractions::{CachingError, ErrorCode};

/// The result of an attempt to have a command executed.
pub(crate) type Attempt<T> = Result<T, Fault>;

/// Why a command has no answer that counts.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It certainly did not reach the server.
    NotSent(Cause),
    /// It may have been executed: the connection broke or the answer did not come in time.
    Unknown(Cause),
    /// The server refused it, and nothing changed.
    Refused(Refusal),
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

impl From<fred::error::Error> for Cause {
    fn from(error: fred::error::Error) -> Self {
        let details = error.details();
        // An error of the operating system comes as the text of its fields.
        let message = details
            .split_once("message: \"")
            .and_then(|(_, rest)| rest.split_once('"'));
        match message {
            Some((message, _)) => Self::new(message.to_lowercase()),
            None => Self::new(without_arguments(details)),
        }
    }
}

impl Fault {
    pub(crate) fn not_answered(limit: Duration) -> Self {
        let text = format!("it did not answer within {} ms", limit.as_millis());
        Self::Unknown(Cause::new(text))
    }

    /// What a failed attempt says where the answer to an earlier one was lost: also a refusal no
    /// longer proves that nothing changed (S4).
    pub(crate) fn after_a_lost_answer(self) -> Self {
        match self {
            Self::NotSent(cause) | Self::Unknown(cause) => Self::Unknown(cause),
            Self::Refused(refusal) => Self::Unknown(Cause::new(format!(
                "an answer was lost, and the next attempt was refused: {refusal}"
            ))),
        }
    }
}

/// The kinds of error answers that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// The key holds another type.
    WrongType,
    /// The value is no number, or the sum is out of range.
    NotANumber,
    /// The server is full.
    Full,
    /// The server does not have the script.
    NoScript,
    /// Another node of the Cluster has the slot.
    Moved,
    /// Another node of the Cluster has this key already.
    Ask,
    /// The keys of a script are on two nodes for a moment.
    TryAgain,
    /// The server is a replica.
    ReadOnly,
    /// User or password are wrong or missing.
    Login,
    /// The server does not work at present, such as while it loads.
    NotReady,
    /// Anything else.
    Other,
}

/// An error answer.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: RefusalKind,
    text: Arc<str>,
}

impl Refusal {
    /// Reads the text of an error answer.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            kind: kind(text),
            text: without_arguments(text).into(),
        }
    }

    /// Whether the server only has to be given the script again.
    pub(crate) fn is_of_a_lost_script(&self) -> bool {
        self.kind == RefusalKind::NoScript
    }

    /// Slot and address of a redirection; the host is empty where it is the answering node's own.
    pub(crate) fn target(&self) -> Option<(&str, u16)> {
        let address = self.text.split_whitespace().nth(2)?;
        let (host, port) = address.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Some((host, port.parse().ok()?))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Refusal {}

const KINDS: &[(&str, RefusalKind)] = &[
    ("WRONGTYPE", RefusalKind::WrongType),
    ("OOM", RefusalKind::Full),
    ("NOSCRIPT", RefusalKind::NoScript),
    ("MOVED", RefusalKind::Moved),
    ("ASK", RefusalKind::Ask),
    ("TRYAGAIN", RefusalKind::TryAgain),
    ("READONLY", RefusalKind::ReadOnly),
    ("NOAUTH", RefusalKind::Login),
    ("WRONGPASS", RefusalKind::Login),
    ("LOADING", RefusalKind::NotReady),
    ("CLUSTERDOWN", RefusalKind::NotReady),
    ("MASTERDOWN", RefusalKind::NotReady),
    ("NOREPLICAS", RefusalKind::NotReady),
    ("MISCONF", RefusalKind::NotReady),
    ("BUSY", RefusalKind::NotReady),
];

fn kind(text: &str) -> RefusalKind {
    let of = |word: &str| {
        KINDS
            .iter()
            .find(|(name, _)| *name == word)
            .map(|known| known.1)
    };
    let first = text.split_whitespace().next().unwrap_or_default();
    if let Some(kind) = of(first) {
        return kind;
    }
    if text.contains("is not an integer") || text.contains("would overflow") {
        return RefusalKind::NotANumber;
    }
    if text.contains("invalid username-password pair") {
        return RefusalKind::Login;
    }
    // Servers below 7.0 wrap what a script's command answered.
    if text.contains("rror running script") {
        let mut words = text.split(|c: char| !c.is_ascii_uppercase());
        return words.find_map(of).unwrap_or(RefusalKind::Other);
    }
    RefusalKind::Other
}

/// The text without what the server repeats of a command, which may be a value or a token (X3).
fn without_arguments(text: &str) -> String {
    let end = ["with args", " script:", "args beginning", "call to f_"]
        .iter()
        .filter_map(|mark| text.find(mark))
        .min()
        .unwrap_or(text.len());
    let line = text[..end].lines().next().unwrap_or_default();
    line.trim_end_matches([',', ' ', '.'])
        .chars()
        .take(200)
        .collect()
}

/// Where a fault happened: the operation, and the key where there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) operation: &'static str,
    pub(crate) key: Option<&'a str>,
}

impl Fault {
    /// The error that callers get.
    pub(crate) fn at(self, place: Place<'_>) -> CachingError {
        let error = match self {
            Self::NotSent(cause) => {
                CachingError::unavailable(format!("the redis store cannot be reached: {cause}"))
                    .certainly_not_sent()
                    .with_source(cause)
            }
            Self::Unknown(cause) => {
                let detail = format!("the redis store did not answer: {cause}");
                CachingError::unavailable(detail).with_source(cause)
            }
            Self::Refused(refusal) => refusal.at(place),
        };
        error.with_operation(place.operation)
    }
}

impl Refusal {
    fn at(self, place: Place<'_>) -> CachingError {
        let key = place.key.unwrap_or_default();
        match self.kind {
            RefusalKind::WrongType => {
                CachingError::wrong_kind(key, "a redis value that is no string").with_source(self)
            }
            RefusalKind::NotANumber => CachingError::wrong_kind(
                key,
                "no decimal number, or one that the sum would make too large",
            ),
            RefusalKind::Full => CachingError::store_full(
                "the redis server is at its maxmemory; give it more or remove entries",
            )
            .with_source(self),
            RefusalKind::Other => CachingError::new(
                ErrorCode::StoreUnavailable,
                format!("the redis server refuses the command: {self}"),
            )
            .certainly_not_sent()
            .with_source(self),
            _ => CachingError::unavailable(format!("the redis server is not ready: {self}"))
                .certainly_not_sent()
                .with_source(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'static> = Place {
        operation: "get",
        key: Some("k"),
    };

    fn code(text: &str) -> &'static str {
        Fault::Refused(Refusal::new(text)).at(PLACE).code().as_str()
    }

    #[test]
    fn each_answer_has_its_code() {
        for (text, expected) in [
            ("WRONGTYPE Operation against a key", "CACHING_CONFLICT_004"),
            (
                "ERR value is not an integer or out of range",
                "CACHING_CONFLICT_004",
            ),
            (
                "ERR increment or decrement would overflow",
                "CACHING_CONFLICT_004",
            ),
            (
                "OOM command not allowed when used memory",
                "CACHING_UNAVAILABLE_002",
            ),
            (
                "ERR Error running script (call to f_12): @user_script:1: -OOM command",
                "CACHING_UNAVAILABLE_002",
            ),
            (
                "READONLY You can't write against a read",
                "CACHING_UNAVAILABLE_001",
            ),
            (
                "LOADING Redis is loading the dataset",
                "CACHING_UNAVAILABLE_001",
            ),
            ("CLUSTERDOWN The cluster is down", "CACHING_UNAVAILABLE_001"),
            ("MOVED 1 127.0.0.1:7000", "CACHING_UNAVAILABLE_001"),
            (
                "NOPERM this user has no permissions",
                "CACHING_UNAVAILABLE_001",
            ),
            ("ERR anything", "CACHING_UNAVAILABLE_001"),
        ] {
            assert_eq!(code(text), expected, "{text}");
        }
    }

    #[test]
    fn s4_a_refused_command_was_certainly_not_applied_and_a_lost_answer_may_have_been() {
        let refused = Fault::Refused(Refusal::new("READONLY no")).at(PLACE);
        assert!(!refused.may_have_been_applied());
        let lost = Fault::not_answered(Duration::from_secs(2)).at(PLACE);
        assert!(lost.may_have_been_applied());
        assert!(lost.to_string().contains("2000 ms"));
        let away = Fault::NotSent(Cause::new("connection refused")).at(PLACE);
        assert!(!away.may_have_been_applied());
    }

    #[test]
    fn s4_after_a_lost_answer_every_fault_is_of_unknown_outcome() {
        for fault in [
            Fault::Refused(Refusal::new("NOREPLICAS Not enough good replicas")),
            Fault::Refused(Refusal::new("MISCONF Errors writing")),
            Fault::Refused(Refusal::new("OOM command not allowed")),
            Fault::NotSent(Cause::new("connection refused")),
            Fault::not_answered(Duration::from_secs(2)),
        ] {
            let detail = match &fault {
                Fault::Refused(refusal) => refusal.to_string(),
                Fault::NotSent(cause) | Fault::Unknown(cause) => cause.to_string(),
            };
            let error = fault.after_a_lost_answer().at(PLACE);
            assert!(error.may_have_been_applied(), "{error}");
            assert!(error.to_string().contains(&detail), "{error}");
        }
    }

    #[test]
    fn x3_what_a_server_repeats_of_a_command_is_not_shown() {
        let text = "ERR unknown command 'SETT', with args beginning with: 'k' 's3cret'";
        let error = Fault::Refused(Refusal::new(text)).at(PLACE);
        assert!(!format!("{error} {error:?}").contains("s3cret"));
    }

    #[test]
    fn a_redirection_names_its_target() {
        let target = |text| Refusal::new(text).target().map(|(h, p)| (h.to_owned(), p));
        assert_eq!(
            target("MOVED 866 10.0.0.1:7001"),
            Some(("10.0.0.1".into(), 7001))
        );
        assert_eq!(target("ASK 866 ::1:7001"), Some(("::1".into(), 7001)));
        assert_eq!(target("MOVED 866 :7001"), Some((String::new(), 7001)));
        assert_eq!(target("MOVED"), None);
    }
}
