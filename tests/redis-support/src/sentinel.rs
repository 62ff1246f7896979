//! A primary, its replicas, and the sentinels that watch them.

use std::process::Child;

use tempfile::TempDir;

use crate::process::start;
use crate::{Fault, Proxy, Raw, Server, free_port, wait_until};

/// One primary, two replicas and three sentinels.
#[derive(Debug)]
pub struct SentinelGroup {
    servers: Vec<Server>,
    sentinels: Vec<Sentinel>,
    proxy: Proxy,
}

/// One sentinel process.
#[derive(Debug)]
pub(crate) struct Sentinel {
    child: Child,
    port: u16,
    _directory: TempDir,
}

impl SentinelGroup {
    /// The name the sentinels know the primary by.
    pub const SERVICE: &'static str = "shared-store";

    /// Starts the group and waits until the sentinels know each other and both replicas. They take
    /// a primary for lost that does not answer them for so many milliseconds.
    ///
    /// The sentinels and the clients see the first primary through a proxy.
    ///
    /// # Panics
    /// If that does not come about soon.
    pub fn start(lost_after: u32) -> Self {
        let common = [("repl-diskless-sync-delay", "0"), ("databases", "256")];
        let primary = Server::with(&common);
        let proxy = Proxy::start(primary.port());
        let of = format!("127.0.0.1 {}", primary.port());
        let settings = [("replicaof", of.as_str()), common[0], common[1]];
        let replicas = [Server::with(&settings), Server::with(&settings)];
        for replica in &replicas {
            wait_until("a replica is in step", || {
                let info = replica.raw().command(&["INFO", "replication"]).text();
                info.contains("master_link_status:up")
            });
        }
        let watch = |_| Sentinel::start(proxy.port(), lost_after);
        let sentinels: Vec<_> = (0..3).map(watch).collect();
        let [first, second] = replicas;
        let group = Self {
            servers: vec![primary, first, second],
            sentinels,
            proxy,
        };
        for sentinel in &group.sentinels {
            wait_until("the sentinels know each other", || sentinel.knows_all());
        }
        group
    }

    /// The URL of the primary in the database `database`.
    pub fn url(&self, database: u8) -> String {
        self.url_of(Self::SERVICE, database)
    }

    /// The URL of the primary that the sentinels watch by the name `service`.
    pub fn url_of(&self, service: &str, database: u8) -> String {
        let [a, b, c] = [0, 1, 2].map(|index| self.sentinels[index].port);
        format!(
            "redis-sentinel://127.0.0.1:{a}/{database}?node=127.0.0.1:{b}&node=127.0.0.1:{c}\
             &sentinelServiceName={service}"
        )
    }

    /// Lets the sentinels watch another server on the loopback `port`, by the name `service`.
    ///
    /// # Panics
    /// If a sentinel refuses.
    pub fn watch(&self, service: &str, port: u16) {
        for sentinel in &self.sentinels {
            let mut raw = Raw::connect(sentinel.port).expect("a sentinel accepts");
            let port = port.to_string();
            let answer = raw.command(&["SENTINEL", "MONITOR", service, "127.0.0.1", &port, "2"]);
            assert_eq!(answer.text(), "OK");
        }
    }

    /// Makes a fault before the first primary.
    pub fn set(&self, fault: Fault) {
        self.proxy.set(fault);
    }

    /// The index of the server that the sentinels call the primary.
    ///
    /// # Panics
    /// If a sentinel does not answer.
    pub fn primary(&self) -> usize {
        let mut raw = Raw::connect(self.sentinels[2].port).expect("a sentinel accepts");
        let command = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Self::SERVICE];
        let port = raw.command(&command).list()[1].text();
        if port == self.proxy.port().to_string() {
            return 0;
        }
        let at = |server: &Server| server.port().to_string() == port;
        self.servers.iter().position(at).expect("one of ours")
    }

    /// The servers: at the start the first is the primary.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The servers, to be killed or restarted.
    pub fn servers_mut(&mut self) -> &mut [Server] {
        &mut self.servers
    }

    /// Ends the first sentinel of the URL.
    pub fn kill_first_sentinel(&mut self) {
        let _ = self.sentinels[0].child.kill();
        let _ = self.sentinels[0].child.wait();
    }
}

impl Sentinel {
    fn start(primary: u16, lost_after: u32) -> Self {
        Self::with(primary, lost_after, 2, "")
    }

    /// One that needs so many sentinels to agree, with more lines in its configuration.
    pub(crate) fn with(primary: u16, lost_after: u32, quorum: u32, more: &str) -> Self {
        let port = free_port();
        let directory = tempfile::tempdir().expect("a folder of its own");
        let name = SentinelGroup::SERVICE;
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nlogfile sentinel.log\n{more}\
             sentinel monitor {name} 127.0.0.1 {primary} {quorum}\n\
             sentinel down-after-milliseconds {name} {lost_after}\n\
             sentinel failover-timeout {name} 5000\n",
            directory.path().display()
        );
        let file = directory.path().join("sentinel.conf");
        std::fs::write(&file, text).expect("a file in its own folder");
        let arguments = [file.to_string_lossy().into_owned(), "--sentinel".to_owned()];
        Self {
            child: start("redis-server", &arguments),
            port,
            _directory: directory,
        }
    }

    fn knows_all(&self) -> bool {
        let text = self.master();
        text.contains("num-slaves 2") && text.contains("num-other-sentinels 2")
    }

    /// Whether the primary has told it what it is.
    pub(crate) fn reaches_it(&self) -> bool {
        let text = self.master();
        text.contains("flags master ") && text.contains("role-reported master")
    }

    /// What it says about the primary; nothing where it does not answer.
    fn master(&self) -> String {
        let command = ["SENTINEL", "MASTER", SentinelGroup::SERVICE];
        let answer = Raw::connect(self.port)
            .and_then(|mut raw| raw.try_command(&command.map(str::as_bytes)));
        answer.map(|reply| reply.text()).unwrap_or_default()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
