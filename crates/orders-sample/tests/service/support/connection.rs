use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Answer, PATIENCE, Request};

/// A connection that sends what it is told, also what no client library would.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self::try_open(address).await.unwrap()
    }

    pub(crate) async fn try_open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        // Else half a request waits for the acknowledgement of the other half.
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a request and reads its answer; the connection can be used again.
    pub(crate) async fn send(&mut self, request: &Request) -> Answer {
        self.write(&request.to_bytes()).await;
        self.answer_to(&request.method)
            .await
            .unwrap_or_else(|error| panic!("{request:?}: {error}"))
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).await.unwrap();
    }

    pub(crate) async fn try_write(&mut self, bytes: &[u8]) -> Result<()> {
        timeout(PATIENCE, self.0.get_mut().write_all(bytes)).await?
    }

    /// Says that nothing more is sent.
    pub(crate) async fn finish(&mut self) {
        self.0.get_mut().shutdown().await.unwrap();
    }

    /// Reads the next answer.
    pub(crate) async fn answer(&mut self) -> Result<Answer> {
        self.answer_to("GET").await
    }

    /// Reads the next answer, which has no body if it is one to `HEAD`.
    pub(crate) async fn answer_to(&mut self, method: &str) -> Result<Answer> {
        timeout(PATIENCE, self.read(method)).await?
    }

    /// Waits until the service closes the connection, and gives what it still said.
    pub(crate) async fn closed(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A reset is an end too.
        let _ = timeout(PATIENCE, self.0.read_to_end(&mut rest))
            .await
            .expect("it stays open");
        rest
    }

    /// Whether nothing has arrived up to now.
    pub(crate) fn is_silent(&self) -> bool {
        let nothing = self
            .0
            .get_ref()
            .try_read(&mut [0])
            .is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
        self.0.buffer().is_empty() && nothing
    }

    async fn read(&mut self, method: &str) -> Result<Answer> {
        let status_line = self.line().await?;
        let status = status_line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| malformed(&status_line))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").ok_or_else(|| malformed(&line))?;
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut answer = Answer {
            status_line,
            status,
            headers,
            body: Vec::new(),
        };
        if method != "HEAD" && status >= 200 && status != 204 && status != 304 {
            answer.body = self.body(&answer).await?;
        }
        Ok(answer)
    }

    async fn body(&mut self, answer: &Answer) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        if let Some(length) = answer.header("content-length") {
            body.resize(length.parse().map_err(|_| malformed(length))?, 0);
            self.0.read_exact(&mut body).await?;
        } else if answer.header("transfer-encoding").is_some() {
            return Err(malformed("no answer of this service is sent in chunks"));
        } else {
            self.0.read_to_end(&mut body).await?;
        }
        Ok(body)
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        line.strip_suffix("\r\n")
            .map(str::to_owned)
            .ok_or_else(|| malformed(&line))
    }
}

fn malformed(text: &str) -> Error {
    Error::new(ErrorKind::InvalidData, text.to_owned())
}
