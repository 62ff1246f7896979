//! What the store does when the server or the way to it fails.
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, CachingError, ErrorCode, LeaseToken,
    TimeToLive, milliseconds, minutes, seconds,
};
use caching_redis::RedisStore;
use futures_util::{FutureExt, StreamExt};
use redis_support::{Fault, Proxy, Raw, Reply, Server};
use support::Lateness;
use tokio::time::{Instant, sleep, timeout};

const LIMIT: Duration = milliseconds(2000);
const MARGIN: Duration = milliseconds(500);

fn key(text: &str) -> CacheKey {
    CacheKey::new(text).unwrap()
}

fn long() -> CacheEntryOptions {
    CacheEntryOptions::time_to_live(minutes(10)).unwrap()
}

fn long_life() -> TimeToLive {
    TimeToLive::new(minutes(10)).unwrap()
}

/// A server, a proxy before it, and a store behind the proxy.
async fn behind_proxy() -> (Server, Proxy, RedisStore) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let store = RedisStore::connect(&support::settings(&proxy.url())).await;
    (server, proxy, store.unwrap())
}

fn is_unavailable(error: &CachingError) -> bool {
    error.code() == ErrorCode::StoreUnavailable
}

/// Waits until the store works again, and says how long that took.
async fn recovery(store: &dyn CacheStore) -> Duration {
    let begun = Instant::now();
    while let Err(error) = store.ping().await {
        assert!(is_unavailable(&error), "{error}");
        assert!(begun.elapsed() < seconds(30), "it does not come back");
        sleep(milliseconds(5)).await;
    }
    begun.elapsed()
}

async fn is_known_to_be_away(store: &dyn CacheStore) -> bool {
    let answer = store.ping().await;
    answer.is_err_and(|error| !error.may_have_been_applied())
}

