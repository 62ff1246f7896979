//! An expired entry is invisible at once to every primitive (E4).

use caching_abstractions::CacheItem;

use crate::harness::StoreHarness;
use crate::scene::{Client, Scene, bytes, holds, key, keys, left, listed, long, long_life, token};

/// A store in which `k` held `1` until a moment ago.
async fn expired(scene: &Scene) -> Client {
    let store = scene.client().await;
    let added = store.try_add(&key("k"), bytes("1"), scene.lasting(2)).await;
    assert!(added.unwrap());
    scene.pass(3).await;
    store
}

pub async fn e4_get_does_not_see_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    assert_eq!(store.get(&key("k")).await.unwrap(), None);
}

pub async fn e4_get_many_does_not_see_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    store.set(&key("l"), bytes("2"), long()).await.unwrap();
    let found = store.get_many(&keys(["k", "l"])).await.unwrap();
    assert_eq!(found, [None, Some(bytes("2"))]);
}

pub async fn e4_a_read_does_not_revive_an_expired_sliding_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    store.set(&k, bytes("1"), scene.sliding(2)).await.unwrap();
    scene.pass(3).await;
    assert_eq!(store.get(&k).await.unwrap(), None);
    scene.settle().await;
    assert_eq!(
        store.get_many(std::slice::from_ref(&k)).await.unwrap(),
        [None]
    );
    assert_eq!(store.time_to_live(&k).await.unwrap(), None);
    assert!(listed(&store, "").await.is_empty());
}

pub async fn e4_set_writes_over_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    store.set(&key("k"), bytes("2"), long()).await.unwrap();
    holds(&store, &key("k"), "2").await;
    assert!(left(&store, &key("k")).await > scene.ticks(10));
}

pub async fn e4_set_many_writes_over_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    let items = [CacheItem::new(key("k"), "2", long())];
    store.set_many(&items).await.unwrap();
    holds(&store, &key("k"), "2").await;
    assert!(left(&store, &key("k")).await > scene.ticks(10));
}

pub async fn e4_try_add_succeeds_on_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    let added = store.try_add(&key("k"), bytes("2"), long()).await;
    assert!(added.unwrap());
    holds(&store, &key("k"), "2").await;
    assert!(left(&store, &key("k")).await > scene.ticks(10));
}

pub async fn e4_get_or_add_adds_over_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    let stood = store.get_or_add(&key("k"), bytes("2"), long()).await;
    assert_eq!(stood.unwrap(), None);
    holds(&store, &key("k"), "2").await;
    assert!(left(&store, &key("k")).await > scene.ticks(10));
}

pub async fn e4_try_replace_fails_on_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    let replaced = store.try_replace(&key("k"), b"1", bytes("2"), long()).await;
    assert!(!replaced.unwrap());
    assert_eq!(store.get(&key("k")).await.unwrap(), None);
}

pub async fn e4_try_remove_fails_on_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    assert!(!store.try_remove(&key("k"), b"1").await.unwrap());
}

pub async fn e4_try_extend_fails_on_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    let extended = store.try_extend(&key("k"), b"1", long_life()).await;
    assert!(!extended.unwrap());
    assert_eq!(store.get(&key("k")).await.unwrap(), None);
}

pub async fn e4_try_lease_takes_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    let leased = store.try_lease(&key("k"), &token("t"), long_life()).await;
    assert!(leased.unwrap().is_some());
    holds(&store, &key("k"), "t").await;
    assert!(left(&store, &key("k")).await > scene.ticks(10));
}

/// A lease of `k` with the token `t` that ended a moment ago.
async fn expired_lease(scene: &Scene) -> (Client, u64) {
    let store = scene.client().await;
    let leased = store.try_lease(&key("k"), &token("t"), scene.life(2)).await;
    let number = leased.unwrap().unwrap();
    scene.pass(3).await;
    (store, number)
}

pub async fn e4_try_lease_counts_anew_for_its_own_expired_token(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, number) = expired_lease(&scene).await;
    let again = store.try_lease(&key("k"), &token("t"), long_life()).await;
    assert!(again.unwrap().unwrap() > number);
}

pub async fn e4_try_relay_fails_on_an_expired_lease(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, _) = expired_lease(&scene).await;
    let relayed = store
        .try_relay(&key("k"), &token("t"), &token("u"), long_life())
        .await;
    assert_eq!(relayed.unwrap(), None);
    assert_eq!(store.get(&key("k")).await.unwrap(), None);
}

pub async fn e4_release_of_an_expired_lease_is_false(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, _) = expired_lease(&scene).await;
    assert!(!store.release(&key("k"), &token("t")).await.unwrap());
}

pub async fn e4_remove_of_an_expired_entry_is_false(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    assert!(!store.remove(&key("k")).await.unwrap());
}

pub async fn e4_remove_many_of_an_expired_entry_is_false(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    store.set(&key("l"), bytes("2"), long()).await.unwrap();
    let removed = store.remove_many(&keys(["k", "l"])).await.unwrap();
    assert_eq!(removed, [false, true]);
}

pub async fn e4_increment_begins_anew_on_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    assert_eq!(store.increment(&key("k"), 5, long()).await.unwrap(), 5);
    assert!(left(&store, &key("k")).await > scene.ticks(10));
}

pub async fn e4_time_to_live_of_an_expired_entry_is_none(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    assert_eq!(store.time_to_live(&key("k")).await.unwrap(), None);
}

pub async fn e4_keys_does_not_list_an_expired_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = expired(&scene).await;
    store.set(&key("l"), bytes("2"), long()).await.unwrap();
    assert_eq!(listed(&store, "").await, ["l"]);
    assert!(listed(&store, "k").await.is_empty());
}
