use std::fmt::Write;

use serde_json::json;

/// Tenant `acme`, principal `alice`.
pub(crate) const ALICE: &str = "dev-alice-key";
/// Tenant `acme`, principal `bob`.
pub(crate) const BOB: &str = "dev-bob-key";
/// Tenant `globex`, principal `alice`.
pub(crate) const CAROL: &str = "dev-carol-key";
/// No tenant, principal `root`.
pub(crate) const ROOT: &str = "dev-root-key";

/// A request, of which nothing has to be right.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    target: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<Vec<u8>>,
}

/// An order of one keyboard by Alice.
pub(crate) fn order() -> Request {
    Request::post("/orders")
        .by(ALICE)
        .json(&json!({"name": "Keyboard", "amount": 1}).to_string())
}

impl Request {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub(crate) fn post(target: &str) -> Self {
        Self::new("POST", target).body("")
    }

    pub(crate) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers
            .push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// The same request without a header.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    /// With the API key of this caller, in place of another's.
    pub(crate) fn by(self, key: &str) -> Self {
        self.without("authorization")
            .header("authorization", format!("ApiKey {key}"))
    }

    /// With this idempotency key, percent-encoded where baggage asks for that.
    pub(crate) fn key(self, key: &str) -> Self {
        let mut member = "xihan.idempotency-key=".to_owned();
        for byte in key.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b':' => {
                    member.push(char::from(byte));
                }
                _ => write!(member, "%{byte:02X}").unwrap(),
            }
        }
        self.header("baggage", member)
    }

    pub(crate) fn json(self, body: &str) -> Self {
        self.without("content-type")
            .header("content-type", "application/json")
            .body(body)
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Some(body.as_ref().to_owned());
        self
    }

    /// The request as it goes over the wire.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.head();
        if let Some(body) = &self.body {
            bytes.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
            bytes.extend(body);
        } else {
            bytes.extend(b"\r\n");
        }
        bytes
    }

    /// The request with its body in chunks of this size.
    pub(crate) fn to_chunks(&self, size: usize) -> Vec<u8> {
        let mut bytes = self.head();
        bytes.extend(b"transfer-encoding: chunked\r\n\r\n");
        for chunk in self.body.as_deref().unwrap_or_default().chunks(size) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    }

    /// Request line and headers, without the empty line behind them.
    pub(crate) fn head(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        if !self
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"))
        {
            bytes.extend(b"host: localhost\r\n");
        }
        for (name, value) in &self.headers {
            bytes.extend(name.bytes());
            bytes.extend(b": ");
            bytes.extend(value);
            bytes.extend(b"\r\n");
        }
        bytes
    }
}
