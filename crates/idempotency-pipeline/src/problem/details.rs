use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use caching_abstractions::{CachingError, ErrorCode, GrpcStatus};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::catalogues::{Catalogues, Wanted};
use super::failure::{Failure, Violation};
use super::http_code;
use crate::language::Language;

/// RFC 9457 Problem Details of one answer (X1), in one language (X2).
///
/// Borrows what it can from the error and the catalogues: a text without placeholders costs no
/// allocation.
///
/// ```
/// use caching_abstractions::CachingError;
/// use idempotency_pipeline::{Catalogues, Language, Problem};
///
/// let catalogues = Catalogues::built_in();
/// let error = CachingError::in_progress();
/// let problem = Problem::of_error(&error, &catalogues, &Language::ENGLISH)
///     .with_instance("/orders")
///     .with_trace_id("4bf92f3577b34da6a3ce929d0e0e4736");
/// assert_eq!(problem.status(), 409);
/// assert_eq!(problem.retry_after_seconds(), Some(1));
/// assert_eq!(
///     String::from_utf8_lossy(&problem.to_json()),
///     concat!(
///         r#"{"type":"urn:xihan:problem:CACHING_CONFLICT_002","title":"Call in progress","#,
///         r#""status":409,"detail":"A call with this idempotency key is still being processed. "#,
///         r#"Repeat the call later.","instance":"/orders","code":"CACHING_CONFLICT_002","#,
///         r#""messageKey":"caching.idempotency.in_progress","parameters":{},"#,
///         r#""traceId":"4bf92f3577b34da6a3ce929d0e0e4736"}"#,
///     ),
/// );
/// ```
#[derive(Clone, Debug)]
pub struct Problem<'a> {
    status: u16,
    grpc_status: GrpcStatus,
    code: &'a str,
    message_key: &'a str,
    title: Cow<'a, str>,
    detail: Cow<'a, str>,
    /// Each name once.
    parameters: Vec<(&'a str, &'a str)>,
    violations: Vec<(&'a Violation, Cow<'a, str>)>,
    instance: Option<Cow<'a, str>>,
    trace_id: Option<Cow<'a, str>>,
    retry_after: Option<Duration>,
    language: Language,
}

impl<'a> Problem<'a> {
    /// The media type of [`to_json`](Self::to_json).
    pub const CONTENT_TYPE: &'static str = "application/problem+json";

    /// The problem that `error` is to its caller.
    ///
    /// The own text of an internal error is never shown: nobody chose it for callers.
    pub fn of_error(
        error: &'a CachingError,
        catalogues: &'a Catalogues,
        language: &Language,
    ) -> Self {
        let code = error.code();
        let own = (code != ErrorCode::Internal).then(|| error.detail());
        let parameters = distinct(error.parameters());
        let wanted = Wanted {
            key: error.message_key(),
            category: code.category(),
            parameters: &parameters,
            language,
        };
        let (detail, shown) = catalogues.detail(&wanted, own);
        Self {
            status: code.http_status(),
            grpc_status: code.grpc_status(),
            code: code.as_str(),
            message_key: error.message_key(),
            title: catalogues.title(&wanted),
            detail,
            parameters,
            violations: Vec::new(),
            instance: None,
            trace_id: None,
            retry_after: error.retry_after(),
            language: shown,
        }
    }

    /// The problem that `failure` is to its caller.
    pub fn of_failure(
        failure: &'a Failure,
        catalogues: &'a Catalogues,
        language: &Language,
    ) -> Self {
        let parameters = distinct(failure.parameters());
        let wanted = Wanted {
            key: failure.message_key(),
            category: failure.category(),
            parameters: &parameters,
            language,
        };
        let (detail, shown) = catalogues.detail(&wanted, failure.detail());
        let violations = failure.violations().iter().map(|violation| {
            let parameters = distinct(violation.parameters());
            let wanted = Wanted {
                key: violation.message_key().unwrap_or_default(),
                parameters: &parameters,
                ..wanted
            };
            let (text, _) = catalogues.detail(&wanted, Some(violation.detail()));
            (violation, text)
        });
        Self {
            status: failure.http_status(),
            grpc_status: failure.grpc_status(),
            code: failure.code(),
            message_key: failure.message_key(),
            title: catalogues.title(&wanted),
            detail,
            violations: violations.collect(),
            parameters,
            instance: None,
            trace_id: None,
            retry_after: failure.retry_after(),
            language: shown,
        }
    }

