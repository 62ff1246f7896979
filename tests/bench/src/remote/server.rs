//! The process with both servers: the in-memory store behind ours, and the echo.

use std::future::pending;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use caching_inmemory::InMemoryStore;
use caching_remote::server::StoreServer;
use clap::Args;

use super::echo;
use crate::Result;
use crate::process::{SERVER_CORE, free_port, pinned};

const START_LIMIT: Duration = Duration::from_secs(10);

/// Where the servers are.
#[derive(Args, Clone, Copy)]
pub(crate) struct Ports {
    #[arg(long)]
    pub(crate) store_port: u16,
    #[arg(long)]
    pub(crate) echo_port: u16,
}

/// Serves until the process is ended.
pub(crate) fn run(ports: Ports) -> Result {
    // As a service has it: on one core, one worker.
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(runtime.spawn(async move {
        let server = StoreServer::builder(Arc::new(InMemoryStore::new())).build()?;
        let store = server.bind((Ipv4Addr::LOCALHOST, ports.store_port)).await?;
        tokio::spawn(store.run_until(pending()));
        echo::serve(ports.echo_port).await
    }))?
}

/// The running process; dropping it ends it.
pub(crate) struct Servers {
    child: Child,
    ports: Ports,
}

impl Servers {
    /// Starts it on free ports and waits until both accept connections.
    pub(crate) fn start() -> Result<Self> {
        let ports = Ports {
            store_port: free_port()?,
            echo_port: free_port()?,
        };
        let mut command = pinned(SERVER_CORE, std::env::current_exe()?);
        command.arg("remote-server").args(arguments(ports));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut servers = Self {
            child: command.spawn()?,
            ports,
        };
        let start = Instant::now();
        for port in [ports.store_port, ports.echo_port] {
            while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
                if let Some(status) = servers.child.try_wait()? {
                    return Err(format!("the servers ended at their start ({status})").into());
                }
                if start.elapsed() > START_LIMIT {
                    return Err(format!("nothing listens on port {port}").into());
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(servers)
    }

    /// What tells the client where they are.
    pub(crate) fn arguments(&self) -> [String; 4] {
        arguments(self.ports)
    }
}

fn arguments(ports: Ports) -> [String; 4] {
    [
        "--store-port".to_owned(),
        ports.store_port.to_string(),
        "--echo-port".to_owned(),
        ports.echo_port.to_string(),
    ]
}

impl Drop for Servers {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
