//! `try_lease`, `try_relay` and `release` (spec part 3, L3).

use crate::harness::StoreHarness;
use crate::scene::{
    Client, Scene, absent, bytes, holds, key, left, listed, long, long_life, put, token,
};

/// A lease of `k` by the token `a` for 100 ticks, and its number.
async fn leased(scene: &Scene) -> (Client, u64) {
    let store = scene.client().await;
    let granted = store
        .try_lease(&key("k"), &token("a"), scene.life(100))
        .await;
    (store, granted.unwrap().unwrap())
}

pub async fn try_lease_takes_a_free_key(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, number) = leased(&scene).await;
    assert!(number > 0);
    let left = left(&store, &key("k")).await;
    assert!(
        left <= scene.ticks(100) && left > scene.ticks(90),
        "{left:?}"
    );
}

pub async fn l3_the_value_of_a_lease_is_the_token_itself(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, _) = leased(&scene).await;
    assert_eq!(store.get(&key("k")).await.unwrap(), Some(bytes("a")));
    let odd = "token with spaces, \u{1f512} and \"quotes\"\n";
    let granted = store.try_lease(&key("odd"), &token(odd), long_life()).await;
    assert!(granted.unwrap().is_some());
    assert_eq!(store.get(&key("odd")).await.unwrap(), Some(bytes(odd)));
}

pub async fn try_lease_gives_none_to_another_token(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, _) = leased(&scene).await;
    let other = scene.client().await;
    for text in ["b", "A", "aa", "a "] {
        let granted = other.try_lease(&key("k"), &token(text), long_life()).await;
        assert_eq!(granted.unwrap(), None, "token {text:?}");
    }
    holds(&store, &key("k"), "a").await;
    assert!(left(&store, &key("k")).await <= scene.ticks(100));
}

pub async fn try_lease_gives_the_same_number_to_the_same_token(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (_, number) = leased(&scene).await;
    let other = scene.client().await;
    for _ in 0..3 {
        let again = other
            .try_lease(&key("k"), &token("a"), scene.life(100))
            .await;
        assert_eq!(again.unwrap(), Some(number), "the reply may have been lost");
    }
}

pub async fn try_lease_restarts_the_time_to_live_for_the_same_token(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k, a) = (scene.client().await, key("k"), token("a"));
    let first = store.try_lease(&k, &a, scene.life(5)).await.unwrap();
    scene.pass(3).await;
    let again = store.try_lease(&k, &a, scene.life(20)).await.unwrap();
    assert_eq!(again, first);
    scene.pass(4).await;
    holds(&store, &k, "a").await;
    store.try_lease(&k, &a, scene.life(3)).await.unwrap();
    assert!(
        left(&store, &k).await <= scene.ticks(3),
        "it can be shortened, too"
    );
    scene.pass(4).await;
    absent(&store, &k).await;
}

pub async fn try_lease_gives_none_where_a_plain_value_stands(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    for value in ["v", ""] {
        put(&store, &k, value).await;
        let granted = store.try_lease(&k, &token("a"), long_life()).await;
        assert_eq!(granted.unwrap(), None);
        holds(&store, &k, value).await;
    }
}

/// Another program that takes the lock by adding its own token excludes, and is excluded.
pub async fn l3_a_foreign_token_excludes_and_is_excluded(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let foreign = store.try_add(&k, bytes("foreign"), long()).await;
    assert!(foreign.unwrap());
    let granted = store.try_lease(&k, &token("a"), long_life()).await;
    assert_eq!(granted.unwrap(), None);
    assert!(store.try_remove(&k, b"foreign").await.unwrap());
    let granted = store.try_lease(&k, &token("a"), long_life()).await;
    assert!(granted.unwrap().is_some());
    let foreign = store.try_add(&k, bytes("foreign"), long()).await;
    assert!(!foreign.unwrap());
    holds(&store, &k, "a").await;
}

pub async fn l3_the_plain_primitives_work_on_a_lease(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, _) = leased(&scene).await;
    let k = key("k");
    assert!(!store.try_extend(&k, b"b", long_life()).await.unwrap());
    assert!(store.try_extend(&k, b"a", long_life()).await.unwrap());
    assert!(left(&store, &k).await > scene.ticks(100));
    assert!(!store.try_remove(&k, b"b").await.unwrap());
    assert!(store.try_remove(&k, b"a").await.unwrap());
    assert!(!store.release(&k, &token("a")).await.unwrap());
    absent(&store, &k).await;
}

