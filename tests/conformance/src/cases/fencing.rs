//! Fencing numbers (S6).

use std::time::Duration;

use caching_abstractions::{LeaseToken, hours};

use crate::harness::{Gap, StoreHarness};
use crate::scene::{Client, Scene, ability, absent, key, left, long_life, put, token};

/// The number of a new lease of `k`, which is free.
async fn number(store: &Client, name: &str) -> u64 {
    let granted = store
        .try_lease(&key(name), &LeaseToken::generate(), long_life())
        .await;
    granted.unwrap().unwrap()
}

pub async fn s6_numbers_rise_after_a_release(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k, a) = (scene.client().await, key("k"), token("a"));
    let mut last = 0;
    for _ in 0..20 {
        let next = store.try_lease(&k, &a, long_life()).await.unwrap().unwrap();
        assert!(next > last, "{next} after {last}");
        assert!(store.release(&k, &a).await.unwrap());
        last = next;
    }
}

pub async fn s6_numbers_rise_after_expiry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k, a) = (scene.client().await, key("k"), token("a"));
    let mut last = 0;
    for _ in 0..3 {
        let granted = store.try_lease(&k, &a, scene.life(1)).await;
        let next = granted.unwrap().unwrap();
        assert!(next > last, "{next} after {last}");
        last = next;
        scene.pass(2).await;
    }
}

pub async fn s6_numbers_rise_with_each_relay(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let mut holder = token("0");
    let granted = store.try_lease(&k, &holder, long_life()).await;
    let mut last = granted.unwrap().unwrap();
    for round in 1..20 {
        let heir = token(&round.to_string());
        let relayed = store.try_relay(&k, &holder, &heir, long_life()).await;
        let next = relayed.unwrap().unwrap();
        assert!(next > last, "{next} after {last}");
        (last, holder) = (next, heir);
    }
    assert!(store.release(&k, &holder).await.unwrap());
    assert!(number(&store, "k").await > last);
}

pub async fn s6_numbers_rise_however_the_lease_went(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let first = number(&store, "k").await;
    assert!(store.remove(&k).await.unwrap());
    let second = number(&store, "k").await;
    assert!(second > first, "after remove");
    assert_eq!(
        store.remove_many(std::slice::from_ref(&k)).await.unwrap(),
        [true]
    );
    let third = number(&store, "k").await;
    assert!(third > second, "after remove_many");
    put(&store, &k, "v").await;
    assert!(store.try_remove(&k, b"v").await.unwrap());
    let fourth = number(&store, "k").await;
    assert!(fourth > third, "after set and try_remove");
}

pub async fn s6_numbers_rise_for_every_client(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = [scene.client().await, scene.client().await];
    let (k, a) = (key("k"), token("a"));
    let mut last = 0;
    for round in 0..20 {
        let client = &clients[round % 2];
        let granted = client.try_lease(&k, &a, long_life()).await;
        let next = granted.unwrap().unwrap();
        assert!(next > last, "{next} after {last}");
        assert!(clients[(round + 1) % 2].release(&k, &a).await.unwrap());
        last = next;
    }
}

pub async fn s6_a_failed_lease_uses_no_number_up(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k, a) = (scene.client().await, key("k"), token("a"));
    let granted = store.try_lease(&k, &a, long_life()).await.unwrap();
    let refused = store.try_lease(&k, &token("b"), long_life()).await;
    assert_eq!(refused.unwrap(), None);
    let again = store.try_lease(&k, &a, long_life()).await.unwrap();
    assert_eq!(again, granted, "the holder's number is still its own");
}

/// The clock in microseconds is a lower bound, so a store that comes back empty goes on above.
pub async fn s6_numbers_rise_after_the_store_lost_its_data(harness: &dyn StoreHarness) {
    let mut scene = Scene::start(harness).await;
    let store = scene.client().await;
    let before = number(&store, "k").await;
    let restarted = scene.running().restart_empty().await;
    if ability(harness, Gap::Restart, restarted).is_none() {
        // Nothing is lost, then: the lease stands.
        assert!(left(&store, &key("k")).await > Duration::ZERO);
        return;
    }
    scene.pass(1).await;
    let store = scene.client().await;
    absent(&store, &key("k")).await;
    let after = number(&store, "k").await;
    assert!(after > before, "{after} after {before}");
}

/// While the last number is kept, a clock that steps back does not matter.
pub async fn s6_numbers_rise_though_the_clock_steps_back(harness: &dyn StoreHarness) {
    let mut scene = Scene::start(harness).await;
    let (store, k, a) = (scene.client().await, key("k"), token("a"));
    let granted = store.try_lease(&k, &a, long_life()).await;
    let before = granted.unwrap().unwrap();
    assert!(store.release(&k, &a).await.unwrap());
    let stepped = scene.running().step_wall_clock_back(hours(100)).await;
    if ability(harness, Gap::Clock, stepped).is_some() {
        // The number outlives the lease by a day; the lease could have lasted an hour.
        scene.pass_time(hours(24)).await;
    }
    let after = number(&store, "k").await;
    assert!(after > before, "{after} after {before}");
}
