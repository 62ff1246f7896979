//! Errors as a gRPC status with details, without loss in both directions (X1).

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::{CachingError, ErrorCode};
use prost::Message;
use tonic::{Code, Status};
use tonic_types::pb;

use crate::proto;

/// Who says what the reason of an `ErrorInfo` means.
const DOMAIN: &str = "caching.xihan";

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
const ERROR_DETAIL: &str = "type.googleapis.com/xihan.caching.v1.ErrorDetail";

/// The status that a unary call answers.
pub(crate) fn to_status(error: &CachingError) -> Status {
    let code = Code::from_i32(error.code().grpc_status() as i32);
    Status::with_details(code, error.detail(), details(error, code))
}

/// The failure that a session answers.
pub(crate) fn to_failure(error: &CachingError) -> proto::Failure {
    let code = Code::from_i32(error.code().grpc_status() as i32);
    proto::Failure {
        status: code.into(),
        message: error.detail().to_owned(),
        details: details(error, code),
    }
}

/// The error that a status stands for.
///
/// A status without our details comes from something between client and server, or from another
/// server: unless it clearly refuses, nobody knows what became of the operation.
pub(crate) fn from_status(status: &Status) -> CachingError {
    read(status.code(), status.message(), status.details())
}

/// The error that a failure stands for.
pub(crate) fn from_failure(failure: &proto::Failure) -> CachingError {
    let code = Code::from_i32(failure.status);
    read(code, &failure.message, &failure.details)
}

/// A serialised `google.rpc.Status`.
fn details(error: &CachingError, code: Code) -> Bytes {
    let parameters = || error.parameters();
    let info = pb::ErrorInfo {
        reason: error.code().as_str().to_owned(),
        domain: DOMAIN.to_owned(),
        metadata: parameters()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    };
    let detail = proto::ErrorDetail {
        message_key: error.message_key().to_owned(),
        operation: error.operation().unwrap_or_default().to_owned(),
        parameter_order: parameters().map(|(name, _)| name.to_owned()).collect(),
        certainly_not_applied: is_certainly_not_applied(error),
    };
    let mut all = vec![any(ERROR_INFO, &info), any(ERROR_DETAIL, &detail)];
    if let Some(delay) = error.retry_after() {
        let retry = pb::RetryInfo {
            retry_delay: prost_types::Duration::try_from(delay).ok(),
        };
        all.push(any(RETRY_INFO, &retry));
    }
    let status = pb::Status {
        code: code.into(),
        message: error.detail().to_owned(),
        details: all,
    };
    status.encode_to_vec().into()
}

fn is_certainly_not_applied(error: &CachingError) -> bool {
    error.code() == ErrorCode::StoreUnavailable && !error.may_have_been_applied()
}

fn any(type_url: &str, message: &impl Message) -> prost_types::Any {
    prost_types::Any {
        type_url: type_url.to_owned(),
        value: message.encode_to_vec(),
    }
}

/// What the details of a status say.
#[derive(Default)]
struct Details {
    code: Option<ErrorCode>,
    parameters: HashMap<String, String>,
    detail: proto::ErrorDetail,
    retry_after: Option<Duration>,
}

impl Details {
    fn decode(bytes: &[u8]) -> Self {
        let mut read = Self::default();
        for any in pb::Status::decode(bytes).unwrap_or_default().details {
            match any.type_url.as_str() {
                ERROR_INFO => read.info(pb::ErrorInfo::decode(&*any.value).unwrap_or_default()),
                ERROR_DETAIL => read.detail = Message::decode(&*any.value).unwrap_or_default(),
                RETRY_INFO => read.retry(pb::RetryInfo::decode(&*any.value).unwrap_or_default()),
                _ => {}
            }
        }
        read
    }

    fn info(&mut self, info: pb::ErrorInfo) {
        if info.domain == DOMAIN {
            self.code = ErrorCode::parse(&info.reason);
            self.parameters = info.metadata;
        }
    }

    fn retry(&mut self, retry: pb::RetryInfo) {
        self.retry_after = retry.retry_delay.and_then(|delay| delay.try_into().ok());
    }
}

fn read(code: Code, message: &str, details: &[u8]) -> CachingError {
    let mut details = Details::decode(details);
    let Some(known) = details.code else {
        return foreign(code, message);
    };
    let mut error = CachingError::new(known, message.to_owned());
    let proto::ErrorDetail {
        message_key,
        operation,
        parameter_order,
        certainly_not_applied,
    } = details.detail;
    if !message_key.is_empty() {
        error = error.with_message_key(message_key);
    }
    if !operation.is_empty() {
        error = error.with_operation(operation);
    }
    for name in parameter_order {
        if let Some(value) = details.parameters.remove(&name) {
            error = error.with_parameter(name, value);
        }
    }
    if let Some(delay) = details.retry_after {
        error = error.with_retry_after(delay);
    }
    if certainly_not_applied {
        error = error.certainly_not_sent();
    }
    error
}

/// What a status without our details means.
fn foreign(code: Code, message: &str) -> CachingError {
    let said = if message.is_empty() {
        code.description()
    } else {
        message
    };
    match code {
        Code::Unauthenticated => {
            let detail = format!("the remote store does not know the caller: {said}");
            CachingError::new(ErrorCode::Unauthenticated, detail)
        }
        Code::PermissionDenied => {
            let detail = format!("the remote store does not let the caller in: {said}");
            CachingError::new(ErrorCode::Forbidden, detail)
        }
        Code::Unimplemented => {
            let detail = format!("the remote store does not offer the operation: {said}");
            CachingError::internal(detail)
        }
        Code::InvalidArgument => {
            CachingError::internal(format!("the remote store refuses the request: {said}"))
        }
        code => CachingError::unavailable(format!("the remote store failed with {code:?}: {said}")),
    }
}

#[cfg(test)]
mod tests;
