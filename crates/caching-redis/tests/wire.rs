//! What goes over the wire and what stands in Redis.
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, DistributedLock, ErrorCode, LeaseToken,
    TimeToLive, minutes, seconds,
};
use caching_redis::RedisStore;
use redis_support::{Raw, Reply, Server};
use std::sync::Arc;

fn key(text: &str) -> CacheKey {
    CacheKey::new(text).unwrap()
}

fn long() -> CacheEntryOptions {
    CacheEntryOptions::time_to_live(minutes(10)).unwrap()
}

fn sliding() -> CacheEntryOptions {
    CacheEntryOptions::sliding_expiration(minutes(10)).unwrap()
}

fn life() -> TimeToLive {
    TimeToLive::new(minutes(10)).unwrap()
}

async fn store(server: &Server) -> RedisStore {
    let settings = support::settings(&server.url());
    RedisStore::connect(&settings).await.unwrap()
}

/// Every command that clients send from now on.
struct Monitor(Raw);

impl Monitor {
    fn of(server: &Server) -> Self {
        let mut raw = server.raw();
        assert_eq!(raw.command(&["MONITOR"]).text(), "OK");
        Self(raw)
    }

    /// The commands since the last call, without what scripts call.
    fn commands(&mut self, server: &Server) -> Vec<String> {
        server.raw().command(&["ECHO", "end of this part"]);
        let mut commands = Vec::new();
        loop {
            let line = self.0.read().unwrap().text();
            if line.contains("end of this part") {
                return commands;
            }
            let is_ours = !line.contains(" lua]") && !line.contains("] \"ECHO\"");
            if let (true, Some((_, command))) = (is_ours, line.split_once("] \"")) {
                let name = command.split('"').next().unwrap_or_default();
                commands.push(name.to_owned());
            }
        }
    }
}

