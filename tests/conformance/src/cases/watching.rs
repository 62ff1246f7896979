//! `watch` and what wakes it (spec part 3).

use caching_abstractions::WakeHints;
use futures_util::{FutureExt, StreamExt};

use crate::harness::StoreHarness;
use crate::scene::{Client, Scene, absent, holds, key, long_life, put, token};

/// Leases `name` and releases it, from `store`.
async fn lease_and_release(store: &Client, name: &str) {
    let (k, t) = (key(name), token("t"));
    let granted = store.try_lease(&k, &t, long_life()).await;
    assert!(granted.unwrap().is_some());
    assert!(store.release(&k, &t).await.unwrap());
}

/// Whether a hint arrives in time.
async fn woken(scene: &Scene, hints: &mut WakeHints) -> bool {
    let hint = tokio::time::timeout(scene.pace().hint, hints.next()).await;
    hint.ok().flatten().is_some()
}

pub async fn release_wakes_a_watcher(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let mut hints = store.watch(&key("k")).await.unwrap();
    lease_and_release(&store, "k").await;
    assert!(woken(&scene, &mut hints).await);
}

pub async fn release_wakes_the_watcher_of_another_client(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (one, two) = (scene.client().await, scene.client().await);
    let (k, t) = (key("k"), token("t"));
    let granted = one.try_lease(&k, &t, long_life()).await;
    assert!(granted.unwrap().is_some());
    let mut hints = two.watch(&k).await.unwrap();
    let waiter = tokio::spawn(async move { hints.next().await });
    scene.settle().await;
    assert!(one.release(&k, &t).await.unwrap());
    let hint = tokio::time::timeout(scene.pace().hint, waiter).await;
    assert_eq!(hint.unwrap().unwrap(), Some(()), "a waiting task is woken");
}

pub async fn each_release_gives_a_hint(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, other) = (scene.client().await, scene.client().await);
    let mut hints = store.watch(&key("k")).await.unwrap();
    for _ in 0..5 {
        lease_and_release(&other, "k").await;
        assert!(woken(&scene, &mut hints).await);
    }
}

pub async fn release_wakes_every_watcher(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (one, two) = (scene.client().await, scene.client().await);
    let mut watchers = [
        one.watch(&key("k")).await.unwrap(),
        one.watch(&key("k")).await.unwrap(),
        two.watch(&key("k")).await.unwrap(),
    ];
    lease_and_release(&one, "k").await;
    for hints in &mut watchers {
        assert!(woken(&scene, hints).await);
    }
}

pub async fn release_after_a_relay_wakes_a_watcher(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let (a, b) = (token("a"), token("b"));
    let granted = store.try_lease(&k, &a, long_life()).await;
    assert!(granted.unwrap().is_some());
    let relayed = store.try_relay(&k, &a, &b, long_life()).await;
    assert!(relayed.unwrap().is_some());
    let mut hints = store.watch(&k).await.unwrap();
    assert!(store.release(&k, &b).await.unwrap());
    assert!(woken(&scene, &mut hints).await);
}

/// A hint comes after the release took effect, so who is woken finds the key free.
pub async fn a_hint_comes_when_the_key_is_free(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, other, k) = (scene.client().await, scene.client().await, key("k"));
    let granted = store.try_lease(&k, &token("t"), long_life()).await;
    assert!(granted.unwrap().is_some());
    let mut hints = store.watch(&k).await.unwrap();
    scene.settle().await;
    // A hint that comes with the registration is nobody's release.
    while let Some(Some(())) = hints.next().now_or_never() {}
    let release = tokio::spawn(async move { other.release(&key("k"), &token("t")).await });
    assert!(woken(&scene, &mut hints).await);
    let granted = store.try_lease(&k, &token("u"), long_life()).await;
    assert!(granted.unwrap().is_some());
    assert!(release.await.unwrap().unwrap());
}

pub async fn a_dropped_watch_disturbs_nobody(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let first = store.watch(&key("k")).await.unwrap();
    let mut second = store.watch(&key("k")).await.unwrap();
    drop(first);
    lease_and_release(&store, "k").await;
    assert!(woken(&scene, &mut second).await);
    drop(second);
    lease_and_release(&store, "k").await;
    let mut third = store.watch(&key("k")).await.unwrap();
    lease_and_release(&store, "k").await;
    assert!(woken(&scene, &mut third).await);
}

pub async fn watches_of_several_keys_stand_beside_each_other(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let mut a = store.watch(&key("a")).await.unwrap();
    let mut b = store.watch(&key("b")).await.unwrap();
    lease_and_release(&store, "b").await;
    assert!(woken(&scene, &mut b).await);
    lease_and_release(&store, "a").await;
    assert!(woken(&scene, &mut a).await);
}

pub async fn a_watch_changes_nothing(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    put(&store, &key("k"), "v").await;
    let hints = store.watch(&key("k")).await.unwrap();
    let free = store.watch(&key("free")).await.unwrap();
    holds(&store, &key("k"), "v").await;
    absent(&store, &key("free")).await;
    drop((hints, free));
    holds(&store, &key("k"), "v").await;
}

/// A slow watcher misses hints at most; it holds nobody up.
pub async fn a_watcher_that_does_not_listen_holds_nobody_up(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let mut hints = store.watch(&key("k")).await.unwrap();
    let many = async {
        for _ in 0..100 {
            lease_and_release(&store, "k").await;
        }
    };
    let done = tokio::time::timeout(scene.pace().limit * 2, many).await;
    assert!(done.is_ok(), "a release waits for the watcher");
    assert!(woken(&scene, &mut hints).await);
}