pub async fn try_relay_hands_a_lease_on(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, number) = leased(&scene).await;
    let (k, a, b) = (key("k"), token("a"), token("b"));
    let relayed = store.try_relay(&k, &a, &b, long_life()).await.unwrap();
    assert!(relayed.unwrap() > number, "the number rises");
    holds(&store, &k, "b").await;
    assert!(
        left(&store, &k).await > scene.ticks(100),
        "the lifetime is new"
    );
    let again = store.try_lease(&k, &b, long_life()).await.unwrap();
    assert_eq!(again, relayed, "the new holder has that number");
}

pub async fn try_relay_shuts_the_old_token_out(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, _) = leased(&scene).await;
    let (k, a, b) = (key("k"), token("a"), token("b"));
    let relayed = store.try_relay(&k, &a, &b, long_life()).await;
    assert!(relayed.unwrap().is_some());
    assert!(!store.release(&k, &a).await.unwrap());
    assert_eq!(store.try_lease(&k, &a, long_life()).await.unwrap(), None);
    let back = store.try_relay(&k, &a, &b, long_life()).await;
    assert_eq!(back.unwrap(), None);
    assert!(store.release(&k, &b).await.unwrap());
}

pub async fn try_relay_gives_none_without_the_token(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, _) = leased(&scene).await;
    let (k, b, c) = (key("k"), token("b"), token("c"));
    assert_eq!(
        store.try_relay(&k, &b, &c, long_life()).await.unwrap(),
        None
    );
    assert_eq!(
        store.try_relay(&k, &b, &b, long_life()).await.unwrap(),
        None
    );
    holds(&store, &k, "a").await;
    assert!(left(&store, &k).await <= scene.ticks(100));
    let nobody = store.try_relay(&key("free"), &b, &c, long_life()).await;
    assert_eq!(nobody.unwrap(), None);
    absent(&store, &key("free")).await;
}

pub async fn release_takes_the_lease_away_once(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, _) = leased(&scene).await;
    assert!(store.release(&key("k"), &token("a")).await.unwrap());
    absent(&store, &key("k")).await;
    assert!(!store.release(&key("k"), &token("a")).await.unwrap());
}

pub async fn release_never_takes_anothers_lease(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, _) = leased(&scene).await;
    let other = scene.client().await;
    for text in ["b", "A", "aa"] {
        assert!(!other.release(&key("k"), &token(text)).await.unwrap());
    }
    holds(&store, &key("k"), "a").await;
    let granted = other.try_lease(&key("k"), &token("b"), long_life()).await;
    assert_eq!(granted.unwrap(), None);
}

pub async fn release_by_another_client_frees_the_key(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, _) = leased(&scene).await;
    let other = scene.client().await;
    assert!(other.release(&key("k"), &token("a")).await.unwrap());
    let granted = store.try_lease(&key("k"), &token("b"), long_life()).await;
    assert!(granted.unwrap().is_some());
}

pub async fn a_lease_ends_with_its_time_to_live(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let granted = store.try_lease(&k, &token("a"), scene.life(5)).await;
    assert!(granted.unwrap().is_some());
    holds(&store, &k, "a").await;
    scene.pass(2).await;
    holds(&store, &k, "a").await;
    scene.pass(4).await;
    let granted = store.try_lease(&k, &token("b"), scene.life(5)).await;
    assert!(
        granted.unwrap().is_some(),
        "a read does not prolong a lease"
    );
    scene.pass(2).await;
    let relayed = store
        .try_relay(&k, &token("b"), &token("c"), scene.life(5))
        .await;
    assert!(relayed.unwrap().is_some());
    scene.pass(6).await;
    absent(&store, &k).await;
}

pub async fn a_lease_leaves_nothing_listed_behind(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, _) = leased(&scene).await;
    assert_eq!(listed(&store, "").await, ["k"]);
    let (k, a, b) = (key("k"), token("a"), token("b"));
    let relayed = store.try_relay(&k, &a, &b, long_life()).await;
    assert!(relayed.unwrap().is_some());
    assert_eq!(listed(&store, "").await, ["k"]);
    assert!(store.release(&k, &b).await.unwrap());
    assert!(
        listed(&store, "").await.is_empty(),
        "its last number is no key"
    );
}
