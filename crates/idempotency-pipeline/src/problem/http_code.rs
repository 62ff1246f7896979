use caching_abstractions::{ErrorCategory, ErrorCode};

/// The stable codes of what goes wrong before an operation is reached.
///
/// As everywhere, the middle word says the status; where no category has it (405, 408, 413, 415)
/// the word is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpCode {
    /// `HTTP_VALIDATION_001`, 400: the request does not decode.
    MalformedRequest,
    /// `HTTP_UNAUTHENTICATED_001`, 401: credentials are missing or wrong.
    Unauthenticated,
    /// `HTTP_FORBIDDEN_001`, 403: the caller may not do this.
    Forbidden,
    /// `HTTP_NOTFOUND_001`, 404: no route has this path.
    RouteNotFound,
    /// `HTTP_METHOD_001`, 405: the route has no such method.
    MethodNotAllowed,
    /// `HTTP_TIMEOUT_001`, 408: the request did not arrive in time.
    RequestTimeout,
    /// `HTTP_TOOLARGE_001`, 413: the request is too large.
    TooLarge,
    /// `HTTP_MEDIATYPE_001`, 415: the request is in a format that is not read here.
    UnsupportedMediaType,
    /// `HTTP_EXHAUSTED_001`, 429: too many calls at once.
    Exhausted,
    /// `HTTP_UNAVAILABLE_001`, 503: not serving at present, such as while shutting down.
    Unavailable,
}

impl HttpCode {
    /// Every code, by status.
    pub const ALL: [Self; 10] = [
        Self::MalformedRequest,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::RouteNotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::Exhausted,
        Self::Unavailable,
    ];

    /// The code as it stands in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MalformedRequest => "HTTP_VALIDATION_001",
            Self::Unauthenticated => "HTTP_UNAUTHENTICATED_001",
            Self::Forbidden => "HTTP_FORBIDDEN_001",
            Self::RouteNotFound => "HTTP_NOTFOUND_001",
            Self::MethodNotAllowed => "HTTP_METHOD_001",
            Self::RequestTimeout => "HTTP_TIMEOUT_001",
            Self::TooLarge => "HTTP_TOOLARGE_001",
            Self::UnsupportedMediaType => "HTTP_MEDIATYPE_001",
            Self::Exhausted => "HTTP_EXHAUSTED_001",
            Self::Unavailable => "HTTP_UNAVAILABLE_001",
        }
    }

    /// The code with this text.
    pub fn parse(text: &str) -> Option<Self> {
        text.strip_prefix("HTTP_")?;
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }

    /// The HTTP status.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            _ => self.category().http_status(),
        }
    }

    /// The category, which is validation for the codes whose status no category has.
    pub const fn category(self) -> ErrorCategory {
        match self {
            Self::MalformedRequest
            | Self::MethodNotAllowed
            | Self::RequestTimeout
            | Self::TooLarge
            | Self::UnsupportedMediaType => ErrorCategory::Validation,
            Self::Unauthenticated => ErrorCategory::Unauthenticated,
            Self::Forbidden => ErrorCategory::Forbidden,
            Self::RouteNotFound => ErrorCategory::NotFound,
            Self::Exhausted => ErrorCategory::Exhausted,
            Self::Unavailable => ErrorCategory::Unavailable,
        }
    }

    /// The key of the translated text.
    pub const fn message_key(self) -> &'static str {
        match self {
            Self::MalformedRequest => "http.request.malformed",
            Self::Unauthenticated => "http.unauthenticated",
            Self::Forbidden => "http.forbidden",
            Self::RouteNotFound => "http.route.not_found",
            Self::MethodNotAllowed => "http.method.not_allowed",
            Self::RequestTimeout => "http.request.timeout",
            Self::TooLarge => "http.request.too_large",
            Self::UnsupportedMediaType => "http.media_type.unsupported",
            Self::Exhausted => "http.exhausted",
            Self::Unavailable => "http.unavailable",
        }
    }
}

/// The category of any code, an application's included; none if `code` is no code.
pub(super) fn category_of(code: &str) -> Option<ErrorCategory> {
    ErrorCategory::of(code).or_else(|| HttpCode::parse(code).map(HttpCode::category))
}

/// The HTTP status of any code; 500 if it is no code.
pub(super) fn http_status_of(code: &str) -> u16 {
    HttpCode::parse(code).map_or_else(
        || {
            category_of(code)
                .unwrap_or(ErrorCategory::Internal)
                .http_status()
        },
        HttpCode::http_status,
    )
}

/// Whether an answer with this code carries a hint when to retry (X1).
pub(super) fn is_worth_a_retry(code: &str) -> bool {
    ErrorCode::parse(code).is_some_and(ErrorCode::is_worth_a_retry)
        || matches!(http_status_of(code), 429 | 503)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_every_code_has_its_own_status_and_parses_back() {
        let mut statuses: Vec<_> = HttpCode::ALL.map(HttpCode::http_status).to_vec();
        assert!(statuses.is_sorted());
        statuses.dedup();
        assert_eq!(statuses.len(), HttpCode::ALL.len());
        for code in HttpCode::ALL {
            assert_eq!(HttpCode::parse(code.as_str()), Some(code));
            assert_eq!(http_status_of(code.as_str()), code.http_status());
            if let Some(category) = ErrorCategory::of(code.as_str()) {
                assert_eq!(category, code.category());
                assert_eq!(category.http_status(), code.http_status());
            }
        }
    }

    #[test]
    fn x1_a_retry_is_hinted_at_for_002_503_and_429_only() {
        for code in ErrorCode::ALL {
            let expected = code == ErrorCode::InProgress || code.http_status() == 503;
            assert_eq!(is_worth_a_retry(code.as_str()), expected, "{code}");
        }
        assert!(is_worth_a_retry("ORDERS_EXHAUSTED_001"));
        assert!(is_worth_a_retry("HTTP_UNAVAILABLE_001"));
        assert!(!is_worth_a_retry("ORDERS_CONFLICT_002"));
        assert!(!is_worth_a_retry("no code"));
    }
}
