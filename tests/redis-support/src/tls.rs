//! A Cluster and a Sentinel group that speak TLS among themselves and with clients.

use crate::cluster::{bus_port, is_whole, share};
use crate::sentinel::Sentinel;
use crate::{Certificates, SentinelGroup, Server, free_port, wait_until};

/// Three primaries without proxies.
#[derive(Debug)]
pub struct TlsCluster {
    servers: Vec<(Server, u16)>,
}

impl TlsCluster {
    /// Starts them, and waits until each says that the Cluster is whole.
    ///
    /// # Panics
    /// If that does not come about soon.
    pub fn start(certificates: &Certificates) -> Self {
        let node = |_| {
            let bus = free_port().to_string();
            certificates.server_with(&[
                ("tls-auth-clients", "no"),
                ("tls-cluster", "yes"),
                ("cluster-enabled", "yes"),
                ("cluster-config-file", "nodes.conf"),
                ("cluster-node-timeout", "2000"),
                ("cluster-port", &bus),
            ])
        };
        let servers: Vec<(Server, u16)> = (0..3).map(node).collect();
        for (index, (server, _)) in servers.iter().enumerate() {
            let mut raw = server.raw();
            raw.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            if let Some((first, last)) = share(index) {
                let range = [first.to_string(), last.to_string()];
                raw.command(&["CLUSTER", "ADDSLOTSRANGE", &range[0], &range[1]]);
            }
        }
        for (server, port) in &servers[1..] {
            let (port, bus) = (port.to_string(), bus_port(server).to_string());
            let mut first = servers[0].0.raw();
            first.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        for (server, _) in &servers {
            wait_until("the cluster is whole", || {
                is_whole(server.port(), servers.len())
            });
        }
        Self { servers }
    }

    /// A URL that names the first primary.
    pub fn url(&self) -> String {
        format!("rediss-cluster://127.0.0.1:{}", self.servers[0].1)
    }

    /// How many keys each primary has.
    pub fn sizes(&self) -> Vec<String> {
        let size = |(server, _): &(Server, u16)| server.raw().command(&["DBSIZE"]).text();
        self.servers.iter().map(size).collect()
    }
}

/// One primary and one sentinel.
#[derive(Debug)]
pub struct TlsSentinel {
    _primary: Server,
    _sentinel: Sentinel,
    port: u16,
}

impl TlsSentinel {
    /// Starts both, and waits until the sentinel reaches the primary.
    ///
    /// # Panics
    /// If that does not come about soon.
    pub fn start(certificates: &Certificates) -> Self {
        let (primary, watched) = certificates.server(false);
        let port = free_port();
        let mut settings = String::from("tls-auth-clients no\ntls-replication yes\n");
        for (name, value) in certificates.settings(port) {
            settings += &format!("{name} {value}\n");
        }
        let sentinel = Sentinel::with(watched, 30_000, 1, &settings);
        wait_until("the sentinel reaches the primary", || sentinel.reaches_it());
        Self {
            _primary: primary,
            _sentinel: sentinel,
            port,
        }
    }

    /// The URL of the primary.
    pub fn url(&self) -> String {
        let name = SentinelGroup::SERVICE;
        let port = self.port;
        format!("rediss-sentinel://127.0.0.1:{port}?sentinelServiceName={name}")
    }
}
