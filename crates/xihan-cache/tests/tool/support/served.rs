use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use redis_support::wait_until;
use tempfile::TempDir;

use super::{Call, Done, Running, read};

/// A server that the tool runs, and a folder for what commands write.
pub(crate) struct Served {
    running: Running,
    /// How the tool reaches it.
    pub(crate) store: String,
    printed: String,
    pub(crate) directory: TempDir,
}

impl Served {
    /// A server of an empty store in its memory, on a free port.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::of(Call::new(&["serve"]).args(options), 0)
    }

    /// The server that this call of `serve` starts, on `port`.
    pub(crate) fn of(call: Call, port: u16) -> Self {
        let listen = format!("127.0.0.1:{port}");
        let mut running = call.args(&["--listen", &listen]).start();
        let mut printed = String::new();
        let mut store = None;
        wait_until("a server that listens", || {
            printed = running.output();
            // A line counts once it is whole.
            let whole = printed.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let listens = |line: &str| line.strip_prefix("listening on ").map(str::to_owned);
            store = whole.lines().find_map(listens);
            store.is_some()
        });
        Self {
            store: store.unwrap(),
            running,
            printed,
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        let (_, port) = self.store.rsplit_once(':').unwrap();
        port.parse().unwrap()
    }

    /// Where it serves metrics, as `HOST:PORT`.
    pub(crate) fn metrics(&self) -> String {
        let line = self.printed.lines().next().unwrap();
        let rest = line.strip_prefix("metrics on http://").unwrap();
        rest.strip_suffix("/metrics").unwrap().to_owned()
    }

    /// A call on the server.
    pub(crate) fn call(&self, arguments: &[&str]) -> Call {
        Call::new(arguments)
            .env("XIHAN_CACHE_STORE", &self.store)
            .in_directory(self.directory.path())
    }

    /// A call of `lock` that runs `script`, in the folder.
    pub(crate) fn lock(&self, options: &[&str], script: &str) -> Call {
        let command = ["--", "sh", "-c", script];
        self.call(&[&["lock", "r"], options, &command].concat())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        read(&self.path(name))
    }

    pub(crate) fn until_written(&self, name: &str, text: &str) {
        wait_until(&format!("`{text}` in {name}"), || {
            self.read(name).contains(text)
        });
    }

    /// The token that stands under the lock `r`; empty if nobody holds it.
    pub(crate) fn token(&self) -> String {
        self.call(&["get", "lock:r"]).run().text().to_owned()
    }

    #[track_caller]
    pub(crate) fn answers(&self) {
        self.call(&["ping"]).run().expect(0);
    }

    pub(crate) fn signal(&self, name: &str) {
        self.running.signal(name);
    }

    #[track_caller]
    pub(crate) fn wait(self) -> Done {
        self.running.wait()
    }
}

/// The status and the body of an answer over HTTP; `address` is `HOST:PORT`.
pub(crate) fn http(address: &str, method: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, body.to_owned())
}
