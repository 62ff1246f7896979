//! A Cluster of three primaries.

use crate::{Raw, Server, free_port, wait_until};

const SLOTS: u16 = 16384;

/// Three primaries that share the slots.
#[derive(Debug)]
pub struct Cluster {
    servers: Vec<Server>,
}

impl Cluster {
    /// Starts the servers and waits until each says that the Cluster is whole.
    ///
    /// # Panics
    /// If that does not come about soon.
    pub fn start() -> Self {
        let servers: Vec<Server> = (0..3).map(|_| Self::node()).collect();
        let ports: Vec<u16> = servers.iter().map(Server::port).collect();
        for (index, server) in servers.iter().enumerate() {
            let mut raw = server.raw();
            let epoch = (index + 1).to_string();
            raw.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            let (first, last) = share(index);
            let range = [first.to_string(), last.to_string()];
            raw.command(&["CLUSTER", "ADDSLOTSRANGE", &range[0], &range[1]]);
        }
        for server in &servers[1..] {
            let bus = bus_port(server).to_string();
            let port = server.port().to_string();
            let mut first = servers[0].raw();
            first.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        for port in ports {
            wait_until("the cluster is whole", || is_whole(port, 3));
        }
        Self { servers }
    }

    fn node() -> Server {
        let bus = free_port().to_string();
        Server::with(&[
            ("cluster-enabled", "yes"),
            ("cluster-config-file", "nodes.conf"),
            ("cluster-node-timeout", "2000"),
            ("cluster-port", &bus),
        ])
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
        let [first, second] = [self.servers[0].port(), self.servers[1].port()];
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
                let at = |server: &Server| server.port().to_string() == port;
                return self.servers.iter().position(at).expect("one of ours");
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
fn share(index: usize) -> (u16, u16) {
    let third = SLOTS / 3;
    match index {
        0 => (0, third),
        1 => (third + 1, 2 * third),
        _ => (2 * third + 1, SLOTS - 1),
    }
}

fn bus_port(server: &Server) -> u16 {
    let answer = server.raw().command(&["CONFIG", "GET", "cluster-port"]);
    answer.list()[1].text().parse().expect("a port")
}

fn is_whole(port: u16, nodes: usize) -> bool {
    let Ok(mut raw) = Raw::connect(port) else {
        return false;
    };
    let info = raw.command(&["CLUSTER", "INFO"]).text();
    info.contains("cluster_state:ok") && info.contains(&format!("cluster_known_nodes:{nodes}"))
}
