use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use caching_abstractions::{CachingError, ErrorCategory, ErrorCode, GrpcStatus};
use serde::{Deserialize, Serialize};

use super::http_code::{self, HttpCode};

/// The hint a caller gets with a failure that is worth a retry, when nothing better is known.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// A business failure: an answer the caller has to deal with, with a stable code.
///
/// - The code is `WORD_CATEGORY_NUMBER`, such as `ORDERS_CONFLICT_001`; its middle word decides
///   the statuses (spec part 6).
/// - The message key is the code unless [`with_message_key`](Self::with_message_key) says
///   otherwise. With the parameters it gives the translated text (X2).
/// - The detail is what the caller reads if no catalogue has the message key.
/// - Parameters and detail are shown to the caller: no secret belongs there (X3).
///
/// ```
/// use idempotency_pipeline::problem::Failure;
///
/// let failure = Failure::new("ORDERS_CONFLICT_001")
///     .with_detail("the product is out of stock")
///     .with_parameter("product", "Unobtainium");
/// assert_eq!(failure.http_status(), 409);
/// assert_eq!(failure.to_string(), "ORDERS_CONFLICT_001: the product is out of stock");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Parts {
    code: Cow<'static, str>,
    message_key: Option<Cow<'static, str>>,
    parameters: Vec<(Cow<'static, str>, String)>,
    detail: Option<Cow<'static, str>>,
    violations: Vec<Violation>,
    retry_after: Option<Duration>,
}

impl Failure {
    /// A failure with this code.
    ///
    /// A text that is no code is a defect of the caller and counts as one: the failure keeps the
    /// text, its category is [`Internal`](ErrorCategory::Internal), and the answer is a 500.
    pub fn new(code: impl Into<Cow<'static, str>>) -> Self {
        let code = code.into();
        Self(Box::new(Parts {
            retry_after: http_code::is_worth_a_retry(&code).then_some(DEFAULT_RETRY_AFTER),
            code,
            message_key: None,
            parameters: Vec::new(),
            detail: None,
            violations: Vec::new(),
        }))
    }

    fn http(code: HttpCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code.as_str())
            .with_message_key(code.message_key())
            .with_detail(detail)
    }

    /// `HTTP_VALIDATION_001`: the request does not decode; `reason` says where and why.
    pub fn malformed_request(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let detail = format!("the request is malformed: {reason}");
        Self::http(HttpCode::MalformedRequest, detail).with_parameter("reason", reason)
    }

    /// `HTTP_UNAUTHENTICATED_001`: credentials are missing or wrong.
    pub fn unauthenticated() -> Self {
        Self::http(
            HttpCode::Unauthenticated,
            "the credentials are missing or wrong",
        )
    }

    /// `HTTP_FORBIDDEN_001`: the caller may not do this.
    pub fn forbidden() -> Self {
        Self::http(HttpCode::Forbidden, "the caller may not do this")
    }

    /// `HTTP_NOTFOUND_001`: no route has this path.
    pub fn route_not_found() -> Self {
        Self::http(HttpCode::RouteNotFound, "nothing is served at this path")
    }

    /// `HTTP_METHOD_001`: the route has no such method.
    pub fn method_not_allowed() -> Self {
        Self::http(
            HttpCode::MethodNotAllowed,
            "this path does not support the request's method",
        )
    }

    /// `HTTP_TIMEOUT_001`: the request did not arrive in time.
    pub fn request_timeout() -> Self {
        Self::http(
            HttpCode::RequestTimeout,
            "the request did not arrive in time",
        )
    }

    /// `HTTP_TOOLARGE_001`: the request has more than `limit` bytes.
    pub fn too_large(limit: u64) -> Self {
        Self::http(
            HttpCode::TooLarge,
            format!("the request has more than {limit} bytes"),
        )
        .with_parameter("limit", limit.to_string())
    }

    /// `HTTP_MEDIATYPE_001`: the request is in another format than `expected`.
    pub fn unsupported_media_type(expected: impl Into<String>) -> Self {
        let expected = expected.into();
        let detail = format!("the content type of the request has to be {expected}");
        Self::http(HttpCode::UnsupportedMediaType, detail).with_parameter("expected", expected)
    }

    /// `HTTP_EXHAUSTED_001`: too many calls at once.
    pub fn exhausted() -> Self {
        Self::http(HttpCode::Exhausted, "too many calls at once")
    }

    /// `HTTP_UNAVAILABLE_001`: not serving at present.
    pub fn unavailable() -> Self {
        Self::http(HttpCode::Unavailable, "not serving at present")
    }

    /// The same failure with another message key.
    #[must_use]
    pub fn with_message_key(mut self, key: impl Into<Cow<'static, str>>) -> Self {
        self.0.message_key = Some(key.into());
        self
    }

    /// The same failure with one more parameter for its translated text.
    ///
    /// Of two parameters with one name the first counts.
    #[must_use]
    pub fn with_parameter(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<String>,
    ) -> Self {
        self.0.parameters.push((name.into(), value.into()));
        self
    }

    /// The same failure with a text in the default language, for when no catalogue has its key.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// The same failure with one more field that is wrong.
    #[must_use]
    pub fn with_violation(mut self, violation: Violation) -> Self {
        self.0.violations.push(violation);
        self
    }

    /// The same failure with another hint of when a retry is worth it.
    #[must_use]
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// The stable code.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// What the middle word of the code says; internal if it says nothing.
    pub fn category(&self) -> ErrorCategory {
        http_code::category_of(&self.0.code).unwrap_or(ErrorCategory::Internal)
    }

    /// The HTTP status.
    pub fn http_status(&self) -> u16 {
        http_code::http_status_of(&self.0.code)
    }

    /// The gRPC status.
    pub fn grpc_status(&self) -> GrpcStatus {
        ErrorCode::parse(&self.0.code)
            .map_or_else(|| self.category().grpc_status(), ErrorCode::grpc_status)
    }

    /// The key of the translated text.
    pub fn message_key(&self) -> &str {
        self.0.message_key.as_ref().unwrap_or(&self.0.code)
    }

    /// The parameters of the translated text, in the order they were given.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        pairs(&self.0.parameters)
    }

    /// The text in the default language, if there is one.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// The fields that are wrong.
    pub fn violations(&self) -> &[Violation] {
        &self.0.violations
    }

    /// When a retry is worth it; none where a retry cannot help.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }
}

