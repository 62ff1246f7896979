//! What the store does when the server refuses a command, or a part of one.
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::sync::Arc;

use caching_abstractions::{
    CacheEntryOptions, CacheKey, CacheStore, CachingError, DistributedLock, ErrorCode, LeaseToken,
    TimeToLive, milliseconds, minutes, seconds,
};
use caching_redis::RedisStore;
use redis_support::{Fault, Proxy, Reply, Server};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

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

async fn store(url: &str) -> RedisStore {
    let settings = support::settings(url);
    RedisStore::connect(&settings).await.unwrap()
}

fn configure(server: &Server, name: &str, value: &str) {
    let answer = server.raw().command(&["CONFIG", "SET", name, value]);
    assert_eq!(answer.text(), "OK");
}

/// A server that can be filled, and its store.
async fn never_evicting() -> (Server, RedisStore) {
    let server = Server::with(&[("maxmemory-policy", "noeviction")]);
    let store = store(&server.url()).await;
    (server, store)
}

fn fill(server: &Server) {
    configure(server, "maxmemory", "1");
    let refused = server.raw().command(&["SET", "probe", "v"]).text();
    assert!(refused.starts_with("OOM"), "{refused}");
}

fn stored(server: &Server, key: &str) -> Reply {
    server.raw().command(&["GET", key])
}