/// Waits until the server has no connection but the store's one and the one that asks: nothing
/// that was sent on another one can arrive later.
async fn await_no_other_connection(server: &Server) {
    let begun = Instant::now();
    let mut raw = server.raw();
    loop {
        let clients = raw.command(&["INFO", "clients"]).text();
        if clients.lines().any(|line| line == "connected_clients:2") {
            return;
        }
        assert!(begun.elapsed() < seconds(30), "{clients}");
        sleep(milliseconds(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_lease_whose_answer_is_lost_is_asked_for_again() {
    let (server, proxy, store) = behind_proxy().await;
    let (k, token) = (key("lease"), LeaseToken::generate());
    proxy.set(Fault::LoseNextReply);
    let number = store.try_lease(&k, &token, long_life()).await.unwrap();
    assert_eq!(proxy.lost(), 1, "an answer was lost");
    assert_eq!(server.calls("evalsha"), 2);
    assert!(number.is_some(), "its own lease does not stand in its way");
    let again = store.try_lease(&k, &token, long_life()).await.unwrap();
    assert_eq!(again, number, "it was issued once");
    assert!(store.release(&k, &token).await.unwrap());
    let next = LeaseToken::generate();
    let next = store.try_lease(&k, &next, long_life()).await.unwrap();
    assert!(next > number);
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_read_whose_answer_is_lost_is_repeated() {
    let (_server, proxy, store) = behind_proxy().await;
    store.set(&key("k"), "v".into(), long()).await.unwrap();
    proxy.set(Fault::LoseNextReply);
    assert_eq!(store.get(&key("k")).await.unwrap(), Some("v".into()));
    proxy.set(Fault::LoseNextReply);
    let many = store.get_many(&[key("k"), key("l")]).await.unwrap();
    assert_eq!(many, [Some("v".into()), None]);
    proxy.set(Fault::LoseNextReply);
    assert!(store.time_to_live(&key("k")).await.unwrap().is_some());
    assert_eq!(proxy.lost(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_write_whose_answer_is_lost_is_reported_and_not_repeated() {
    let (server, proxy, store) = behind_proxy().await;
    proxy.set(Fault::LoseNextReply);
    let error = store.increment(&key("n"), 1, long()).await.unwrap_err();
    assert!(
        is_unavailable(&error) && error.may_have_been_applied(),
        "{error}"
    );
    recovery(&store).await;
    let mut raw = server.raw();
    assert_eq!(raw.command(&["GET", "n"]).text(), "1", "it ran once");

    proxy.set(Fault::LoseNextReply);
    let added = store.try_add(&key("a"), "v".into(), long()).await;
    assert!(added.unwrap_err().may_have_been_applied());
    assert_eq!(raw.command(&["GET", "a"]).text(), "v");
    recovery(&store).await;
    assert!(!store.try_add(&key("a"), "w".into(), long()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_swallowed_answer_ends_with_the_time_limit() {
    let (_server, proxy, store) = behind_proxy().await;
    proxy.set(Fault::SwallowReplies);
    let lateness = Lateness::watch();
    let begun = Instant::now();
    let error = store.set(&key("k"), "v".into(), long()).await.unwrap_err();
    assert!(
        is_unavailable(&error) && error.may_have_been_applied(),
        "{error}"
    );
    let took = begun.elapsed();
    assert!(took >= LIMIT, "{took:?}");
    assert!(took < lateness.allow(LIMIT + MARGIN), "{took:?}");
    proxy.set(Fault::None);
    recovery(&store).await;
    assert_eq!(store.get(&key("k")).await.unwrap(), Some("v".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_an_unreachable_server_is_told_at_once() {
    let (_server, proxy, store) = behind_proxy().await;
    proxy.set(Fault::Refuse);
    // Until it is known that nobody listens, a command may be on its way.
    while !is_known_to_be_away(&store).await {
        sleep(milliseconds(5)).await;
    }
    let lateness = Lateness::watch();
    let begun = Instant::now();
    let error = store.set(&key("k"), "v".into(), long()).await.unwrap_err();
    let took = begun.elapsed();
    assert!(is_unavailable(&error), "{error}");
    assert!(!error.may_have_been_applied(), "nothing was sent: {error}");
    assert!(took < lateness.allow(MARGIN), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_store_whose_server_is_away_at_the_start_starts() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    proxy.set(Fault::Refuse);
    while Raw::connect(proxy.port()).is_ok() {
        sleep(milliseconds(5)).await;
    }
    let lateness = Lateness::watch();
    let begun = Instant::now();
    let store = RedisStore::connect(&support::settings(&proxy.url())).await;
    let store = store.unwrap();
    let waited = begun.elapsed();
    assert!(waited < lateness.allow(seconds(1)), "{waited:?}");
    let error = store.get(&key("k")).await.unwrap_err();
    assert!(is_unavailable(&error), "{error}");
    assert!(store.watch(&key("k")).await.is_err());
    proxy.set(Fault::None);
    let took = recovery(&store).await;
    assert!(took < lateness.allow(seconds(2)), "{took:?}");
    store.set(&key("k"), "v".into(), long()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_a_dropped_command_is_not_sent_after_a_reconnect() {
    let (server, proxy, store) = behind_proxy().await;
    proxy.set(Fault::Hang);
    for number in 0..20 {
        let k = key(&format!("dropped{number}"));
        let _ = store.set(&k, "v".into(), long()).now_or_never();
    }
    proxy.set(Fault::Cut);
    sleep(milliseconds(50)).await;
    proxy.set(Fault::None);
    recovery(&store).await;
    // What waited for a connection would go before this.
    store.set(&key("marker"), "v".into(), long()).await.unwrap();
    await_no_other_connection(&server).await;
    assert_eq!(server.raw().command(&["DBSIZE"]), Reply::Number(1));
}

/// A dropped command that waits in this process is forgotten there, though nobody waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn s5_what_waits_behind_a_blocked_socket_is_never_sent() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let mut settings = support::settings(&proxy.url());
    settings.redis.operation_timeout = milliseconds(400);
    let store = RedisStore::connect(&settings).await.unwrap();
    proxy.set(Fault::Hang);
    // Far more than sockets hold.
    let large = vec![b'x'; 1024 * 1024];
    for number in 0..64 {
        let k = key(&format!("large{number:02}"));
        let call = store.set(&k, large.clone().into(), long());
        let _ = call.now_or_never();
    }
    let _ = store.set(&key("last"), "v".into(), long()).now_or_never();
    // Far longer than the time limit.
    sleep(milliseconds(1500)).await;
    proxy.set(Fault::None);
    recovery(&store).await;
    store.set(&key("marker"), "v".into(), long()).await.unwrap();
    await_no_other_connection(&server).await;
    let mut raw = server.raw();
    assert_eq!(raw.command(&["EXISTS", "last"]), Reply::Number(0));
    assert_eq!(raw.command(&["EXISTS", "large63"]), Reply::Number(0));
}

/// What callers see while something happens to the server.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    done: AtomicU64,
    failed: AtomicU64,
    slowest: parking_lot::Mutex<Duration>,
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

    async fn call<T>(&self, call: impl Future<Output = caching_abstractions::Result<T>>) {
        let begun = Instant::now();
        match call.await {
            Ok(_) => self.done.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                assert!(is_unavailable(&error), "{error}");
                sleep(milliseconds(5)).await;
                self.failed.fetch_add(1, Ordering::Relaxed)
            }
        };
        let mut slowest = self.slowest.lock();
        *slowest = slowest.max(begun.elapsed());
    }
}

/// Starts tasks that call the store until the load is over.
fn load(store: &RedisStore) -> (Arc<Load>, Vec<tokio::task::JoinHandle<()>>) {
    let load = Arc::new(Load::default());
    let tasks = (0..16).map(|task| {
        let (load, store) = (Arc::clone(&load), store.clone());
        tokio::spawn(async move {
            let (k, token) = (key(&format!("k{task}")), LeaseToken::generate());
            while !load.is_over.load(Ordering::Relaxed) {
                load.call(store.set(&k, "v".into(), long())).await;
                load.call(store.get(&k)).await;
                load.call(store.try_lease(&key("lease"), &token, long_life()))
                    .await;
                load.call(store.release(&key("lease"), &token)).await;
                load.call(store.increment(&key("n"), 1, long())).await;
            }
        })
    });
    let tasks = tasks.collect();
    (load, tasks)
}

async fn finish(load: &Load, tasks: Vec<tokio::task::JoinHandle<()>>, most: Duration) {
    load.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let slowest = *load.slowest.lock();
    assert!(slowest < most, "a call took {slowest:?}");
    assert!(load.done.load(Ordering::Relaxed) > 0);
    assert!(load.failed.load(Ordering::Relaxed) > 0, "nothing happened");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s3_a_server_that_is_killed_under_load_is_used_again_when_it_is_back() {
    let mut server = Server::start();
    let store = RedisStore::connect(&support::settings(&server.url())).await;
    let store = store.unwrap();
    let lateness = Lateness::watch();
    let (load, tasks) = load(&store);
    load.progress().await;
    server.kill();
    sleep(milliseconds(2500)).await;
    server.restart();
    let took = recovery(&store).await;
    assert!(took < lateness.allow(seconds(2)), "{took:?}");
    load.progress().await;
    finish(&load, tasks, lateness.allow(LIMIT + MARGIN)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s3_a_server_that_stands_still_for_five_seconds_hangs_nobody() {
    let server = Server::start();
    let store = RedisStore::connect(&support::settings(&server.url())).await;
    let store = store.unwrap();
    let lateness = Lateness::watch();
    let (load, tasks) = load(&store);
    load.progress().await;
    server.pause();
    sleep(seconds(5)).await;
    server.resume();
    let took = recovery(&store).await;
    assert!(took < lateness.allow(seconds(2)), "{took:?}");
    load.progress().await;
    finish(&load, tasks, lateness.allow(LIMIT + MARGIN)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_becomes_a_replica_is_unavailable_and_never_held_or_absent() {
    let (server, master) = (Server::start(), Server::start());
    let store = RedisStore::connect(&support::settings(&server.url())).await;
    let store = store.unwrap();
    let token = LeaseToken::generate();
    let mut raw = server.raw();
    raw.command(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
    let leased = store.try_lease(&key("k"), &token, long_life()).await;
    let error = leased.unwrap_err();
    assert!(
        is_unavailable(&error) && !error.may_have_been_applied(),
        "{error}"
    );
    for _ in 0..5 {
        let error = store.set(&key("k"), "v".into(), long()).await.unwrap_err();
        assert!(is_unavailable(&error), "{error}");
    }
    raw.command(&["REPLICAOF", "NO", "ONE"]);
    recovery(&store).await;
    let leased = store.try_lease(&key("k"), &token, long_life()).await;
    assert!(leased.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_hears_of_what_it_may_have_missed() {
    let (_server, proxy, store) = behind_proxy().await;
    let mut hints = store.watch(&key("k")).await.unwrap();
    assert!(
        hints.next().now_or_never().is_none(),
        "nothing happened yet"
    );
    sleep(milliseconds(1200)).await;
    proxy.break_once();
    let hint = timeout(seconds(5), hints.next()).await;
    assert_eq!(
        hint.unwrap(),
        Some(()),
        "the connection was lost for a while"
    );
    let token = LeaseToken::generate();
    store
        .try_lease(&key("k"), &token, long_life())
        .await
        .unwrap();
    assert!(store.release(&key("k"), &token).await.unwrap());
    let hint = timeout(seconds(5), hints.next()).await;
    assert_eq!(hint.unwrap(), Some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_network_is_no_fault() {
    let (_server, proxy, store) = behind_proxy().await;
    proxy.set(Fault::Delay(milliseconds(60)));
    store.set(&key("k"), "v".into(), long()).await.unwrap();
    assert_eq!(store.get(&key("k")).await.unwrap(), Some("v".into()));
}

/// Whether `error`, or what caused it, says `text`.
fn says(error: &CachingError, text: &str) -> bool {
    let mut next: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = next {
        if error.to_string().contains(text) {
            return true;
        }
        next = error.source();
    }
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_server_that_loads_its_data_is_unavailable_until_it_has_done_so() {
    // Each of the thousand keys takes 3 ms, and commands are looked at in between.
    let mut server = Server::with(&[
        ("key-load-delay", "3000"),
        ("loading-process-events-interval-bytes", "1024"),
    ]);
    let store = RedisStore::connect(&support::settings(&server.url())).await;
    let store = store.unwrap();
    let keys: Vec<CacheKey> = (0..1000).map(|number| key(&format!("k{number}"))).collect();
    let items: Vec<CacheItem> = keys
        .iter()
        .map(|key| CacheItem::new(key.clone(), "v", long()))
        .collect();
    store.set_many(&items).await.unwrap();
    assert_eq!(server.raw().command(&["SAVE"]).text(), "OK");
    server.restart();
    let lateness = Lateness::watch();
    let begun = Instant::now();
    let mut loading = 0;
    loop {
        let asked = Instant::now();
        let answer = store.get(&keys[0]).await;
        let took = asked.elapsed();
        assert!(took < lateness.allow(LIMIT + MARGIN), "{took:?}");
        match answer {
            Ok(value) => {
                assert_eq!(value, Some("v".into()), "it is never absent");
                break;
            }
            Err(error) => {
                assert!(is_unavailable(&error), "{error}");
                loading += u32::from(says(&error, "LOADING"));
            }
        }
        assert!(begun.elapsed() < seconds(60), "it does not come back");
        sleep(milliseconds(20)).await;
    }
    assert!(loading > 0, "nobody was told why");
    assert_eq!(server.raw().command(&["DBSIZE"]), Reply::Number(1000));
}