/// Keeps code, message key, parameters, text and retry hint, not the cause.
impl From<CachingError> for Failure {
    fn from(error: CachingError) -> Self {
        let mut failure = Self::new(error.code().as_str()).with_detail(error.detail().to_owned());
        failure.0.message_key = Some(error.message_key().to_owned().into());
        failure.0.retry_after = error.retry_after();
        failure.0.parameters = error
            .parameters()
            .map(|(name, value)| (name.to_owned().into(), value.to_owned()))
            .collect();
        failure
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.code)?;
        match &self.0.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl Error for Failure {}

/// One field of a request that is wrong, in a failure that lists them.
///
/// ```
/// use idempotency_pipeline::problem::{Failure, Violation};
///
/// let failure = Failure::new("ORDERS_VALIDATION_001")
///     .with_violation(
///         Violation::new("amount", "has to be 1 to 1000")
///             .with_message_key("orders.amount.range")
///             .with_parameter("max", "1000"),
///     );
/// assert_eq!(failure.violations()[0].field(), "amount");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    field: Cow<'static, str>,
    message_key: Option<Cow<'static, str>>,
    parameters: Vec<(Cow<'static, str>, String)>,
    detail: Cow<'static, str>,
}

impl Violation {
    /// What is wrong with `field`; `detail` is the text if no catalogue has another.
    pub fn new(field: impl Into<Cow<'static, str>>, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field: field.into(),
            message_key: None,
            parameters: Vec::new(),
            detail: detail.into(),
        }
    }

    /// The same violation with the key of its translated text.
    #[must_use]
    pub fn with_message_key(mut self, key: impl Into<Cow<'static, str>>) -> Self {
        self.message_key = Some(key.into());
        self
    }

    /// The same violation with one more parameter for its translated text.
    #[must_use]
    pub fn with_parameter(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<String>,
    ) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// The field, such as `amount` or `lines/0/amount`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The key of the translated text, if it has one.
    pub fn message_key(&self) -> Option<&str> {
        self.message_key.as_deref()
    }

    /// The parameters of the translated text.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        pairs(&self.parameters)
    }

    /// The text in the default language.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

fn pairs<'a>(
    parameters: &'a [(Cow<'static, str>, String)],
) -> impl ExactSizeIterator<Item = (&'a str, &'a str)> {
    parameters
        .iter()
        .map(|(name, value)| (name.as_ref(), value.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part6_the_code_alone_decides_the_statuses() {
        for (code, http, grpc) in [
            ("ORDERS_CONFLICT_001", 409, GrpcStatus::Aborted),
            ("ORDERS_NOTFOUND_001", 404, GrpcStatus::NotFound),
            ("CACHING_CONFLICT_003", 409, GrpcStatus::AlreadyExists),
            ("HTTP_TOOLARGE_001", 413, GrpcStatus::InvalidArgument),
            ("out of stock", 500, GrpcStatus::Internal),
            ("", 500, GrpcStatus::Internal),
        ] {
            let failure = Failure::new(code);
            assert_eq!(
                (failure.http_status(), failure.grpc_status()),
                (http, grpc),
                "{code}"
            );
            assert_eq!(failure.code(), code);
            assert_eq!(failure.message_key(), code);
        }
    }

    #[test]
    fn p2_an_error_passed_on_keeps_what_the_caller_sees() {
        let error = CachingError::key_reused("orders.create", "orders.cancel");
        let failure = Failure::from(error.clone());
        assert_eq!(failure.code(), error.code().as_str());
        assert_eq!(failure.message_key(), error.message_key());
        assert!(failure.parameters().eq(error.parameters()));
        assert_eq!(failure.detail(), Some(error.detail()));
        assert_eq!(failure.retry_after(), None);
        let hint = Failure::from(CachingError::in_progress()).retry_after();
        assert_eq!(hint, CachingError::in_progress().retry_after());
    }
}