async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < seconds(30), "waited in vain: {what}");
        sleep(milliseconds(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p14_a_full_server_takes_a_replacement_that_is_no_larger() {
    let (server, store) = never_evicting().await;
    let k = key("k");
    let marker = TimeToLive::new(minutes(1)).unwrap();
    store.set(&k, "marker".into(), marker.into()).await.unwrap();
    fill(&server);
    for (expected, next) in [("marker", "record"), ("record", "bare"), ("bare", "")] {
        let replaced = store.try_replace(&k, expected.as_bytes(), next.into(), long());
        assert!(replaced.await.unwrap(), "{expected} by {next}");
        assert_eq!(stored(&server, "k").text(), next);
    }
    let left = store.time_to_live(&k).await.unwrap().unwrap();
    assert!(left > minutes(9), "it lives as long as the new value");
}

#[tokio::test(flavor = "multi_thread")]
async fn p14_a_full_server_refuses_a_larger_replacement_and_changes_nothing() {
    let (server, store) = never_evicting().await;
    let k = key("k");
    let marker = TimeToLive::new(minutes(1)).unwrap();
    store.set(&k, "marker".into(), marker.into()).await.unwrap();
    fill(&server);
    // The header of a sliding value needs room as well.
    for (value, options) in [("a record", long()), ("record", sliding())] {
        let replaced = store.try_replace(&k, b"marker", value.into(), options);
        let error = replaced.await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreFull, "{error}");
        assert_eq!(stored(&server, "k").text(), "marker");
    }
    let left = store.time_to_live(&k).await.unwrap().unwrap();
    assert!(left <= minutes(1), "its life is not prolonged");
}

#[tokio::test(flavor = "multi_thread")]
async fn p14_on_a_full_server_a_failed_comparison_changes_nothing() {
    let (server, store) = never_evicting().await;
    let k = key("k");
    let marker = TimeToLive::new(minutes(1)).unwrap();
    store.set(&k, "marker".into(), marker.into()).await.unwrap();
    fill(&server);
    let replaced = store.try_replace(&k, b"another", "record".into(), long());
    assert!(!replaced.await.unwrap());
    let absent = key("absent");
    let replaced = store.try_replace(&absent, b"", "".into(), long());
    assert!(!replaced.await.unwrap());
    let (a, b) = (LeaseToken::generate(), LeaseToken::generate());
    assert_eq!(store.try_relay(&k, &a, &b, life()).await.unwrap(), None);
    assert_eq!(stored(&server, "k").text(), "marker");
    let left = store.time_to_live(&k).await.unwrap().unwrap();
    assert!(left <= minutes(1), "its life is not prolonged");
    assert_eq!(server.raw().command(&["DBSIZE"]), Reply::Number(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn p14_a_full_server_takes_a_replacement_of_a_value_with_a_header() {
    /// What a sliding entry begins with: as a plain value it is stored behind another header.
    const LOOKS_SLIDING: &[u8] = b"\xffxhslid\x01\0\0\0\0\0\0\0\x01v";
    let (server, store) = never_evicting().await;
    let (slides, escaped) = (key("slides"), key("escaped"));
    store.set(&slides, "old".into(), sliding()).await.unwrap();
    let value = LOOKS_SLIDING.to_vec();
    store.set(&escaped, value.into(), long()).await.unwrap();
    fill(&server);
    let replaced = store.try_replace(&slides, b"old", "new".into(), sliding());
    assert!(replaced.await.unwrap(), "sliding by sliding");
    assert_eq!(store.get(&slides).await.unwrap(), Some("new".into()));
    // Its header gives room, which counts as well.
    let replaced = store.try_replace(&slides, b"new", "a plain value".into(), long());
    assert!(replaced.await.unwrap(), "sliding by plain");
    assert_eq!(stored(&server, "slides").text(), "a plain value");

    let mut other = LOOKS_SLIDING.to_vec();
    other.pop();
    other.push(b'w');
    let replaced = store.try_replace(&escaped, LOOKS_SLIDING, other.clone().into(), long());
    assert!(replaced.await.unwrap(), "escaped by escaped");
    let found = store.get(&escaped).await.unwrap();
    assert_eq!(found.as_deref(), Some(&*other));
}

#[tokio::test(flavor = "multi_thread")]
async fn p14_a_full_server_relays_and_prolongs() {
    let (server, store) = never_evicting().await;
    let (k, a, b) = (key("k"), LeaseToken::generate(), LeaseToken::generate());
    let first = store.try_lease(&k, &a, life()).await.unwrap();
    store
        .set(&key("slides"), "v".into(), sliding())
        .await
        .unwrap();
    fill(&server);
    let second = store.try_relay(&k, &a, &b, life()).await.unwrap();
    assert!(second > first, "{second:?} after {first:?}");
    assert_eq!(stored(&server, "k").text(), b.as_str());
    assert!(
        store
            .try_extend(&key("slides"), b"v", life())
            .await
            .unwrap()
    );
    assert_eq!(stored(&server, "slides").text(), "v");
}

/// A store behind a proxy, and a call for a lease that the server applied and whose answer is not
/// passed on.
async fn lease_without_an_answer() -> (Server, Proxy, JoinHandle<Result<(), CachingError>>) {
    let server = Server::with(&[("maxmemory-policy", "noeviction")]);
    let proxy = Proxy::start(server.port());
    let store = store(&proxy.url()).await;
    proxy.set(Fault::SwallowReplies);
    let call = tokio::spawn(async move {
        let token = LeaseToken::generate();
        store.try_lease(&key("k"), &token, life()).await.map(drop)
    });
    eventually("the lease stands", || {
        stored(&server, "k") != Reply::Nil && proxy.lost() > 0
    })
    .await;
    (server, proxy, call)
}

fn assert_unknown(error: &CachingError) {
    assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
    assert!(error.may_have_been_applied(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_lease_that_is_refused_after_a_lost_answer_may_stand() {
    let (server, proxy, call) = lease_without_an_answer().await;
    configure(&server, "min-replicas-to-write", "1");
    proxy.set(Fault::None);
    proxy.break_once();
    let error = call.await.unwrap().unwrap_err();
    assert_unknown(&error);
    assert!(error.to_string().contains("NOREPLICAS"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_lease_that_a_full_server_refuses_after_a_lost_answer_may_stand() {
    let (server, proxy, call) = lease_without_an_answer().await;
    server.raw().command(&["DEL", "k"]);
    fill(&server);
    proxy.set(Fault::None);
    proxy.break_once();
    let error = call.await.unwrap().unwrap_err();
    assert_unknown(&error);
    assert!(error.to_string().contains("OOM"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_lease_that_cannot_be_sent_again_after_a_lost_answer_may_stand() {
    let (_server, proxy, call) = lease_without_an_answer().await;
    proxy.set(Fault::Refuse);
    let error = call.await.unwrap().unwrap_err();
    assert_unknown(&error);
}

#[tokio::test(flavor = "multi_thread")]
async fn l9_a_lock_that_is_refused_after_a_lost_answer_is_taken_out() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let locks = DistributedLock::new(Arc::new(store(&proxy.url()).await));
    proxy.set(Fault::SwallowReplies);
    let call = tokio::spawn(async move { locks.try_acquire("r", minutes(10)).await });
    let stands = || stored(&server, "lock:r") != Reply::Nil;
    eventually("the lock stands", || stands() && proxy.lost() > 0).await;
    configure(&server, "min-replicas-to-write", "1");
    proxy.set(Fault::None);
    proxy.break_once();
    let error = call.await.unwrap().unwrap_err();
    assert_unknown(&error);
    configure(&server, "min-replicas-to-write", "0");
    eventually("nobody holds it, and it goes", || !stands()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l5_a_release_succeeds_without_the_right_to_publish() {
    let server = Server::start();
    let mut raw = server.raw();
    for (name, limits) in [("channels", "resetchannels"), ("command", "-publish")] {
        let user = ["ACL", "SETUSER", name, "on", ">pw", "~*", "+@all", limits];
        assert_eq!(raw.command(&user).text(), "OK");
        let url = format!("redis://{name}:pw@127.0.0.1:{}", server.port());
        let store = store(&url).await;
        let token = LeaseToken::generate();
        let leased = store.try_lease(&key("k"), &token, life()).await;
        assert!(leased.unwrap().is_some());
        assert!(store.release(&key("k"), &token).await.unwrap(), "{name}");
        assert_eq!(stored(&server, "k"), Reply::Nil);
        assert!(!store.release(&key("k"), &token).await.unwrap());
    }
}
