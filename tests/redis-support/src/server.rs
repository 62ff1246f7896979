//! One server process.

use std::process::Child;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::{signal, start};
use crate::{Raw, free_port};

/// A running `redis-server`, ended when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
    arguments: Vec<String>,
    directory: TempDir,
}

impl Server {
    /// A server with nothing configured and nothing kept.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// A server with these settings, each a name and its value.
    ///
    /// # Panics
    /// If it does not answer soon.
    pub fn with(settings: &[(&str, &str)]) -> Self {
        Self::launch(settings, &[])
    }

    /// A server whose port is not open to plain text but to TLS.
    pub(crate) fn launch(settings: &[(&str, &str)], extra: &[String]) -> Self {
        for _ in 0..5 {
            if let Some(server) = Self::attempt(settings, extra) {
                return server;
            }
        }
        panic!("redis-server does not start with {settings:?}");
    }

    /// None where the port was taken meanwhile.
    fn attempt(settings: &[(&str, &str)], extra: &[String]) -> Option<Self> {
        let port = free_port();
        let directory = tempfile::tempdir().expect("a folder of its own");
        let mut arguments: Vec<String> = extra.to_vec();
        let mut set = |name: &str, value: &str| {
            arguments.push(format!("--{name}"));
            arguments.extend(value.split(' ').map(str::to_owned));
        };
        set("port", &port.to_string());
        set("bind", "127.0.0.1");
        set("dir", &directory.path().to_string_lossy());
        set("save", "");
        set("appendonly", "no");
        set("logfile", "server.log");
        for (name, value) in settings {
            set(name, &value.replace("{port}", &port.to_string()));
        }
        let mut server = Self {
            child: start("redis-server", &arguments),
            port,
            arguments,
            directory,
        };
        server.await_answer().then_some(server)
    }

    /// Whether it answers before it ends.
    fn await_answer(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) {
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return false;
            }
            if Raw::connect(self.port).is_ok_and(|mut raw| raw.try_command(&[b"PING"]).is_ok()) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL, without a database.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Where it keeps its files and its log.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// A plain connection to it.
    ///
    /// # Panics
    /// If it does not accept one.
    pub fn raw(&self) -> Raw {
        Raw::connect(self.port).expect("the server accepts")
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again on the same port, empty unless it was told to keep its data.
    ///
    /// # Panics
    /// If it does not answer soon.
    pub fn restart(&mut self) {
        self.kill();
        self.child = start("redis-server", &self.arguments);
        assert!(self.await_answer(), "redis-server does not start again");
    }

    /// Stops it without ending it: connections stay open and nothing is answered.
    pub fn pause(&self) {
        signal(self.child.id(), "STOP");
    }

    /// Ends a [`pause`](Self::pause).
    pub fn resume(&self) {
        signal(self.child.id(), "CONT");
    }

    /// How often each command was called, by its name in lower case.
    pub fn calls(&self, command: &str) -> u64 {
        let statistics = self.raw().command(&["INFO", "commandstats"]).text();
        let begin = format!("cmdstat_{command}:calls=");
        let line = statistics
            .lines()
            .find_map(|line| line.strip_prefix(&begin))
            .unwrap_or("0,");
        let number = line.split(',').next().unwrap_or("0");
        number.parse().expect("a number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
