//! What the end of a call says.

use http::{HeaderMap, Response, StatusCode};
use tonic::{Code, Status};

/// The status of a call that ended with the head of its answer; none if more is to come.
pub(crate) fn of_head<B>(response: &Response<B>) -> Option<Status> {
    if let Some(status) = Status::from_header_map(response.headers()) {
        return Some(status);
    }
    let code = match response.status() {
        StatusCode::OK => return not_grpc(response.headers()),
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::Unimplemented,
        _ => Code::Unavailable,
    };
    let text = format!("it answered with the HTTP status {}", response.status());
    Some(Status::new(code, text))
}

fn not_grpc(headers: &HeaderMap) -> Option<Status> {
    let kind = headers.get(http::header::CONTENT_TYPE);
    let is_grpc = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    (!is_grpc).then(|| Status::unavailable("what answers is no gRPC server"))
}

/// The status that the trailers of a call say.
pub(crate) fn of_trailers(trailers: Option<&HeaderMap>) -> Status {
    trailers
        .and_then(Status::from_header_map)
        .unwrap_or_else(|| Status::unknown("the call ended without a status"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(status: u16, headers: &[(&'static str, &str)]) -> Option<Code> {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        of_head(&response.body(()).unwrap()).map(|status| status.code())
    }

    #[test]
    fn a_head_may_say_everything() {
        let grpc = ("content-type", "application/grpc+proto");
        assert_eq!(code(200, &[grpc]), None);
        assert_eq!(
            code(200, &[grpc, ("grpc-status", "16")]),
            Some(Code::Unauthenticated)
        );
        assert_eq!(
            code(200, &[("content-type", "text/html")]),
            Some(Code::Unavailable)
        );
        assert_eq!(code(401, &[]), Some(Code::Unauthenticated));
        assert_eq!(code(403, &[]), Some(Code::PermissionDenied));
        assert_eq!(code(404, &[]), Some(Code::Unimplemented));
        assert_eq!(code(502, &[]), Some(Code::Unavailable));
    }

    #[test]
    fn trailers_without_a_status_are_no_success() {
        assert_eq!(of_trailers(None).code(), Code::Unknown);
        assert_eq!(of_trailers(Some(&HeaderMap::new())).code(), Code::Unknown);
    }
}
