//! Real Redis servers for tests: one server, a Cluster, a Sentinel group, and a proxy between a
//! client and its server that makes faults.
//!
//! Servers listen on free loopback ports, keep their files in a folder of their own, and end when
//! they are dropped, or with the test process at the latest.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the whole crate is test code on plain threads: a failed expectation is a failed test"
)]

mod certificate;
mod cluster;
mod process;
mod proxy;
mod raw;
mod sentinel;
mod server;
mod tls;

pub use certificate::Certificates;
pub use cluster::Cluster;
pub use proxy::{Fault, Proxy};
pub use raw::{Raw, Reply};
pub use sentinel::SentinelGroup;
pub use server::Server;
pub use tls::{TlsCluster, TlsSentinel};

use std::net::TcpListener;
use std::time::{Duration, Instant};

/// A loopback port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the machine has free ports");
    listener.local_addr().expect("it is bound").port()
}

/// Asks `condition` again and again until it holds.
///
/// # Panics
/// If it does not hold within half a minute.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "waited in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
