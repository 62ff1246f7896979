//! A connection that speaks the wire protocol and nothing else: what another program would send.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// No value.
    Nil,
    /// A status, such as `OK`.
    Status(String),
    /// An error.
    Error(String),
    /// A number.
    Number(i64),
    /// A value.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Reply>),
}

impl Reply {
    /// The answer as text: a status, an error, a number or a value.
    pub fn text(&self) -> String {
        match self {
            Self::Nil => String::new(),
            Self::Status(text) | Self::Error(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::List(list) => list.iter().map(Self::text).collect::<Vec<_>>().join(" "),
        }
    }

    /// The members of a list.
    pub fn list(self) -> Vec<Self> {
        match self {
            Self::List(list) => list,
            other => panic!("no list: {other:?}"),
        }
    }
}

/// A plain blocking connection.
#[derive(Debug)]
pub struct Raw {
    stream: BufReader<TcpStream>,
}

impl Raw {
    /// Connects to a loopback port.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn connect(port: u16) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends one command and reads its answer.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn try_command(&mut self, parts: &[&[u8]]) -> std::io::Result<Reply> {
        let mut request = format!("*{}\r\n", parts.len()).into_bytes();
        for part in parts {
            request.extend(format!("${}\r\n", part.len()).bytes());
            request.extend_from_slice(part);
            request.extend(b"\r\n");
        }
        self.stream.get_mut().write_all(&request)?;
        self.read()
    }

    /// Sends one command of text and reads its answer.
    ///
    /// # Panics
    /// If the connection breaks.
    #[track_caller]
    pub fn command(&mut self, parts: &[&str]) -> Reply {
        let parts: Vec<_> = parts.iter().map(|part| part.as_bytes()).collect();
        self.try_command(&parts).expect("the server answers")
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// Reads the next answer, also one that was not asked for.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn read(&mut self) -> std::io::Result<Reply> {
        let line = self.line()?;
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().expect("a length");
        Ok(match kind {
            "+" => Reply::Status(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Number(number()),
            "$" | "*" if number() < 0 => Reply::Nil,
            "$" => {
                let length = usize::try_from(number()).expect("a length");
                let mut bytes = vec![0; length + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Reply::Bytes(bytes)
            }
            "*" => Reply::List(
                (0..number())
                    .map(|_| self.read())
                    .collect::<std::io::Result<_>>()?,
            ),
            _ => panic!("not the protocol: {line}"),
        })
    }
}
