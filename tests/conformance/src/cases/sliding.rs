//! What restarts the clock of a sliding entry, and what does not (E2).

use caching_abstractions::{CacheEntryOptions, CacheStoreExt};

use super::expiration::{create_all, overwrite_all};
use crate::harness::StoreHarness;
use crate::scene::{Client, Scene, absent, bytes, holds, key, keys, long, long_life, token};

pub async fn e2_get_restarts_the_clock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    store.set(&k, bytes("v"), scene.sliding(6)).await.unwrap();
    for _ in 0..4 {
        scene.pass(3).await;
        assert!(
            store.get(&k).await.unwrap().is_some(),
            "it was read in time"
        );
    }
    scene.pass(7).await;
    absent(&store, &k).await;
}

pub async fn e2_get_many_restarts_the_clock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, pair) = (scene.client().await, keys(["a", "b"]));
    for k in &pair {
        store.set(k, bytes("v"), scene.sliding(6)).await.unwrap();
    }
    for _ in 0..4 {
        scene.pass(3).await;
        let found = store.get_many(&pair).await.unwrap();
        assert!(found.iter().all(Option::is_some), "they were read in time");
    }
    scene.pass(7).await;
    assert_eq!(store.get_many(&pair).await.unwrap(), [None, None]);
}

pub async fn e2_another_clients_read_restarts_the_clock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (one, two, k) = (scene.client().await, scene.client().await, key("k"));
    one.set(&k, bytes("v"), scene.sliding(6)).await.unwrap();
    for _ in 0..3 {
        scene.pass(3).await;
        holds(&two, &k, "v").await;
    }
    holds(&one, &k, "v").await;
}

pub async fn e2_an_unread_entry_ends_after_its_period(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let names = create_all(&store, scene.sliding(6)).await;
    scene.pass(7).await;
    for key in &names {
        absent(&store, key).await;
    }
}

pub async fn e2_whatever_writes_an_entry_can_make_it_sliding(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let created = create_all(&store, scene.sliding(6)).await;
    let later = scene.client_of("later").await;
    let overwritten = overwrite_all(&later, long(), scene.sliding(6)).await;
    for _ in 0..3 {
        scene.pass(3).await;
        for key in &created {
            holds(&store, key, "1").await;
        }
        for key in &overwritten {
            holds(&later, key, "1").await;
        }
    }
}

/// A sliding entry `k` in the middle of its period.
async fn half_over(scene: &Scene) -> Client {
    let store = scene.client().await;
    let options: CacheEntryOptions = scene.sliding(8);
    store.set(&key("k"), bytes("1"), options).await.unwrap();
    scene.pass(4).await;
    store
}

/// Asserts that the period of [`half_over`] was not restarted.
async fn not_restarted(scene: &Scene, store: &Client) {
    scene.settle().await;
    let left = store.time_to_live(&key("k")).await.unwrap().unwrap();
    assert!(left <= scene.ticks(5), "the clock was restarted: {left:?}");
    scene.pass(5).await;
    absent(store, &key("k")).await;
}

pub async fn e2_a_failed_try_add_is_no_read(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = half_over(&scene).await;
    let added = store.try_add(&key("k"), bytes("2"), scene.sliding(8)).await;
    assert!(!added.unwrap());
    not_restarted(&scene, &store).await;
}

pub async fn e2_get_or_add_is_no_read(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = half_over(&scene).await;
    let stands = store
        .get_or_add(&key("k"), bytes("2"), scene.sliding(8))
        .await;
    assert_eq!(stands.unwrap(), Some(bytes("1")));
    not_restarted(&scene, &store).await;
}

pub async fn e2_a_failed_try_replace_extends_nothing(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = half_over(&scene).await;
    let replaced = store.try_replace(&key("k"), b"0", bytes("2"), long()).await;
    assert!(!replaced.unwrap());
    not_restarted(&scene, &store).await;
}

pub async fn e2_a_failed_try_remove_extends_nothing(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = half_over(&scene).await;
    assert!(!store.try_remove(&key("k"), b"0").await.unwrap());
    assert!(!store.release(&key("k"), &token("0")).await.unwrap());
    not_restarted(&scene, &store).await;
}

pub async fn e2_a_failed_try_extend_extends_nothing(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = half_over(&scene).await;
    let extended = store.try_extend(&key("k"), b"0", long_life()).await;
    assert!(!extended.unwrap());
    not_restarted(&scene, &store).await;
}

pub async fn e2_a_failed_lease_extends_nothing(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = half_over(&scene).await;
    let leased = store.try_lease(&key("k"), &token("t"), long_life()).await;
    assert_eq!(leased.unwrap(), None);
    let relayed = store
        .try_relay(&key("k"), &token("t"), &token("u"), long_life())
        .await;
    assert_eq!(relayed.unwrap(), None);
    not_restarted(&scene, &store).await;
}

pub async fn e2_increment_of_a_standing_number_is_no_read(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = half_over(&scene).await;
    let sum = store.increment(&key("k"), 1, scene.sliding(8)).await;
    assert_eq!(sum.unwrap(), 2);
    not_restarted(&scene, &store).await;
}

pub async fn e2_increment_leaves_an_entry_sliding(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = half_over(&scene).await;
    assert_eq!(store.increment(&key("k"), 1, long()).await.unwrap(), 2);
    holds(&store, &key("k"), "2").await;
    scene.pass(6).await;
    holds(&store, &key("k"), "2").await;
    scene.pass(9).await;
    absent(&store, &key("k")).await;
}

pub async fn e2_keys_is_no_read(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = half_over(&scene).await;
    assert_eq!(store.sorted_keys("").await.unwrap(), keys(["k"]));
    not_restarted(&scene, &store).await;
}

pub async fn e2_time_to_live_is_no_read(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = half_over(&scene).await;
    assert!(store.time_to_live(&key("k")).await.unwrap().is_some());
    not_restarted(&scene, &store).await;
}

pub async fn e2_watch_is_no_read(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = half_over(&scene).await;
    let hints = store.watch(&key("k")).await.unwrap();
    drop(hints);
    not_restarted(&scene, &store).await;
}
