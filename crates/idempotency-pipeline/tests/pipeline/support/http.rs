//! Calls over HTTP, in process or through a real server.

use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderName, Request, StatusCode};
use bytes::Bytes;
use idempotency_pipeline::Operation;
use idempotency_pipeline::http::{OperationRouter, Problems};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

use super::{Create, Fixture, Order};

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn replayed(&self) -> Option<&str> {
        self.header("idempotency-replayed")
    }

    /// The body as a problem, after checking that it is a whole one (X1).
    pub(crate) fn problem(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        let problem: Value = serde_json::from_slice(&self.body).unwrap();
        let text = |name: &str| {
            problem[name]
                .as_str()
                .unwrap_or_else(|| panic!("{name}: {self:?}"))
        };
        for name in ["type", "title", "detail", "instance", "code", "messageKey"] {
            assert!(!text(name).is_empty(), "{name}: {problem}");
        }
        assert_eq!(problem["status"], self.status.as_u16(), "{problem}");
        assert!(problem["parameters"].is_object(), "{problem}");
        assert_eq!(text("traceId").len(), 32, "{problem}");
        assert!(self.header("content-language").is_some(), "{self:?}");
        problem
    }

    /// The code of the problem.
    pub(crate) fn code(&self) -> String {
        self.problem()["code"].as_str().unwrap().to_owned()
    }

    /// The headers that belong to the answer itself and not to its transfer.
    pub(crate) fn describing(&self) -> Vec<(HeaderName, Bytes)> {
        let own = [
            "content-type",
            "location",
            "content-language",
            "etag",
            "retry-after",
        ];
        let headers = self
            .headers
            .iter()
            .filter(|(name, _)| own.contains(&name.as_str()));
        headers
            .map(|(name, value)| (name.clone(), Bytes::copy_from_slice(value.as_bytes())))
            .collect()
    }
}

impl Fixture {
    /// `operation` at `POST /orders`, and problems for everything else.
    pub(crate) fn app(&self, operation: &Operation<Create, Order>) -> Router {
        OperationRouter::new(&self.pipeline)
            .post("/orders", operation)
            .into_router()
            .fallback(Problems::new(&self.pipeline).not_found())
    }
}

/// Sends `request` through `app`, in process.
pub(crate) async fn send(app: &Router, request: Request<Body>) -> Answer {
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    Answer {
        status: parts.status,
        headers: parts.headers,
        body,
    }
}

pub(crate) const ORDER: &str = r#"{"name":"Keyboard"}"#;

/// `POST /orders` with the key `key` and further headers.
pub(crate) fn post(key: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::post("/orders")
        .header("content-type", "application/json")
        .header("baggage", format!("xihan.idempotency-key={key}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(ORDER)).unwrap()
}

/// `POST /orders` without a key.
pub(crate) fn post_unkeyed(headers: &[(&str, &[u8])]) -> Request<Body> {
    let mut request = Request::post("/orders").header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(ORDER)).unwrap()
}

/// Serves `app` on a loopback port until the runtime ends.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}

/// Sends the same request as [`post`] over a connection of its own and reads nothing.
pub(crate) async fn connect_and_post(address: SocketAddr, key: &str) -> TcpStream {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /orders HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         baggage: xihan.idempotency-key={key}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{ORDER}",
        ORDER.len()
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    connection
}
