//! The one error type of the workspace, with a stable code (spec part 6).

mod category;
mod code;

pub use category::{ErrorCategory, GrpcStatus};
pub use code::ErrorCode;

use std::borrow::Cow;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::key::KeyPrefix;

/// What every fallible operation of the workspace returns.
pub type Result<T, E = CachingError> = std::result::Result<T, E>;

/// The hint a caller gets with an error that is worth a retry, when nothing better is known.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// A failure of the workspace itself: stable code, message key, parameters and cause.
///
/// - [`code`](Self::code) decides the HTTP and the gRPC status and never changes its meaning.
/// - [`message_key`](Self::message_key) and [`parameters`](Self::parameters) are what a
///   translated text is made from.
/// - `Display` is one line for people who read logs. It names keys and resources, never a secret,
///   a lock token or a stored value (X3).
///
/// ```
/// use caching_abstractions::{CacheKey, ErrorCode};
///
/// let error = CacheKey::new("two words").unwrap_err();
/// assert_eq!(error.code(), ErrorCode::InvalidKey);
/// assert_eq!(error.code().as_str(), "CACHING_VALIDATION_001");
/// assert_eq!(error.code().http_status(), 400);
/// ```
#[derive(Clone)]
pub struct CachingError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    code: ErrorCode,
    message_key: Cow<'static, str>,
    parameters: Vec<(Cow<'static, str>, String)>,
    detail: Cow<'static, str>,
    operation: Option<Cow<'static, str>>,
    retry_after: Option<Duration>,
    certainly_not_sent: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl CachingError {
    /// An error of `code` with the message key that code has by default, and `detail` as its text.
    ///
    /// `detail` is lower case, without a final stop, and holds no secret.
    pub fn new(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            code,
            message_key: Cow::Borrowed(code.default_message_key()),
            parameters: Vec::new(),
            detail: detail.into(),
            operation: None,
            retry_after: code.is_worth_a_retry().then_some(DEFAULT_RETRY_AFTER),
            certainly_not_sent: false,
            source: None,
        }))
    }

    /// `CACHING_VALIDATION_001`: a key breaks the grammar; `reason` says which rule and where.
    pub fn invalid_key(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::new(
            ErrorCode::InvalidKey,
            format!("the key is invalid: {reason}"),
        )
        .with_parameter("reason", reason)
    }

    /// `CACHING_VALIDATION_001`: the operation requires an idempotency key and the call has none.
    pub fn key_required() -> Self {
        Self::new(
            ErrorCode::InvalidKey,
            "this operation requires an idempotency key",
        )
        .with_message_key("caching.idempotency.key_required")
    }

    /// `CACHING_VALIDATION_002`: an expiration is out of range; `reason` says how.
    pub fn invalid_expiration(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::new(
            ErrorCode::InvalidExpiration,
            format!("the expiration is invalid: {reason}"),
        )
        .with_parameter("reason", reason)
    }

    /// `CACHING_CONFLICT_001`: somebody else holds the lock on `resource`.
    pub fn lock_held(resource: impl Into<String>) -> Self {
        let resource = resource.into();
        Self::new(
            ErrorCode::LockHeld,
            format!("the lock on `{resource}` is held"),
        )
        .with_parameter("resource", resource)
    }

    /// `CACHING_CONFLICT_001`: the lock on `resource` did not become free within `waited`.
    pub fn lock_wait_timeout(resource: impl Into<String>, waited: Duration) -> Self {
        let resource = resource.into();
        let detail = format!(
            "the lock on `{resource}` did not become free within {} ms",
            waited.as_millis()
        );
        Self::new(ErrorCode::LockHeld, detail)
            .with_message_key("caching.lock.wait_timeout")
            .with_parameter("resource", resource)
    }

    /// `CACHING_CONFLICT_002`: a call with this idempotency key is still being processed.
    pub fn in_progress() -> Self {
        Self::new(
            ErrorCode::InProgress,
            "a call with this idempotency key is in progress",
        )
    }

    /// `CACHING_CONFLICT_003`: the idempotency key belongs to a call of another operation.
    pub fn key_reused(operation: impl Into<String>, recorded: impl Into<String>) -> Self {
        let (operation, recorded) = (operation.into(), recorded.into());
        let detail =
            format!("the idempotency key of this call to `{operation}` was used for `{recorded}`");
        Self::new(ErrorCode::NotReplayable, detail)
            .with_parameter("operation", operation)
            .with_parameter("recorded", recorded)
    }

    /// `CACHING_CONFLICT_003`: the first call is done, and its response cannot be given again.
    pub fn response_unavailable() -> Self {
        Self::new(
            ErrorCode::NotReplayable,
            "the call with this idempotency key is done and its response is not available",
        )
        .with_message_key("caching.idempotency.response_unavailable")
    }

    /// `CACHING_CONFLICT_003`: the idempotency key was used with a different request.
    pub fn request_mismatch() -> Self {
        Self::new(
            ErrorCode::NotReplayable,
            "the idempotency key was used with a different request",
        )
        .with_message_key("caching.idempotency.request_mismatch")
    }

    /// `CACHING_CONFLICT_004`: `key` holds a value of another kind than the operation works on.
    pub fn wrong_kind(key: impl fmt::Display, found: impl fmt::Display) -> Self {
        let key = key.to_string();
        Self::new(
            ErrorCode::WrongKind,
            format!("the key `{key}` holds {found}"),
        )
        .with_parameter("key", key)
    }

    /// `CACHING_UNAVAILABLE_001`: the store cannot be reached or did not answer in time.
    pub fn unavailable(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::StoreUnavailable, detail)
    }

    /// `CACHING_UNAVAILABLE_002`: the store has no room for the entry; `detail` says which budget.
    pub fn store_full(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::StoreFull, detail)
    }

    /// `CACHING_INTERNAL_001`: a panic, or an error nobody gave a meaning.
    pub fn internal(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Internal, detail)
    }

    /// The same error with another message key.
    #[must_use]
    pub fn with_message_key(mut self, key: impl Into<Cow<'static, str>>) -> Self {
        self.0.message_key = key.into();
        self
    }

    /// The same error with one more parameter for its translated text.
    #[must_use]
    pub fn with_parameter(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<String>,
    ) -> Self {
        self.0.parameters.push((name.into(), value.into()));
        self
    }

    /// The same error, naming the operation that failed, such as `try_add`.
    #[must_use]
    pub fn with_operation(mut self, operation: impl Into<Cow<'static, str>>) -> Self {
        self.0.operation = Some(operation.into());
        self
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// The same error with another hint of when a retry is worth it.
    #[must_use]
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// The same error, promising that the request never left this process.
    ///
    /// Only a provider can know that. Without this mark an unavailable store counts as "the
    /// operation may have been applied".
    #[must_use]
    pub fn certainly_not_sent(mut self) -> Self {
        self.0.certainly_not_sent = true;
        self
    }

    /// The same error as somebody sees it who does not know of `prefix` (K4): where it names a key,
    /// it names it without.
    pub(crate) fn below(mut self, prefix: &KeyPrefix) -> Self {
        for (name, value) in &mut self.0.parameters {
            let shown = (name == "key")
                .then(|| prefix.strip(value).map(str::to_owned))
                .flatten();
            if let Some(shown) = shown {
                let detail = self.0.detail.replace(value.as_str(), &shown);
                self.0.detail = detail.into();
                *value = shown;
            }
        }
        self
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The key of the translated text, such as `caching.lock.held`.
    pub fn message_key(&self) -> &str {
        &self.0.message_key
    }

    /// The parameters of the translated text, in the order they were given.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0
            .parameters
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_str()))
    }

    /// The value of one parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters()
            .find(|(candidate, _)| *candidate == name)
            .map(|(_, value)| value)
    }

    /// The text of `Display` without code and operation.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The operation that failed, where it is known.
    pub fn operation(&self) -> Option<&str> {
        self.0.operation.as_deref()
    }

    /// When a retry is worth it; none where a retry cannot help.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the failed operation may have been applied all the same (S4, L9, P14).
    ///
    /// True for an unavailable store, unless the provider knows that nothing was sent. Whoever
    /// wrote a token or a marker then removes it by its own value.
    pub fn may_have_been_applied(&self) -> bool {
        self.0.code == ErrorCode::StoreUnavailable && !self.0.certainly_not_sent
    }
}

