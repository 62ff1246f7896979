use caching_abstractions::{CacheKey, ErrorCode, minutes};

use super::*;

fn all() -> Vec<CachingError> {
    let mut all: Vec<CachingError> = ErrorCode::ALL
        .into_iter()
        .map(|code| CachingError::new(code, "it went wrong"))
        .collect();
    all.extend([
        CachingError::invalid_key("character 3 (U+0020) is white space"),
        CachingError::invalid_expiration("it is zero; the least is 1 ms"),
        CachingError::key_reused("orders.create", "-"),
        CachingError::response_unavailable(),
        CachingError::lock_held("report:daily"),
        CachingError::lock_wait_timeout("report:daily", minutes(1)),
        CachingError::wrong_kind("ключ:数", "a list").with_operation("increment"),
        CachingError::unavailable("away").with_retry_after(minutes(2)),
        CachingError::unavailable("away").certainly_not_sent(),
        CachingError::new(ErrorCode::Internal, "three")
            .with_parameter("z", "1")
            .with_parameter("a", "")
            .with_parameter("operation", "2"),
    ]);
    all
}

/// Everything an error says, as text.
fn said(error: &CachingError) -> String {
    let parameters: Vec<_> = error.parameters().collect();
    format!(
        "{error} {} {parameters:?} {:?} {}",
        error.message_key(),
        error.retry_after(),
        error.may_have_been_applied()
    )
}

#[test]
fn x1_every_error_comes_through_a_status_without_loss() {
    for error in all() {
        let status = to_status(&error);
        assert_eq!(status.code() as i32, error.code().grpc_status() as i32);
        assert_eq!(said(&from_status(&status)), said(&error));
    }
}

#[test]
fn x1_every_error_comes_through_a_session_without_loss() {
    for error in all() {
        assert_eq!(said(&from_failure(&to_failure(&error))), said(&error));
    }
}

#[test]
fn x1_error_info_has_the_code_and_the_parameters() {
    use tonic_types::StatusExt;

    let status = to_status(&CachingError::lock_held("report:daily"));
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.reason, "CACHING_CONFLICT_001");
    assert_eq!(info.metadata["resource"], "report:daily");
    assert!(status.get_details_retry_info().is_none());
    let status = to_status(&CachingError::unavailable("away"));
    let retry = status.get_details_retry_info().unwrap();
    assert_eq!(retry.retry_delay, Some(Duration::from_secs(1)));
}

#[test]
fn x1_the_longest_key_fits_into_the_trailers() {
    let key = CacheKey::new("\u{10FFFF}".repeat(512)).unwrap();
    let status = to_status(&CachingError::wrong_kind(&key, "a list"));
    // The message goes percent-encoded, the details as base64; most peers take 16 KiB in all.
    let size = status.message().len() * 3 + status.details().len() * 4 / 3;
    assert!(size < 15 * 1024, "{size} bytes");
}

#[test]
fn s4_a_foreign_status_leaves_open_whether_the_operation_was_applied() {
    for code in [
        Code::Unavailable,
        Code::DeadlineExceeded,
        Code::Cancelled,
        Code::Unknown,
        Code::Internal,
        Code::Aborted,
    ] {
        let error = from_status(&Status::new(code, "stream removed"));
        assert_eq!(error.code(), ErrorCode::StoreUnavailable);
        assert!(error.may_have_been_applied(), "{code:?}");
    }
}

#[test]
fn x1_a_foreign_refusal_stays_a_refusal() {
    let refusals = [
        (Code::Unauthenticated, ErrorCode::Unauthenticated),
        (Code::PermissionDenied, ErrorCode::Forbidden),
        (Code::Unimplemented, ErrorCode::Internal),
    ];
    for (code, expected) in refusals {
        assert_eq!(from_status(&Status::new(code, "")).code(), expected);
    }
}

#[test]
fn x1_garbage_in_the_details_is_a_foreign_status() {
    let garbage = Bytes::from_static(b"\xff\xff\xffgarbage");
    let status = Status::with_details(Code::Aborted, "a", garbage);
    assert_eq!(from_status(&status).code(), ErrorCode::StoreUnavailable);
}
