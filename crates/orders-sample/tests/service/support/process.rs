use std::ffi::OsStr;
use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Answer, Connection, Metrics, PATIENCE, Request, eventually};

/// A service that runs; it is killed when this is dropped.
pub(crate) struct Service {
    child: Child,
    address: SocketAddr,
    log: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
    _directory: TempDir,
}

impl Service {
    /// A service with its defaults, on a free port.
    pub(crate) async fn start() -> Self {
        Launch::new().start().await
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(self.address).await
    }

    /// Sends a request on a connection of its own.
    pub(crate) async fn send(&self, request: &Request) -> Answer {
        self.connect().await.send(request).await
    }

    /// The orders that this caller sees.
    pub(crate) async fn orders(&self, key: &str) -> Vec<Value> {
        let answer = self.send(&Request::get("/orders").by(key)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["orders"].as_array().unwrap().clone()
    }

    pub(crate) async fn metrics(&self) -> Metrics {
        let answer = self.send(&Request::get("/metrics")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        Metrics::parse(&answer.text())
    }

    /// Waits until this many calls wrote their markers.
    pub(crate) async fn until_claimed(&self, count: u32) {
        let series = r#"xihan_caching_store_operations_total{provider="inmemory",operation="get_or_add",outcome="ok"}"#;
        eventually("a marker", async || {
            (self.metrics().await.value(series) >= f64::from(count)).then_some(())
        })
        .await;
    }

    /// What the service has said so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().clone()
    }

    pub(crate) async fn until_logged(&self, text: &str) {
        eventually(text, async || self.log().contains(text).then_some(())).await;
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) async fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id().unwrap());
        let status = Command::new("sh")
            .args(["-c", &command])
            .status()
            .await
            .unwrap();
        assert!(status.success(), "{command}: {status}");
    }

    /// Waits for the end, and gives what was said up to there.
    pub(crate) async fn exit(mut self) -> (ExitStatus, String) {
        let status = timeout(PATIENCE, self.child.wait()).await;
        let status = status
            .unwrap_or_else(|_| panic!("still running:\n{}", self.log()))
            .unwrap();
        self.reader.await.unwrap();
        let log = self.log.lock().clone();
        (status, log)
    }

    /// Stops the service the friendly way.
    pub(crate) async fn stop(self) {
        self.signal("TERM").await;
        let (status, log) = self.exit().await;
        assert!(status.success(), "{status}:\n{log}");
    }
}

/// A service that is about to be started: in a directory of its own, on a free port, and with
/// nothing inherited that would configure it.
pub(crate) struct Launch {
    command: Command,
    directory: TempDir,
}

impl Launch {
    pub(crate) fn new() -> Self {
        let mut launch = Self::without_port();
        launch.command.args(["--http-port", "0"]);
        launch
    }

    /// The port is up to the configuration.
    pub(crate) fn without_port() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_orders-sample"));
        command.current_dir(directory.path()).kill_on_drop(true);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        for (name, _) in std::env::vars_os() {
            let upper = name.to_string_lossy().to_uppercase();
            if upper.starts_with("XIHAN") || upper.starts_with("ORDERS_") || upper == "RUST_LOG" {
                command.env_remove(&name);
            }
        }
        Self { command, directory }
    }

    pub(crate) fn arguments<S: AsRef<OsStr>>(
        mut self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn environment(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// A setting of the section `XiHan:Caching:Idempotency`, by the environment.
    pub(crate) fn idempotency(self, key: &str, value: &str) -> Self {
        self.environment(
            &format!("XIHAN__CACHING__IDEMPOTENCY__{}", key.to_uppercase()),
            value,
        )
    }

    /// A file in the directory that the service works in.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.directory.path().join(name), text).unwrap();
        self
    }

    pub(crate) async fn start(mut self) -> Service {
        let mut child = self.command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let address = timeout(PATIENCE, address(&mut lines, &mut said))
            .await
            .unwrap();
        let log = Arc::new(Mutex::new(said));
        let reader = tokio::spawn(follow(lines, Arc::clone(&log)));
        Service {
            child,
            address,
            log,
            reader,
            _directory: self.directory,
        }
    }

    /// Runs a service that is not expected to serve: its exit status and what it said.
    pub(crate) async fn end(mut self) -> (ExitStatus, String) {
        let mut child = self.command.stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let mut said = String::new();
        let read = async {
            stderr.read_to_string(&mut said).await.unwrap();
            stdout.read_to_string(&mut said).await.unwrap();
        };
        if timeout(PATIENCE, read).await.is_err() {
            panic!("it serves:\n{said}");
        }
        (child.wait().await.unwrap(), said)
    }
}

/// The address that the service says it listens on.
async fn address(lines: &mut Lines<BufReader<ChildStderr>>, said: &mut String) -> SocketAddr {
    while let Some(line) = lines.next_line().await.unwrap() {
        said.push_str(&line);
        said.push('\n');
        if let Some((_, rest)) = line.split_once("listening on http://") {
            return rest.split_whitespace().next().unwrap().parse().unwrap();
        }
    }
    panic!("the service does not start:\n{said}");
}

async fn follow(mut lines: Lines<BufReader<ChildStderr>>, log: Arc<Mutex<String>>) {
    while let Ok(Some(line)) = lines.next_line().await {
        let mut log = log.lock();
        log.push_str(&line);
        log.push('\n');
    }
}
