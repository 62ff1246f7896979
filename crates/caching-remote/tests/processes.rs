//! What the store does when the server's process is killed, stands still, or shuts down under load.
#![cfg(all(feature = "client", feature = "server"))]
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use caching_abstractions::{CacheStore, LeaseToken, milliseconds, seconds};
use caching_remote::server::StoreServer;
use caching_remote::{RemoteStore, Transport};
use redis_support::{Proxy, free_port};
use support::{Server, is_unavailable, key, long, long_life, recovery, reference, settings};
use tokio::time::{Instant, sleep};

const LIMIT: Duration = milliseconds(2000);
const MARGIN: Duration = milliseconds(500);
const PORT: &str = "XIHAN_TEST_SERVER_PORT";

/// A server in a process of its own. It ends when its input does, which is with this process.
struct Process {
    port: u16,
    child: Child,
}

impl Process {
    async fn start(port: u16) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "a_server_in_a_process_of_its_own_ends_with_its_input",
            ])
            .env(PORT, port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_err()
        {
            assert!(begun.elapsed() < seconds(30), "the server does not start");
            sleep(milliseconds(5)).await;
        }
        Self { port, child }
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.unwrap().success());
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the port is given, this process is the server of another one.
#[tokio::test]
async fn a_server_in_a_process_of_its_own_ends_with_its_input() {
    if let Ok(port) = std::env::var(PORT) {
        return serve(port.parse().unwrap()).await;
    }
    let mut server = Process::start(free_port()).await;
    drop(server.child.stdin.take());
    assert!(server.child.wait().unwrap().success());
}

async fn serve(port: u16) {
    let server = StoreServer::builder(reference()).build().unwrap();
    let listening = server.bind(("127.0.0.1", port)).await.unwrap();
    let input_ends = async {
        let reading = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        let _ = reading.await;
    };
    listening.run_until(input_ends).await;
}

/// What callers see while something happens to the server.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    done: AtomicU64,
    failed: AtomicU64,
    unknown: AtomicU64,
    fencing: AtomicU64,
    slowest: std::sync::Mutex<Duration>,
}

impl Load {
    /// Waits until the store has done some more of it.
    async fn progress(&self) {
        let (begun, before) = (Instant::now(), self.done.load(Ordering::Relaxed));
        while self.done.load(Ordering::Relaxed) < before + 200 {
            assert!(begun.elapsed() < seconds(30), "nothing is done any more");
            sleep(milliseconds(5)).await;
        }
    }

    async fn call<T>(
        &self,
        call: impl Future<Output = caching_abstractions::Result<T>>,
    ) -> Option<T> {
        let begun = Instant::now();
        let result = call.await;
        {
            let mut slowest = self.slowest.lock().unwrap();
            *slowest = slowest.max(begun.elapsed());
        }
        match result {
            Ok(answer) => {
                self.done.fetch_add(1, Ordering::Relaxed);
                Some(answer)
            }
            Err(error) => {
                assert!(is_unavailable(&error), "{error}");
                let unknown = u64::from(error.may_have_been_applied());
                self.unknown.fetch_add(unknown, Ordering::Relaxed);
                self.failed.fetch_add(1, Ordering::Relaxed);
                sleep(milliseconds(5)).await;
                None
            }
        }
    }

    /// A lease that everybody wants; its numbers only ever rise.
    async fn lease(&self, store: &RemoteStore) {
        let (k, token) = (key("lease"), LeaseToken::generate());
        let before = self.fencing.load(Ordering::SeqCst);
        let leased = self.call(store.try_lease(&k, &token, long_life())).await;
        if let Some(Some(number)) = leased {
            assert!(number > before, "{number} after {before}");
            self.fencing.fetch_max(number, Ordering::SeqCst);
        }
        self.call(store.release(&k, &token)).await;
    }
}

/// Starts tasks that call the store until the load is over.
fn load(store: &RemoteStore) -> (Arc<Load>, Vec<tokio::task::JoinHandle<()>>) {
    let load = Arc::new(Load::default());
    let tasks = (0..16).map(|task| {
        let (load, store) = (Arc::clone(&load), store.clone());
        tokio::spawn(async move {
            let k = key(&format!("k{task}"));
            while !load.is_over.load(Ordering::Relaxed) {
                load.call(store.set(&k, "v".into(), long())).await;
                load.call(store.get(&k)).await;
                load.lease(&store).await;
                load.call(store.increment(&key("n"), 1, long())).await;
            }
        })
    });
    let tasks = tasks.collect();
    (load, tasks)
}

async fn finish(load: &Load, tasks: Vec<tokio::task::JoinHandle<()>>) {
    load.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let slowest = *load.slowest.lock().unwrap();
    assert!(slowest < LIMIT + MARGIN, "a call took {slowest:?}");
    assert!(load.done.load(Ordering::Relaxed) > 0);
}

async fn kill_and_restart(transport: Transport) {
    let mut server = Process::start(free_port()).await;
    let store = RemoteStore::connect_over(&settings(server.port), transport).await;
    let store = store.unwrap();
    let (load, tasks) = load(&store);
    load.progress().await;
    server.kill();
    sleep(milliseconds(2500)).await;
    let before = load.fencing.load(Ordering::SeqCst);
    server = Process::start(server.port).await;
    let took = recovery(&store).await;
    assert!(took < seconds(2), "{took:?}");
    load.progress().await;
    finish(&load, tasks).await;
    assert!(load.failed.load(Ordering::Relaxed) > 0, "nothing happened");
    assert!(load.fencing.load(Ordering::SeqCst) > before, "S6");
    drop(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s6_after_a_kill_under_load_the_store_is_back_and_fencing_numbers_rise() {
    kill_and_restart(Transport::Session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s6_after_a_kill_under_load_unary_calls_are_back_and_fencing_numbers_rise() {
    kill_and_restart(Transport::Unary).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s3_a_server_that_stands_still_for_five_seconds_hangs_nobody() {
    for transport in [Transport::Session, Transport::Unary] {
        let server = Process::start(free_port()).await;
        let store = RemoteStore::connect_over(&settings(server.port), transport).await;
        let store = store.unwrap();
        let (load, tasks) = load(&store);
        load.progress().await;
        server.signal("-STOP");
        sleep(seconds(5)).await;
        server.signal("-CONT");
        let took = recovery(&store).await;
        assert!(took < seconds(2), "{took:?}");
        load.progress().await;
        finish(&load, tasks).await;
        assert!(load.failed.load(Ordering::Relaxed) > 0, "nothing happened");
    }
}

/// Clients move to the next server, and no call is of unknown outcome: what the server had begun
/// with is answered, and the rest goes over the next connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s4_a_graceful_shutdown_under_load_leaves_no_call_of_unknown_outcome() {
    for transport in [Transport::Session, Transport::Unary] {
        let inside = reference();
        let mut server = Server::start(Arc::clone(&inside), |builder| builder).await;
        let proxy = Proxy::start(server.port);
        let store = RemoteStore::connect_over(&settings(proxy.port()), transport).await;
        let store = store.unwrap();
        let (load, tasks) = load(&store);
        for _ in 0..3 {
            load.progress().await;
            let next = Server::start(Arc::clone(&inside), |builder| builder).await;
            proxy.lead_to(next.port);
            server.shut_down().await;
            server = next;
        }
        load.progress().await;
        finish(&load, tasks).await;
        let unknown = load.unknown.load(Ordering::Relaxed);
        let failed = load.failed.load(Ordering::Relaxed);
        assert_eq!((unknown, failed), (0, 0), "{transport:?}");
    }
}
