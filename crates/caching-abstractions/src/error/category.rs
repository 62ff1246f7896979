use std::fmt;

/// What the middle word of an error code says, and so its HTTP and gRPC status.
///
/// Applications name their own codes the same way: `ORDERS_CONFLICT_001` is a [`Conflict`].
///
/// [`Conflict`]: ErrorCategory::Conflict
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCategory {
    /// The request is wrong; repeating it unchanged cannot help.
    Validation,
    /// Nobody knows who is calling.
    Unauthenticated,
    /// The caller is known and may not do this.
    Forbidden,
    /// What the request names does not exist.
    NotFound,
    /// The request contradicts the present state.
    Conflict,
    /// Too much is asked for at present.
    Exhausted,
    /// Something needed is away at present.
    Unavailable,
    /// A defect, or an error nobody gave a meaning.
    Internal,
}

impl ErrorCategory {
    /// Every category, in the order of the specification's table.
    pub const ALL: [Self; 8] = [
        Self::Validation,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::Conflict,
        Self::Exhausted,
        Self::Unavailable,
        Self::Internal,
    ];

    /// The category in the middle of `code`; none if `code` is not `WORD_CATEGORY_NUMBER`.
    ///
    /// ```
    /// use caching_abstractions::ErrorCategory;
    ///
    /// assert_eq!(ErrorCategory::of("ORDERS_CONFLICT_001"), Some(ErrorCategory::Conflict));
    /// assert_eq!(ErrorCategory::of("out of stock"), None);
    /// ```
    pub fn of(code: &str) -> Option<Self> {
        let (rest, number) = code.rsplit_once('_')?;
        let (name, word) = rest.rsplit_once('_')?;
        let is_name = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        };
        if !is_name(name) || number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Self::ALL
            .into_iter()
            .find(|category| category.word() == word)
    }

    /// The word that stands for the category inside a code, such as `CONFLICT`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Validation => "VALIDATION",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Forbidden => "FORBIDDEN",
            Self::NotFound => "NOTFOUND",
            Self::Conflict => "CONFLICT",
            Self::Exhausted => "EXHAUSTED",
            Self::Unavailable => "UNAVAILABLE",
            Self::Internal => "INTERNAL",
        }
    }

    /// The HTTP status.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::Validation => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Exhausted => 429,
            Self::Unavailable => 503,
            Self::Internal => 500,
        }
    }

    /// The gRPC status.
    pub const fn grpc_status(self) -> GrpcStatus {
        match self {
            Self::Validation => GrpcStatus::InvalidArgument,
            Self::Unauthenticated => GrpcStatus::Unauthenticated,
            Self::Forbidden => GrpcStatus::PermissionDenied,
            Self::NotFound => GrpcStatus::NotFound,
            Self::Conflict => GrpcStatus::Aborted,
            Self::Exhausted => GrpcStatus::ResourceExhausted,
            Self::Unavailable => GrpcStatus::Unavailable,
            Self::Internal => GrpcStatus::Internal,
        }
    }
}

impl fmt::Display for ErrorCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The gRPC statuses that errors of the workspace map to; the number is the one on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum GrpcStatus {
    /// `INVALID_ARGUMENT`
    InvalidArgument = 3,
    /// `NOT_FOUND`
    NotFound = 5,
    /// `ALREADY_EXISTS`
    AlreadyExists = 6,
    /// `PERMISSION_DENIED`
    PermissionDenied = 7,
    /// `RESOURCE_EXHAUSTED`
    ResourceExhausted = 8,
    /// `ABORTED`
    Aborted = 10,
    /// `INTERNAL`
    Internal = 13,
    /// `UNAVAILABLE`
    Unavailable = 14,
    /// `UNAUTHENTICATED`
    Unauthenticated = 16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part6_the_middle_word_decides() {
        for category in ErrorCategory::ALL {
            let code = format!("ORDERS_{}_042", category.word());
            assert_eq!(ErrorCategory::of(&code), Some(category));
        }
        assert_eq!(
            ErrorCategory::of("MY_SHOP_NOTFOUND_1"),
            Some(ErrorCategory::NotFound)
        );
    }

    #[test]
    fn part6_what_is_no_code_has_no_category() {
        for text in [
            "",
            "CONFLICT",
            "CONFLICT_001",
            "_CONFLICT_001",
            "A_CONFLICT_",
            "A_B_001",
        ] {
            assert_eq!(ErrorCategory::of(text), None, "{text}");
        }
    }
}