impl fmt::Display for CachingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.detail)?;
        if let Some(operation) = &self.0.operation {
            write!(f, " ({operation})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for CachingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("CachingError");
        debug
            .field("code", &self.0.code.as_str())
            .field("message_key", &self.0.message_key)
            .field("detail", &self.0.detail);
        if let Some(operation) = &self.0.operation {
            debug.field("operation", operation);
        }
        if let Some(source) = &self.0.source {
            debug.field("source", source);
        }
        debug.finish()
    }
}

impl Error for CachingError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn Error + 'static))
    }
}

impl From<Infallible> for CachingError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part6_display_is_one_line_with_code_and_operation() {
        let error = CachingError::unavailable("the store did not answer within 2000 ms")
            .with_operation("try_add");
        assert_eq!(
            error.to_string(),
            "CACHING_UNAVAILABLE_001: the store did not answer within 2000 ms (try_add)"
        );
    }

    #[test]
    fn part6_retry_hint_only_where_a_retry_helps() {
        assert!(CachingError::in_progress().retry_after().is_some());
        assert!(CachingError::unavailable("away").retry_after().is_some());
        assert!(CachingError::store_full("full").retry_after().is_some());
        assert!(CachingError::response_unavailable().retry_after().is_none());
        assert!(CachingError::lock_held("a").retry_after().is_none());
    }

    #[test]
    fn s4_an_unavailable_store_may_have_applied_unless_the_provider_knows_better() {
        assert!(CachingError::unavailable("away").may_have_been_applied());
        assert!(
            !CachingError::unavailable("away")
                .certainly_not_sent()
                .may_have_been_applied()
        );
        assert!(!CachingError::store_full("full").may_have_been_applied());
    }
}
