//! Servers and the load generator as processes of their own, each on its own core.

use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::load::{Mode, Report};
use super::targets::Target;
use crate::Result;
use crate::process::{CLIENT_CORE, SERVER_CORE, free_port, pinned};
use crate::redis::server::RedisServer;

const START_LIMIT: Duration = Duration::from_secs(10);

/// A running server; dropping it ends the process.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// Ends after the server.
    _redis: Option<RedisServer>,
}

impl Server {
    /// Starts `target` on a free port and waits until it accepts connections.
    pub(crate) fn start(target: &Target) -> Result<Self> {
        let redis = match target.redis_url {
            Some(_) => Some(RedisServer::start(CLIENT_CORE)?),
            None => None,
        };
        let port = free_port()?;
        let mut command = pinned(SERVER_CORE, &target.program);
        command
            .args(&target.arguments)
            .arg(target.port_option)
            .arg(port.to_string())
            .envs(target.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let (Some(variable), Some(redis)) = (target.redis_url, &redis) {
            command.env(variable, redis.url());
        }
        let mut server = Self {
            child: command.spawn()?,
            port,
            _redis: redis,
        };
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = server.child.try_wait()? {
                return Err(format!("{} ended at its start ({status})", target.name).into());
            }
            if start.elapsed() > START_LIMIT {
                return Err(format!("{} does not listen on port {port}", target.name).into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// Runs the load generator against the server.
    pub(crate) fn load(&self, target: &Target, mode: Mode, seconds: f64) -> Result<Report> {
        let mut command = pinned(CLIENT_CORE, &std::env::current_exe()?);
        command.args(["load", "--port", &self.port.to_string()]);
        command.args(["--seconds", &seconds.to_string()]);
        command.args(["--mode", mode.name()]);
        command.args(["--server", &self.child.id().to_string()]);
        for header in &target.headers {
            command.args(["--header", header]);
        }
        for header in &target.keyed_headers {
            command.args(["--keyed-header", header]);
        }
        let output = command.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("the load generator failed on {}", target.name).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// The memory that the server holds, in bytes.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        crate::memory::resident_bytes(&self.child.id().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
