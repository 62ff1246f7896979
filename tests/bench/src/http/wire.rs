//! As little HTTP/1.1 as a load generator needs, so that it costs less than any server.

use std::io::{Error, ErrorKind, Result};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Placeholders in a request's headers, and how many digits replace one.
const KEY: &str = "{key}";
const SESSION: &str = "{session}";
const DIGITS: usize = 20;

/// A request whose key and session can be changed in place.
#[derive(Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    keys: Vec<usize>,
    sessions: Vec<usize>,
}

impl Request {
    /// `POST` of a JSON `body` with `headers` (`name: value`), which may hold `{key}` and
    /// `{session}`.
    pub(crate) fn post(path: &str, headers: &[String], body: &str) -> Self {
        let mut text = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n",
            body.len()
        );
        let (mut keys, mut sessions) = (Vec::new(), Vec::new());
        for header in headers {
            let mut rest = header.as_str();
            while let Some(start) = rest.find('{') {
                text += &rest[..start];
                rest = &rest[start..];
                if let Some(after) = rest.strip_prefix(KEY) {
                    keys.push(text.len());
                    rest = after;
                } else if let Some(after) = rest.strip_prefix(SESSION) {
                    sessions.push(text.len());
                    rest = after;
                } else {
                    break;
                }
                text += &"0".repeat(DIGITS);
            }
            text += rest;
            text += "\r\n";
        }
        text += "\r\n";
        text += body;
        Self {
            bytes: text.into_bytes(),
            keys,
            sessions,
        }
    }

    /// Writes `key` and `session` where the placeholders were.
    pub(crate) fn fill(&mut self, key: u64, session: u64) {
        for &start in &self.keys {
            write_digits(&mut self.bytes[start..start + DIGITS], key);
        }
        for &start in &self.sessions {
            write_digits(&mut self.bytes[start..start + DIGITS], session);
        }
    }
}

fn write_digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    pub(crate) head: &'a str,
    pub(crate) body: &'a [u8],
}

impl Response<'_> {
    /// The value of a header, by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// A connection that is kept alive.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(4096),
        })
    }

    /// Sends `request` and waits for the whole response.
    pub(crate) async fn send(&mut self, request: &Request) -> Result<Response<'_>> {
        self.stream.write_all(&request.bytes).await?;
        self.buffer.clear();
        let (head, total) = loop {
            if let Some(lengths) = lengths(&self.buffer)?
                && self.buffer.len() >= lengths.1
            {
                break lengths;
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        };
        parse(&self.buffer, head, total)
    }
}

fn parse(buffer: &[u8], head: usize, total: usize) -> Result<Response<'_>> {
    let text = std::str::from_utf8(&buffer[..head]).map_err(|_| invalid("the head is no text"))?;
    let status = text
        .get(9..12)
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| invalid("there is no status"))?;
    Ok(Response {
        status,
        head: text,
        body: &buffer[head..total],
    })
}

/// How long the head is, and the whole response; none while the head is incomplete.
fn lengths(buffer: &[u8]) -> Result<Option<(usize, usize)>> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(end) = buffer.windows(END.len()).position(|window| window == END) else {
        return Ok(None);
    };
    let body = buffer[..end]
        .split(|byte| *byte == b'\n')
        .find_map(content_length)
        .ok_or_else(|| invalid("there is no content-length"))?;
    Ok(Some((end + END.len(), end + END.len() + body)))
}

fn content_length(line: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let (name, value) = line.split_at_checked(NAME.len())?;
    if !name.eq_ignore_ascii_case(NAME) {
        return None;
    }
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_and_session_are_written_wherever_a_placeholder_was() {
        let headers = ["a: x-{key}".to_owned(), "b: {key}={session}A{z}".to_owned()];
        let mut request = Request::post("/orders", &headers, "{}");
        request.fill(1234, 5);
        let text = String::from_utf8(request.bytes.clone()).unwrap();
        assert!(text.contains("a: x-00000000000000001234\r\n"), "{text}");
        let both = "b: 00000000000000001234=00000000000000000005A{z}\r\n\r\n{}";
        assert!(text.ends_with(both), "{text}");
        request.fill(u64::MAX, 0);
        let text = String::from_utf8(request.bytes.clone()).unwrap();
        assert!(text.contains("a: x-18446744073709551615\r\n"), "{text}");
    }

    #[test]
    fn a_response_is_complete_only_with_its_body() {
        let bytes = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nx-a:  b \r\n\r\n{}";
        let head = bytes.len() - 2;
        for end in 0..head {
            assert_eq!(lengths(&bytes[..end]).unwrap(), None);
        }
        assert_eq!(lengths(bytes).unwrap(), Some((head, head + 2)));
        let response = parse(bytes, head, head + 2).unwrap();
        assert_eq!((response.status, response.body), (201, &b"{}"[..]));
        assert_eq!(response.header("x-a"), Some("b"));
        assert_eq!(response.header("x-b"), None);
    }

    #[test]
    fn a_response_of_unknown_length_is_refused() {
        let bytes = b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n";
        assert!(lengths(bytes).is_err());
    }
}
