use std::fmt;

use super::{ErrorCategory, GrpcStatus};

/// The stable codes of the workspace's own errors (spec part 6).
///
/// A code never changes its text, its statuses or its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// `CACHING_CONFLICT_001`: the lock is held.
    LockHeld,
    /// `CACHING_CONFLICT_002`: a call with this idempotency key is still being processed.
    InProgress,
    /// `CACHING_CONFLICT_003`: the record cannot be replayed for this call.
    NotReplayable,
    /// `CACHING_CONFLICT_004`: the key holds another kind of value.
    WrongKind,
    /// `CACHING_VALIDATION_001`: a key breaks the grammar, or a required one is missing.
    InvalidKey,
    /// `CACHING_VALIDATION_002`: an expiration is out of range.
    InvalidExpiration,
    /// `CACHING_UNAVAILABLE_001`: the store cannot be reached or did not answer in time.
    StoreUnavailable,
    /// `CACHING_UNAVAILABLE_002`: the store is full.
    StoreFull,
    /// `CACHING_UNAUTHENTICATED_001`: a remote store's token is missing or wrong.
    Unauthenticated,
    /// `CACHING_FORBIDDEN_001`: a remote store's token may not touch this prefix.
    Forbidden,
    /// `CACHING_INTERNAL_001`: a panic, or an unknown error of a handler.
    Internal,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 11] = [
        Self::LockHeld,
        Self::InProgress,
        Self::NotReplayable,
        Self::WrongKind,
        Self::InvalidKey,
        Self::InvalidExpiration,
        Self::StoreUnavailable,
        Self::StoreFull,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::Internal,
    ];

    /// The code as it stands in answers and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LockHeld => "CACHING_CONFLICT_001",
            Self::InProgress => "CACHING_CONFLICT_002",
            Self::NotReplayable => "CACHING_CONFLICT_003",
            Self::WrongKind => "CACHING_CONFLICT_004",
            Self::InvalidKey => "CACHING_VALIDATION_001",
            Self::InvalidExpiration => "CACHING_VALIDATION_002",
            Self::StoreUnavailable => "CACHING_UNAVAILABLE_001",
            Self::StoreFull => "CACHING_UNAVAILABLE_002",
            Self::Unauthenticated => "CACHING_UNAUTHENTICATED_001",
            Self::Forbidden => "CACHING_FORBIDDEN_001",
            Self::Internal => "CACHING_INTERNAL_001",
        }
    }

    /// The code with this text, as it comes back over a wire.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }

    /// The category that the middle word names.
    pub const fn category(self) -> ErrorCategory {
        match self {
            Self::LockHeld | Self::InProgress | Self::NotReplayable | Self::WrongKind => {
                ErrorCategory::Conflict
            }
            Self::InvalidKey | Self::InvalidExpiration => ErrorCategory::Validation,
            Self::StoreUnavailable | Self::StoreFull => ErrorCategory::Unavailable,
            Self::Unauthenticated => ErrorCategory::Unauthenticated,
            Self::Forbidden => ErrorCategory::Forbidden,
            Self::Internal => ErrorCategory::Internal,
        }
    }

    /// The HTTP status.
    pub const fn http_status(self) -> u16 {
        self.category().http_status()
    }

    /// The gRPC status: the category's, but for two codes that generic retry policies would
    /// otherwise misread.
    pub const fn grpc_status(self) -> GrpcStatus {
        match self {
            Self::NotReplayable => GrpcStatus::AlreadyExists,
            Self::StoreFull => GrpcStatus::ResourceExhausted,
            _ => self.category().grpc_status(),
        }
    }

    /// The message key an error of this code has unless it says otherwise.
    pub const fn default_message_key(self) -> &'static str {
        match self {
            Self::LockHeld => "caching.lock.held",
            Self::InProgress => "caching.idempotency.in_progress",
            Self::NotReplayable => "caching.idempotency.key_reused",
            Self::WrongKind => "caching.store.wrong_kind",
            Self::InvalidKey => "caching.key.invalid",
            Self::InvalidExpiration => "caching.expiration.invalid",
            Self::StoreUnavailable => "caching.store.unavailable",
            Self::StoreFull => "caching.store.full",
            Self::Unauthenticated => "caching.store.unauthenticated",
            Self::Forbidden => "caching.store.forbidden",
            Self::Internal => "caching.internal",
        }
    }

    /// Whether the same call may succeed a little later (X1).
    pub const fn is_worth_a_retry(self) -> bool {
        matches!(
            self,
            Self::InProgress | Self::StoreUnavailable | Self::StoreFull
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part6_every_code_says_its_category_and_parses_back() {
        for code in ErrorCode::ALL {
            assert_eq!(
                ErrorCategory::of(code.as_str()),
                Some(code.category()),
                "{code}"
            );
            assert_eq!(ErrorCode::parse(code.as_str()), Some(code));
        }
    }

    #[test]
    fn part6_the_two_grpc_exceptions() {
        assert_eq!(
            ErrorCode::NotReplayable.grpc_status(),
            GrpcStatus::AlreadyExists
        );
        assert_eq!(
            ErrorCode::StoreFull.grpc_status(),
            GrpcStatus::ResourceExhausted
        );
        assert_eq!(ErrorCode::LockHeld.grpc_status(), GrpcStatus::Aborted);
    }
}
