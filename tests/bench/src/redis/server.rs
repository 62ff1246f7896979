//! A `redis-server` of a run, on a core of its own choice.

use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::measure::flush;
use crate::Result;
use crate::process::{free_port, pinned};

const START_LIMIT: Duration = Duration::from_secs(10);

/// A running server that keeps nothing; dropping it ends the process.
pub(crate) struct RedisServer {
    child: Child,
    pub(crate) port: u16,
}

impl RedisServer {
    /// Starts it on a free port and waits until it answers.
    pub(crate) fn start(core: &str) -> Result<Self> {
        let port = free_port()?;
        let child = pinned(core, "redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start redis-server: {error}; install it"))?;
        let mut server = Self { child, port };
        let start = Instant::now();
        while let Err(error) = flush(port) {
            if let Some(status) = server.child.try_wait()? {
                return Err(format!("redis-server ended ({status}); is it installed?").into());
            }
            if start.elapsed() > START_LIMIT {
                return Err(format!("redis-server does not answer on port {port}: {error}").into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
