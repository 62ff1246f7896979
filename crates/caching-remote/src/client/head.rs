//! The head of every call: path, metadata and deadline.

use std::time::Duration;

use caching_abstractions::{KeyPrefix, Secret};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header};
use tonic::metadata::{BinaryMetadataValue, MetadataMap};

use crate::client::endpoint::Endpoint;
use crate::wire::KEY_PREFIX;

/// What all calls of a store say about themselves.
#[derive(Clone)]
pub(crate) struct Head {
    scheme: Scheme,
    authority: Authority,
    headers: HeaderMap,
}

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// A token that no header can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadToken;

impl Head {
    /// The head of calls to `endpoint`, with the caller's token, within a key prefix.
    pub(crate) fn new(
        endpoint: &Endpoint,
        token: Option<&Secret>,
        prefix: Option<&KeyPrefix>,
    ) -> Result<Self, BadToken> {
        let mut metadata = MetadataMap::new();
        if let Some(prefix) = prefix {
            let value = BinaryMetadataValue::from_bytes(prefix.as_str().as_bytes());
            metadata.insert_bin(KEY_PREFIX, value);
        }
        let mut headers = metadata.into_headers();
        if let Some(token) = token {
            let value = format!("Bearer {}", token.expose());
            let mut value = HeaderValue::from_str(&value).map_err(|_| BadToken)?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let agent = concat!("xihan-caching/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/grpc"),
        );
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        let authority = endpoint.to_string();
        Ok(Self {
            scheme: if endpoint.is_tls {
                Scheme::HTTPS
            } else {
                Scheme::HTTP
            },
            // An endpoint's host has only characters that an authority may have.
            authority: authority
                .parse()
                .unwrap_or_else(|_| Authority::from_static("localhost")),
            headers,
        })
    }

    /// The head of one call.
    pub(crate) fn request(&self, path: &'static str, timeout: Option<Duration>) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(PathAndQuery::from_static(path));
        // It has all three parts.
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        *request.headers_mut() = self.headers.clone();
        if let Some(timeout) = timeout {
            request
                .headers_mut()
                .insert(TIMEOUT, timeout_value(timeout));
        }
        request
    }
}

impl std::fmt::Debug for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Head")
            .field("authority", &self.authority)
            .field(
                "has_token",
                &self.headers.contains_key(header::AUTHORIZATION),
            )
            .finish_non_exhaustive()
    }
}

/// At most eight digits and a unit.
fn timeout_value(timeout: Duration) -> HeaderValue {
    const MOST: u128 = 99_999_999;
    let milliseconds = timeout.as_micros().div_ceil(1000).max(1);
    let text = if milliseconds <= MOST {
        format!("{milliseconds}m")
    } else {
        format!("{}S", milliseconds.div_ceil(1000).min(MOST))
    };
    // Digits and a letter.
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("1S"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(token: &str) -> Result<Head, BadToken> {
        let endpoint = Endpoint::parse("grpcs://[::1]:50051").unwrap();
        let prefix = KeyPrefix::new("läden").unwrap();
        Head::new(&endpoint, Some(&Secret::new(token)), Some(&prefix))
    }

    #[test]
    fn a_call_says_where_it_goes_and_how_long_it_waits() {
        let timeout = Some(Duration::from_micros(1_999_001));
        let request = head("t0ken").unwrap().request("/a.B/C", timeout);
        assert_eq!(request.uri(), "https://[::1]:50051/a.B/C");
        let header = |name: &str| request.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!(header("authorization"), "Bearer t0ken");
        assert_eq!(header("grpc-timeout"), "2000m");
        assert_eq!(header("te"), "trailers");
        let metadata = MetadataMap::from_headers(request.headers().clone());
        let prefix = metadata.get_bin(KEY_PREFIX).unwrap().to_bytes().unwrap();
        assert_eq!(prefix, "läden".as_bytes());
    }

    #[test]
    fn a_timeout_has_eight_digits_at_most() {
        let text = |seconds| timeout_value(Duration::from_secs(seconds));
        assert_eq!(text(0), "1m");
        assert_eq!(text(99_999), "99999000m");
        assert_eq!(text(100_000), "100000S");
        assert_eq!(text(u64::MAX), "99999999S");
    }

    #[test]
    fn x3_a_head_prints_no_token() {
        assert_eq!(head("line\nbreak").unwrap_err(), BadToken);
        let head = head("s3cret").unwrap();
        assert!(!format!("{head:?}").contains("s3cret"));
        let request = head.request("/a.B/C", None);
        assert!(!format!("{request:?}").contains("s3cret"));
    }
}