/// Calls something on the store and asserts which commands that sends.
macro_rules! sends {
    ($monitor:ident, $server:ident, $commands:expr, $call:expr) => {
        $call.await.unwrap();
        let sent = $monitor.commands(&$server);
        assert_eq!(sent, $commands, stringify!($call));
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn part3_each_operation_is_one_command() {
    let server = Server::start();
    let store = store(&server).await;
    let mut monitor = Monitor::of(&server);
    let (k, a, b) = (key("k"), LeaseToken::generate(), LeaseToken::generate());
    sends!(monitor, server, ["SET"], store.set(&k, "1".into(), long()));
    sends!(monitor, server, ["GET"], store.get(&k));
    sends!(
        monitor,
        server,
        ["SET"],
        store.try_add(&k, "2".into(), long())
    );
    sends!(
        monitor,
        server,
        ["SET"],
        store.get_or_add(&k, "2".into(), long())
    );
    let replaced = store.try_replace(&k, b"1", "3".into(), long());
    sends!(monitor, server, ["EVALSHA"], replaced);
    sends!(
        monitor,
        server,
        ["EVALSHA"],
        store.try_extend(&k, b"3", life())
    );
    sends!(monitor, server, ["EVALSHA"], store.increment(&k, 1, long()));
    sends!(monitor, server, ["PTTL"], store.time_to_live(&k));
    sends!(monitor, server, ["EVALSHA"], store.try_remove(&k, b"4"));
    sends!(monitor, server, ["DEL"], store.remove(&k));
    sends!(
        monitor,
        server,
        ["EVALSHA"],
        store.try_lease(&k, &a, life())
    );
    sends!(
        monitor,
        server,
        ["EVALSHA"],
        store.try_relay(&k, &a, &b, life())
    );
    sends!(monitor, server, ["EVALSHA"], store.release(&k, &b));
    sends!(monitor, server, ["PING"], store.ping());
    let items = ["a", "b"].map(|name| CacheItem::new(key(name), "v", long()));
    sends!(monitor, server, ["SET", "SET"], store.set_many(&items));
    let keys = [key("a"), key("b")];
    sends!(monitor, server, ["GET", "GET"], store.get_many(&keys));
    sends!(monitor, server, ["DEL", "DEL"], store.remove_many(&keys));
}

#[tokio::test(flavor = "multi_thread")]
async fn part3_a_sliding_entry_takes_one_command_more_to_read() {
    let server = Server::start();
    let store = store(&server).await;
    store.set(&key("k"), "v".into(), sliding()).await.unwrap();
    let mut monitor = Monitor::of(&server);
    // The second one is not waited for; what is sent after it comes after it.
    let read = async {
        store.get(&key("k")).await.unwrap();
        store.ping().await
    };
    sends!(monitor, server, ["GET", "EVAL", "PING"], read);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_entry_is_the_value_and_a_sliding_one_has_a_header() {
    let server = Server::start();
    let store = store(&server).await;
    let mut raw = server.raw();
    let k = key("greeting");
    store.set(&k, "hello".into(), long()).await.unwrap();
    assert_eq!(raw.command(&["GET", "greeting"]).text(), "hello");
    store.set(&k, "hello".into(), sliding()).await.unwrap();
    let Reply::Bytes(stored) = raw.command(&["GET", "greeting"]) else {
        panic!("no value");
    };
    assert_eq!(stored.len(), 16 + 5);
    assert!(stored.starts_with(b"\xffxhslid\x01") && stored.ends_with(b"hello"));
    // What another program wrote is read as it is, and lives for ever here.
    raw.command(&["SET", "other", "theirs"]);
    assert_eq!(
        store.get(&key("other")).await.unwrap(),
        Some("theirs".into())
    );
    assert!(store.time_to_live(&key("other")).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_survive_a_flush() {
    let server = Server::start();
    let store = store(&server).await;
    let (k, a, b) = (key("k"), LeaseToken::generate(), LeaseToken::generate());
    let flush = || server.raw().command(&["SCRIPT", "FLUSH"]);
    flush();
    assert!(store.try_lease(&k, &a, life()).await.unwrap().is_some());
    flush();
    assert!(store.try_relay(&k, &a, &b, life()).await.unwrap().is_some());
    flush();
    assert!(store.try_extend(&k, b.as_bytes(), life()).await.unwrap());
    flush();
    assert!(store.release(&k, &b).await.unwrap());
    flush();
    assert_eq!(store.increment(&k, 2, long()).await.unwrap(), 2);
    flush();
    assert!(
        store
            .try_replace(&k, b"2", "3".into(), long())
            .await
            .unwrap()
    );
    flush();
    assert!(store.try_remove(&k, b"3").await.unwrap());
}

/// As redis-py's `Lock` does: `SET name token NX PX ttl`, and a script that compares and deletes.
#[tokio::test(flavor = "multi_thread")]
async fn l3_locks_of_another_program_and_ours_exclude_each_other() {
    const COMPARE_AND_DELETE: &str = "local token = redis.call('get', KEYS[1]) \
        if not token or token ~= ARGV[1] then return 0 end \
        redis.call('del', KEYS[1]) return 1";
    let server = Server::start();
    let locks = DistributedLock::new(Arc::new(store(&server).await));
    let mut raw = server.raw();
    let mut theirs = |token: &str| {
        let take = ["SET", "lock:report", token, "NX", "PX", "60000"];
        raw.command(&take) != Reply::Nil
    };
    assert!(theirs("their-token"));
    let ours = locks.try_acquire("report", minutes(1)).await.unwrap();
    assert!(ours.is_none(), "they hold it");
    let mut other = server.raw();
    let freed = other.command(&[
        "EVAL",
        COMPARE_AND_DELETE,
        "1",
        "lock:report",
        "their-token",
    ]);
    assert_eq!(freed, Reply::Number(1));

    let ours = locks.try_acquire("report", minutes(1)).await.unwrap();
    let ours = ours.unwrap();
    assert!(!theirs("their-token"), "we hold it");
    let stored = other.command(&["GET", "lock:report"]).text();
    assert_eq!(stored, ours.token().as_str(), "the value is the bare token");
    let freed = other.command(&[
        "EVAL",
        COMPARE_AND_DELETE,
        "1",
        "lock:report",
        "their-token",
    ]);
    assert_eq!(freed, Reply::Number(0));
    assert!(ours.release().await.unwrap());
    assert!(theirs("their-token"));
    let number = other.command(&["EXISTS", "{lock:report} F"]);
    assert_eq!(
        number,
        Reply::Number(1),
        "the fence is where the documentation says"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn s6_the_last_number_outlives_its_lease_by_a_day_also_when_it_is_renewed() {
    let server = Server::start();
    let store = store(&server).await;
    let (k, token) = (key("k"), LeaseToken::generate());
    let mut raw = server.raw();
    let mut kept = || match raw.command(&["PTTL", "{k} F"]) {
        Reply::Number(left) => left / 1000,
        other => panic!("{other:?}"),
    };
    let short = TimeToLive::new(seconds(10)).unwrap();
    store.try_lease(&k, &token, short).await.unwrap();
    let day = 24 * 3600;
    assert!((day..=day + 10).contains(&kept()));
    let hours = 30 * 3600;
    let long = TimeToLive::new(seconds(hours)).unwrap();
    assert!(store.try_extend(&k, token.as_bytes(), long).await.unwrap());
    let expected = i64::try_from(3 * hours).unwrap();
    assert!((expected - 10..=expected).contains(&kept()));
    assert!(store.try_extend(&k, token.as_bytes(), short).await.unwrap());
    assert!(
        (expected - 10..=expected).contains(&kept()),
        "never shorter"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn s6_a_number_beyond_what_a_double_holds_still_rises_by_one() {
    let server = Server::start();
    let store = store(&server).await;
    let last = u64::try_from(i64::MAX).unwrap() - 1;
    let mut raw = server.raw();
    raw.command(&["SET", "{k} F", &last.to_string()]);
    let token = LeaseToken::generate();
    let number = store.try_lease(&key("k"), &token, life()).await.unwrap();
    assert_eq!(number, Some(last + 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn k4_databases_do_not_wake_each_other() {
    use futures_util::{FutureExt, StreamExt};
    let server = Server::start();
    let [one, two] = [1, 2].map(|database| format!("{}/{database}", server.url()));
    let one = RedisStore::connect(&support::settings(&one)).await.unwrap();
    let two = RedisStore::connect(&support::settings(&two)).await.unwrap();
    let token = LeaseToken::generate();
    let mut hints = two.watch(&key("k")).await.unwrap();
    let mut later = two.watch(&key("later")).await.unwrap();
    one.try_lease(&key("k"), &token, life()).await.unwrap();
    assert!(one.release(&key("k"), &token).await.unwrap());
    // Messages come in order.
    two.try_lease(&key("later"), &token, life()).await.unwrap();
    assert!(two.release(&key("later"), &token).await.unwrap());
    let hint = tokio::time::timeout(seconds(5), later.next()).await;
    assert_eq!(hint.unwrap(), Some(()));
    assert!(hints.next().now_or_never().is_none());
    two.try_lease(&key("k"), &token, life()).await.unwrap();
    assert!(two.release(&key("k"), &token).await.unwrap());
    let hint = tokio::time::timeout(seconds(5), hints.next()).await;
    assert_eq!(hint.unwrap(), Some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_a_lease_without_a_number_is_refused_and_leaves_nothing_behind() {
    let server = Server::start();
    let store = store(&server).await;
    let mut raw = server.raw();
    let (k, token) = (key("lease"), LeaseToken::generate());
    let too_large = u64::MAX.to_string();
    let foreign: [&[&str]; 4] = [
        &["RPUSH", "{lease} F", "a"],
        &["SET", "{lease} F", "no number, but longer than one"],
        &["SET", "{lease} F", "09999999999999999999"],
        &["SET", "{lease} F", &too_large],
    ];
    for command in foreign {
        raw.command(command);
        let error = store.try_lease(&k, &token, life()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::WrongKind, "{command:?}: {error}");
        assert_eq!(raw.command(&["EXISTS", "lease"]), Reply::Number(0));
        let stands = raw.command(&["DUMP", "{lease} F"]);
        raw.command(&["DEL", "{lease} F"]);
        raw.command(command);
        assert_eq!(
            stands,
            raw.command(&["DUMP", "{lease} F"]),
            "it was changed"
        );
        raw.command(&["DEL", "{lease} F"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_a_held_lease_stays_as_it_is_where_its_number_was_replaced() {
    let server = Server::start();
    let store = store(&server).await;
    let mut raw = server.raw();
    let (k, token) = (key("lease"), LeaseToken::generate());
    store.try_lease(&k, &token, life()).await.unwrap();
    let longer = TimeToLive::new(minutes(60)).unwrap();
    for command in [["RPUSH", "{lease} F", "a"], ["SET", "{lease} F", "number"]] {
        raw.command(&["DEL", "{lease} F"]);
        raw.command(&command);
        let again = store.try_lease(&k, &token, longer).await.unwrap_err();
        let next = LeaseToken::generate();
        let relayed = store
            .try_relay(&k, &token, &next, longer)
            .await
            .unwrap_err();
        for error in [again, relayed] {
            assert_eq!(error.code(), ErrorCode::WrongKind, "{command:?}: {error}");
        }
        assert_eq!(raw.command(&["GET", "lease"]).text(), token.as_str());
        let left = store.time_to_live(&k).await.unwrap().unwrap();
        assert!(left <= minutes(10), "{left:?}");
    }
    assert!(store.release(&k, &token).await.unwrap());
}

#[tokio::test]
async fn what_is_sent_at_the_same_time_shares_a_write() {
    let server = Server::start();
    let store = store(&server).await;
    let mut raw = server.raw();
    let mut reads = || {
        let statistics = raw.command(&["INFO", "stats"]).text();
        let mut lines = statistics.lines();
        let line = lines.find_map(|line| line.strip_prefix("total_reads_processed:"));
        line.and_then(|number| number.parse::<u32>().ok()).unwrap()
    };
    let before = reads();
    let keys: Vec<CacheKey> = (0..64).map(|number| key(&format!("k{number}"))).collect();
    let sets = keys.iter().map(|key| store.set(key, "v".into(), long()));
    for answer in futures_util::future::join_all(sets).await {
        answer.unwrap();
    }
    let taken = reads() - before;
    assert!(taken < 16, "64 commands came in {taken} pieces");
}
