//! A store that cannot be reached (S3).

use std::time::Duration;

use caching_abstractions::{CacheItem, ErrorCode, Result};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt, join_all};
use tokio::time::Instant;

use crate::harness::{Gap, StoreHarness};
use crate::scene::{
    Client, Scene, ability, absent, bytes, holds, key, long, long_life, put, token,
};

/// Every operation of a store, by name.
fn everything(store: &Client) -> Vec<(&'static str, BoxFuture<'static, Result<()>>)> {
    macro_rules! each {
        ($($name:ident($($argument:expr),*)),* $(,)?) => {
            vec![$({
                let store = store.clone();
                let call = async move { store.$name($($argument),*).await.map(|_| ()) };
                (stringify!($name), call.boxed())
            }),*]
        };
    }
    let mut listing = store.keys("");
    let listed = async move {
        match listing.next().await {
            Some(Err(error)) => Err(error),
            answer => panic!("keys lists {answer:?} while the store is away"),
        }
    };
    let mut calls = each![
        get(&key("k")),
        get_many(&[key("k"), key("l")]),
        set(&key("k"), bytes("2"), long()),
        set_many(&[CacheItem::new(key("k"), "2", long())]),
        try_add(&key("free"), bytes("2"), long()),
        get_or_add(&key("free"), bytes("2"), long()),
        try_replace(&key("k"), b"1", bytes("2"), long()),
        try_remove(&key("k"), b"1"),
        try_extend(&key("k"), b"1", long_life()),
        try_lease(&key("free"), &token("a"), long_life()),
        try_relay(&key("lease"), &token("a"), &token("b"), long_life()),
        release(&key("lease"), &token("a")),
        watch(&key("k")),
        remove(&key("k")),
        remove_many(&[key("k"), key("l")]),
        increment(&key("n"), 1, long()),
        time_to_live(&key("k")),
        ping(),
    ];
    calls.push(("keys", listed.boxed()));
    calls
}

/// What a store that is never out of reach owes: an answer to everything.
async fn always_answers(scene: &Scene) {
    let store = scene.client().await;
    for (name, call) in everything(&store) {
        if name != "keys" {
            assert!(call.await.is_ok(), "{name}");
        }
    }
}

pub async fn s3_an_unreachable_store_is_unavailable_for_every_operation(
    harness: &dyn StoreHarness,
) {
    let mut scene = Scene::start(harness).await;
    let store = scene.client().await;
    put(&store, &key("k"), "1").await;
    let cut = scene.running().cut().await;
    if ability(harness, Gap::Outage, cut).is_none() {
        return always_answers(&scene).await;
    }
    let limit = scene.pace().limit;
    let calls = everything(&store)
        .into_iter()
        .map(|(name, call)| async move {
            let answer = tokio::time::timeout(limit, call).await;
            let answer = answer.unwrap_or_else(|_| panic!("{name} hangs"));
            let error = answer.expect_err(name);
            assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{name}: {error}");
            assert!(error.retry_after().is_some(), "{name}: a retry is worth it");
        });
    join_all(calls).await;
    scene.running().mend().await;
}

/// Waits until the store answers `client` again.
async fn recovered(scene: &Scene, client: &Client) {
    let deadline = Instant::now() + scene.pace().recovery;
    while let Err(error) = client.ping().await {
        assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
        assert!(Instant::now() < deadline, "the client does not come back");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub async fn s3_a_client_comes_back_by_itself(harness: &dyn StoreHarness) {
    let mut scene = Scene::start(harness).await;
    let store = scene.client().await;
    put(&store, &key("k"), "1").await;
    let cut = scene.running().cut().await;
    if ability(harness, Gap::Outage, cut).is_none() {
        return always_answers(&scene).await;
    }
    assert!(store.ping().await.is_err());
    scene.running().mend().await;
    recovered(&scene, &store).await;
    holds(&store, &key("k"), "1").await;
    assert!(store.try_add(&key("l"), bytes("2"), long()).await.unwrap());
    holds(&scene.client().await, &key("l"), "2").await;
}

pub async fn s3_a_client_made_during_an_outage_works_after_it(harness: &dyn StoreHarness) {
    let mut scene = Scene::start(harness).await;
    let cut = scene.running().cut().await;
    if ability(harness, Gap::Outage, cut).is_none() {
        return always_answers(&scene).await;
    }
    let store = scene.client().await;
    let error = store.get(&key("k")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
    scene.running().mend().await;
    recovered(&scene, &store).await;
    put(&store, &key("k"), "1").await;
    holds(&store, &key("k"), "1").await;
}

/// What was refused during an outage is not done after it.
pub async fn s3_nothing_is_sent_late_after_an_outage(harness: &dyn StoreHarness) {
    let mut scene = Scene::start(harness).await;
    let store = scene.client().await;
    put(&store, &key("k"), "1").await;
    let cut = scene.running().cut().await;
    if ability(harness, Gap::Outage, cut).is_none() {
        return always_answers(&scene).await;
    }
    let set = store.set(&key("k"), bytes("2"), long()).await;
    assert!(set.is_err());
    let added = store.try_add(&key("free"), bytes("2"), long()).await;
    assert!(added.is_err());
    assert!(store.increment(&key("n"), 1, long()).await.is_err());
    scene.running().mend().await;
    recovered(&scene, &store).await;
    scene.settle().await;
    holds(&store, &key("k"), "1").await;
    absent(&store, &key("free")).await;
    absent(&store, &key("n")).await;
}

pub async fn s3_a_watch_works_after_an_outage(harness: &dyn StoreHarness) {
    let mut scene = Scene::start(harness).await;
    let store = scene.client().await;
    let cut = scene.running().cut().await;
    if ability(harness, Gap::Outage, cut).is_none() {
        return always_answers(&scene).await;
    }
    assert!(store.ping().await.is_err());
    scene.running().mend().await;
    recovered(&scene, &store).await;
    let (k, t) = (key("k"), token("t"));
    let mut hints = store.watch(&k).await.unwrap();
    let granted = store.try_lease(&k, &t, long_life()).await;
    assert!(granted.unwrap().is_some());
    assert!(store.release(&k, &t).await.unwrap());
    let hint = tokio::time::timeout(scene.pace().hint, hints.next()).await;
    assert_eq!(hint.unwrap(), Some(()));
}
