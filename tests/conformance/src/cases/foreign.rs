//! A key that holds a value of another kind (S7).

use caching_abstractions::{CacheItem, CachingError, ErrorCode, Result};

use crate::harness::{Gap, StoreHarness};
use crate::scene::{Client, Scene, ability, bytes, holds, key, keys, long, long_life, put, token};

/// A store in which `k` holds a value of another kind; none where there is no such thing.
async fn planted(harness: &dyn StoreHarness) -> Option<(Scene, Client)> {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let planted = scene.plant_foreign_value(&key("k")).await;
    if ability(harness, Gap::ForeignValue, planted).is_some() {
        return Some((scene, store));
    }
    any_bytes_are_a_value(&store).await;
    None
}

/// What a store owes that knows one kind of value only: all bytes are one.
async fn any_bytes_are_a_value(store: &Client) {
    for value in [&b"*2\r\n$1\r\na\r\n"[..], b"\0\0\0", b"", b"\xff\xfe"] {
        let value = bytes::Bytes::copy_from_slice(value);
        store.set(&key("k"), value.clone(), long()).await.unwrap();
        assert_eq!(store.get(&key("k")).await.unwrap(), Some(value));
    }
}

/// Asserts that `result` is a conflict that names the key.
#[track_caller]
fn conflicts<T: std::fmt::Debug>(name: &str, result: Result<T>) {
    match result {
        Ok(answer) => panic!("{name} answers {answer:?} on another kind of value"),
        Err(error) => names_the_key(name, &error),
    }
}

#[track_caller]
fn names_the_key(name: &str, error: &CachingError) {
    assert_eq!(error.code(), ErrorCode::WrongKind, "{name}: {error}");
    assert_eq!(error.parameter("key"), Some("k"), "{name} names the key");
}

pub async fn s7_reads_of_another_kind_of_value_conflict(harness: &dyn StoreHarness) {
    let Some((_scene, store)) = planted(harness).await else {
        return;
    };
    put(&store, &key("l"), "1").await;
    conflicts("get", store.get(&key("k")).await);
    conflicts("get_many", store.get_many(&keys(["l", "k"])).await);
    let stands = store.get_or_add(&key("k"), bytes("1"), long()).await;
    conflicts("get_or_add", stands);
    conflicts("get", store.get(&key("k")).await);
}

pub async fn s7_comparisons_with_another_kind_of_value_conflict(harness: &dyn StoreHarness) {
    let Some((_scene, store)) = planted(harness).await else {
        return;
    };
    let k = key("k");
    for expected in [&b""[..], b"1"] {
        let replaced = store.try_replace(&k, expected, bytes("1"), long()).await;
        conflicts("try_replace", replaced);
        let extended = store.try_extend(&k, expected, long_life()).await;
        conflicts("try_extend", extended);
        conflicts("try_remove", store.try_remove(&k, expected).await);
    }
    conflicts("get", store.get(&k).await);
}

pub async fn s7_leases_on_another_kind_of_value_conflict(harness: &dyn StoreHarness) {
    let Some((_scene, store)) = planted(harness).await else {
        return;
    };
    let (k, a, b) = (key("k"), token("a"), token("b"));
    conflicts("try_lease", store.try_lease(&k, &a, long_life()).await);
    conflicts("try_relay", store.try_relay(&k, &a, &b, long_life()).await);
    conflicts("release", store.release(&k, &a).await);
    conflicts("get", store.get(&k).await);
}

pub async fn s7_increment_of_another_kind_of_value_conflicts(harness: &dyn StoreHarness) {
    let Some((_scene, store)) = planted(harness).await else {
        return;
    };
    let sum = store.increment(&key("k"), 1, long()).await;
    conflicts("increment", sum);
    conflicts("get", store.get(&key("k")).await);
}

/// Where a method needs no value to answer, it may answer; but never "absent".
pub async fn s7_another_kind_of_value_is_never_absent(harness: &dyn StoreHarness) {
    let Some((_scene, store)) = planted(harness).await else {
        return;
    };
    let k = key("k");
    match store.try_add(&k, bytes("1"), long()).await {
        Ok(added) => assert!(!added, "the key is not absent"),
        Err(error) => names_the_key("try_add", &error),
    }
    match store.time_to_live(&k).await {
        Ok(left) => assert!(left.is_some(), "the key is not absent"),
        Err(error) => names_the_key("time_to_live", &error),
    }
    conflicts("get", store.get(&k).await);
    match store.remove(&k).await {
        Ok(removed) => assert!(removed, "the key was there"),
        Err(error) => names_the_key("remove", &error),
    }
}

/// `set` writes whatever was there, or refuses and leaves it.
pub async fn s7_set_over_another_kind_of_value_is_clean(harness: &dyn StoreHarness) {
    let Some((scene, store)) = planted(harness).await else {
        return;
    };
    let items = [
        CacheItem::new(key("l"), "1", long()),
        CacheItem::new(key("k"), "1", long()),
    ];
    match store.set_many(&items).await {
        Ok(()) => holds(&store, &key("k"), "1").await,
        Err(error) => names_the_key("set_many", &error),
    }
    scene.plant_foreign_value(&key("k")).await.unwrap();
    match store.set(&key("k"), bytes("2"), long()).await {
        Ok(()) => holds(&store, &key("k"), "2").await,
        Err(error) => names_the_key("set", &error),
    }
}