    /// The same problem, saying which call it happened to: on HTTP the path. Empty says nothing.
    #[must_use]
    pub fn with_instance(mut self, instance: impl Into<Cow<'a, str>>) -> Self {
        self.instance = Some(instance.into()).filter(|instance| !instance.is_empty());
        self
    }

    /// The same problem with the trace of the call. Empty says nothing.
    #[must_use]
    pub fn with_trace_id(mut self, trace_id: impl Into<Cow<'a, str>>) -> Self {
        self.trace_id = Some(trace_id.into()).filter(|trace_id| !trace_id.is_empty());
        self
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The gRPC status.
    pub fn grpc_status(&self) -> GrpcStatus {
        self.grpc_status
    }

    /// The stable code.
    pub fn code(&self) -> &str {
        self.code
    }

    /// The key of the text.
    pub fn message_key(&self) -> &str {
        self.message_key
    }

    /// What kind of problem it is, in [`language`](Self::language).
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What happened, in [`language`](Self::language).
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The parameters of the text, each name once.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.parameters.iter().copied()
    }

    /// The language of the detail, for `Content-Language`.
    pub fn language(&self) -> &Language {
        &self.language
    }

    /// `Retry-After` in whole seconds, rounded up and at least 1 (X1); none where a retry of the
    /// same call cannot help, such as for `CACHING_CONFLICT_003`.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        if self.code == ErrorCode::NotReplayable.as_str() {
            return None;
        }
        let delay = self
            .retry_after
            .or_else(|| http_code::is_worth_a_retry(self.code).then_some(Duration::from_secs(1)))?;
        let started = u64::from(delay.subsec_nanos() > 0);
        Some(delay.as_secs().saturating_add(started).max(1))
    }

    /// The problem as JSON, its members always in the same order.
    #[expect(
        clippy::expect_used,
        reason = "the keys of every map are strings and writing to a vector cannot fail"
    )]
    pub fn to_json(&self) -> Vec<u8> {
        let texts = 2 * self.code.len() + self.message_key.len() + self.title.len();
        let mut json = Vec::with_capacity(256 + texts + self.detail.len());
        serde_json::to_writer(&mut json, self).expect("a problem is JSON");
        json
    }
}

/// The first of each name, as `CachingError::parameter` finds it: JSON has a name once.
fn distinct<'a>(
    parameters: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
) -> Vec<(&'a str, &'a str)> {
    let mut distinct: Vec<(&str, &str)> = Vec::with_capacity(parameters.len());
    for (name, value) in parameters {
        if distinct.iter().all(|(known, _)| *known != name) {
            distinct.push((name, value));
        }
    }
    distinct
}

impl Serialize for Problem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &TypeUri(self.code))?;
        map.serialize_entry("title", &self.title)?;
        map.serialize_entry("status", &self.status)?;
        map.serialize_entry("detail", &self.detail)?;
        if let Some(instance) = &self.instance {
            map.serialize_entry("instance", instance)?;
        }
        map.serialize_entry("code", self.code)?;
        map.serialize_entry("messageKey", self.message_key)?;
        map.serialize_entry("parameters", &Parameters(&self.parameters))?;
        if let Some(trace_id) = &self.trace_id {
            map.serialize_entry("traceId", trace_id)?;
        }
        if !self.violations.is_empty() {
            map.serialize_entry("violations", &Violations(&self.violations))?;
        }
        map.end()
    }
}

/// `urn:xihan:problem:<code>`, the same for ever; `about:blank` for what is no code.
struct TypeUri<'a>(&'a str);

impl fmt::Display for TypeUri<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match http_code::category_of(self.0) {
            Some(_) => write!(f, "urn:xihan:problem:{}", self.0),
            None => f.write_str("about:blank"),
        }
    }
}

impl Serialize for TypeUri<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

struct Parameters<'a>(&'a [(&'a str, &'a str)]);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

struct Violations<'a>(&'a [(&'a Violation, Cow<'a, str>)]);

impl Serialize for Violations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for (violation, detail) in self.0 {
            list.serialize_element(&RenderedViolation { violation, detail })?;
        }
        list.end()
    }
}

struct RenderedViolation<'a> {
    violation: &'a Violation,
    detail: &'a str,
}

impl Serialize for RenderedViolation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("field", self.violation.field())?;
        map.serialize_entry("detail", self.detail)?;
        if let Some(key) = self.violation.message_key() {
            map.serialize_entry("messageKey", key)?;
            let parameters = distinct(self.violation.parameters());
            map.serialize_entry("parameters", &Parameters(&parameters))?;
        }
        map.end()
    }
}
