//! A Cluster of three primaries.

use crate::{Fault, Proxy, Raw, Server, free_port, wait_until};

const SLOTS: u16 = 16384;

/// Three primaries, each behind a proxy that all clients are told to use.
#[derive(Debug)]
pub struct Cluster {
    servers: Vec<Server>,
    proxies: Vec<Proxy>,
}

impl Cluster {
    /// Three primaries that share the slots.
    pub fn start() -> Self {
        Self::with(&[], share)
    }

    /// Three primaries that share the slots, with more settings.
    pub fn with_settings(settings: &[(&str, &str)]) -> Self {
        Self::with(settings, share)
    }

    /// Three primaries of which the first has all slots, with more settings.
    pub fn with_all_slots_at_one(settings: &[(&str, &str)]) -> Self {
        Self::with(settings, |index| (index == 0).then_some((0, SLOTS - 1)))
    }

    /// Starts the servers and waits until each says that the Cluster is whole.
    ///
    /// # Panics
    /// If that does not come about soon.
    fn with(settings: &[(&str, &str)], share: impl Fn(usize) -> Option<(u16, u16)>) -> Self {
        let servers: Vec<Server> = (0..3).map(|_| Self::node(settings)).collect();
        let mut proxies = Vec::new();
        for (index, server) in servers.iter().enumerate() {
            let proxy = Proxy::start(server.port());
            let mut raw = server.raw();
            let port = proxy.port().to_string();
            raw.command(&["CONFIG", "SET", "cluster-announce-port", &port]);
            proxies.push(proxy);
            let epoch = (index + 1).to_string();
            raw.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            if let Some((first, last)) = share(index) {
                let range = [first.to_string(), last.to_string()];
                raw.command(&["CLUSTER", "ADDSLOTSRANGE", &range[0], &range[1]]);
            }
        }
        for server in &servers[1..] {
            let bus = bus_port(server).to_string();
            let port = server.port().to_string();
            let mut first = servers[0].raw();
            first.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        let cluster = Self { servers, proxies };
        cluster.await_whole();
        cluster
    }

    /// Waits until each node says that the Cluster is whole and how to reach all others.
    pub fn await_whole(&self) {
        for server in &self.servers {
            wait_until("the cluster is whole", || {
                is_whole(server.port(), self.servers.len()) && self.is_announced(server)
            });
        }
    }

    fn is_announced(&self, by: &Server) -> bool {
        let nodes = by.raw().command(&["CLUSTER", "NODES"]).text();
        let is_told = |proxy: &Proxy| nodes.contains(&format!(":{}@", proxy.port()));
        self.proxies.iter().all(is_told)
    }

    fn node(settings: &[(&str, &str)]) -> Server {
        let bus = free_port().to_string();
        let mut all = vec![
            ("cluster-enabled", "yes"),
            ("cluster-config-file", "nodes.conf"),
            ("cluster-node-timeout", "2000"),
            ("cluster-port", &bus),
        ];
        all.extend_from_slice(settings);
        Server::with(&all)
    }

    /// Makes a fault between clients and all nodes; the nodes go on seeing each other.
    pub fn set(&self, fault: Fault) {
        for proxy in &self.proxies {
            proxy.set(fault);
        }
    }

    /// Ends all nodes and starts them again without their data.
    ///
    /// # Panics
    /// If they do not find each other again.
    pub fn restart_empty(&mut self) {
        for index in 0..self.servers.len() {
            self.start_again(index);
        }
        self.await_whole();
    }

    /// Starts the primary `index` again, without its data.
    ///
    /// # Panics
    /// If the nodes do not find each other again.
    pub fn restart(&mut self, index: usize) {
        self.start_again(index);
        self.await_whole();
    }

    fn start_again(&mut self, index: usize) {
        self.servers[index].restart();
        let port = self.proxies[index].port().to_string();
        let mut raw = self.servers[index].raw();
        raw.command(&["CONFIG", "SET", "cluster-announce-port", &port]);
    }

    /// The primaries.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The primaries, to be killed or restarted.
    pub fn servers_mut(&mut self) -> &mut [Server] {
        &mut self.servers
    }

    /// A URL that names the first two primaries.
    pub fn url(&self) -> String {
        let [first, second] = [self.proxies[0].port(), self.proxies[1].port()];
        format!("redis-cluster://127.0.0.1:{first}?node=127.0.0.1:{second}")
    }

    /// The index of the primary that has `slot` now.
    ///
    /// # Panics
    /// If none has it.
    pub fn owner(&self, slot: u16) -> usize {
        let ranges = self.servers[0].raw().command(&["CLUSTER", "SLOTS"]).list();
        for range in ranges {
            let range = range.list();
            let bounds = (range[0].text(), range[1].text());
            let bounds: (u16, u16) = (bounds.0.parse().unwrap(), bounds.1.parse().unwrap());
            if (bounds.0..=bounds.1).contains(&slot) {
                let port = range[2].clone().list()[1].text();
                let at = |proxy: &Proxy| proxy.port().to_string() == port;
                return self.proxies.iter().position(at).expect("one of ours");
            }
        }
        panic!("nobody has slot {slot}");
    }

    /// Moves `slot` to the primary `to`, key by key, as a resharding does. `midway` is called when
    /// the slot has begun to move and its keys have not.
    ///
    /// # Panics
    /// If a node refuses.
    pub fn move_slot(&self, slot: u16, to: usize, mut midway: impl FnMut()) {
        let from = self.owner(slot);
        if from == to {
            return;
        }
        let (source, target) = (&self.servers[from], &self.servers[to]);
        let ids = [source, target].map(|server| server.raw().command(&["CLUSTER", "MYID"]).text());
        let number = slot.to_string();
        let set = |server: &Server, words: &[&str]| {
            let mut command = vec!["CLUSTER", "SETSLOT", &number];
            command.extend(words);
            let answer = server.raw().command(&command).text();
            assert_eq!(answer, "OK", "{command:?}");
        };
        set(target, &["IMPORTING", &ids[0]]);
        set(source, &["MIGRATING", &ids[1]]);
        midway();
        let port = target.port().to_string();
        let mut raw = source.raw();
        loop {
            let found = raw.command(&["CLUSTER", "GETKEYSINSLOT", &number, "10"]);
            let keys: Vec<String> = found.list().iter().map(crate::Reply::text).collect();
            if keys.is_empty() {
                break;
            }
            let mut command = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            command.extend(keys.iter().map(String::as_str));
            raw.command(&command);
        }
        set(target, &["NODE", &ids[1]]);
        set(source, &["NODE", &ids[1]]);
        for server in &self.servers {
            let answer = server
                .raw()
                .command(&["CLUSTER", "SETSLOT", &number, "NODE", &ids[1]]);
            assert_eq!(answer.text(), "OK");
        }
    }

    /// Removes every key.
    pub fn flush(&self) {
        for server in &self.servers {
            server.raw().command(&["FLUSHALL"]);
        }
    }
}

/// The slots of the primary `index` at the start.
pub(crate) fn share(index: usize) -> Option<(u16, u16)> {
    let third = SLOTS / 3;
    Some(match index {
        0 => (0, third),
        1 => (third + 1, 2 * third),
        _ => (2 * third + 1, SLOTS - 1),
    })
}

pub(crate) fn bus_port(server: &Server) -> u16 {
    let answer = server.raw().command(&["CONFIG", "GET", "cluster-port"]);
    answer.list()[1].text().parse().expect("a port")
}

pub(crate) fn is_whole(port: u16, nodes: usize) -> bool {
    let Ok(mut raw) = Raw::connect(port) else {
        return false;
    };
    let info = raw.command(&["CLUSTER", "INFO"]).text();
    info.contains("cluster_state:ok") && info.contains(&format!("cluster_known_nodes:{nodes}"))
}
