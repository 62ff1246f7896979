//! `try_add`, `get_or_add`, `try_replace`, `try_remove` and `try_extend`: what they answer and
//! change (spec part 3).

use bytes::Bytes;

use crate::harness::StoreHarness;
use crate::scene::{Client, Scene, absent, bytes, holds, key, left, long, long_life, put};

/// A key `k` that holds `old` for 100 ticks.
async fn old(scene: &Scene) -> (Client, caching_abstractions::CacheKey) {
    let (store, key) = (scene.client().await, key("k"));
    let written = store.set(&key, bytes("old"), scene.lasting(100)).await;
    written.unwrap();
    (store, key)
}

/// Asserts that `k` is as [`old`] wrote it.
async fn unchanged(scene: &Scene, store: &Client) {
    holds(store, &key("k"), "old").await;
    assert!(left(store, &key("k")).await <= scene.ticks(100));
}

pub async fn try_add_writes_an_absent_key(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = (scene.client().await, key("k"));
    assert!(store.try_add(&key, bytes("new"), long()).await.unwrap());
    holds(&store, &key, "new").await;
}

pub async fn try_add_leaves_a_present_key_alone(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    assert!(!store.try_add(&key, bytes("new"), long()).await.unwrap());
    unchanged(&scene, &store).await;
}

pub async fn try_add_takes_an_empty_value_for_a_present_one(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = (scene.client().await, key("k"));
    assert!(store.try_add(&key, Bytes::new(), long()).await.unwrap());
    assert!(!store.try_add(&key, bytes("new"), long()).await.unwrap());
    holds(&store, &key, "").await;
}

pub async fn try_add_writes_again_after_a_removal(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    assert!(store.remove(&key).await.unwrap());
    assert!(store.try_add(&key, bytes("new"), long()).await.unwrap());
    holds(&store, &key, "new").await;
}

pub async fn get_or_add_writes_an_absent_key_and_gives_none(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = (scene.client().await, key("k"));
    let standing = store.get_or_add(&key, bytes("new"), long()).await.unwrap();
    assert_eq!(standing, None);
    holds(&store, &key, "new").await;
}

pub async fn get_or_add_gives_what_stands_there_and_leaves_it(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    let standing = store.get_or_add(&key, bytes("new"), long()).await.unwrap();
    assert_eq!(standing, Some(bytes("old")));
    unchanged(&scene, &store).await;
}

pub async fn get_or_add_gives_an_empty_value_that_stands_there(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = (scene.client().await, key("k"));
    let added = store.get_or_add(&key, Bytes::new(), long()).await.unwrap();
    assert_eq!(added, None);
    let standing = store.get_or_add(&key, bytes("new"), long()).await.unwrap();
    assert_eq!(standing, Some(Bytes::new()));
}

pub async fn try_replace_swaps_the_expected_value(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    let replaced = store.try_replace(&key, b"old", bytes("new"), long()).await;
    assert!(replaced.unwrap());
    holds(&store, &key, "new").await;
}

pub async fn try_replace_leaves_another_value_alone(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    for other in ["ol", "old ", "OLD", "", "new"] {
        let replaced = store
            .try_replace(&key, other.as_bytes(), bytes("new"), long())
            .await;
        assert!(!replaced.unwrap(), "{other:?} is not what stands there");
    }
    unchanged(&scene, &store).await;
}

pub async fn try_replace_fails_on_an_absent_key(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = (scene.client().await, key("k"));
    for expected in [&b"old"[..], b""] {
        let replaced = store
            .try_replace(&key, expected, bytes("new"), long())
            .await;
        assert!(!replaced.unwrap());
    }
    absent(&store, &key).await;
}

pub async fn try_replace_takes_empty_values_on_both_sides(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    let emptied = store.try_replace(&key, b"old", Bytes::new(), long()).await;
    assert!(emptied.unwrap());
    holds(&store, &key, "").await;
    let filled = store.try_replace(&key, b"", bytes("new"), long()).await;
    assert!(filled.unwrap());
    holds(&store, &key, "new").await;
}

pub async fn try_replace_compares_bytes_that_are_no_text(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = (scene.client().await, key("k"));
    let old = Bytes::from_static(&[0, 0xff, b'\n', 0x80, 0]);
    store.set(&key, old.clone(), long()).await.unwrap();
    for other in [&old[..4], &[0, 0xfe, b'\n', 0x80, 0], &[]] {
        let replaced = store.try_replace(&key, other, bytes("new"), long()).await;
        assert!(!replaced.unwrap());
    }
    let replaced = store.try_replace(&key, &old, bytes("new"), long()).await;
    assert!(replaced.unwrap());
}

pub async fn try_replace_with_the_same_value_takes_the_new_lifetime(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    let replaced = store.try_replace(&key, b"old", bytes("old"), long()).await;
    assert!(replaced.unwrap());
    assert!(left(&store, &key).await > scene.ticks(100));
}

pub async fn try_remove_takes_the_expected_value_away(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    assert!(store.try_remove(&key, b"old").await.unwrap());
    absent(&store, &key).await;
    assert!(!store.try_remove(&key, b"old").await.unwrap());
}

pub async fn try_remove_leaves_another_value_alone(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    for other in [&b"ol"[..], b"olds", b"OLD", b""] {
        assert!(!store.try_remove(&key, other).await.unwrap());
    }
    unchanged(&scene, &store).await;
}

pub async fn try_remove_tells_empty_from_absent(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = (scene.client().await, key("k"));
    assert!(!store.try_remove(&key, b"").await.unwrap());
    put(&store, &key, "").await;
    assert!(!store.try_remove(&key, b"x").await.unwrap());
    assert!(store.try_remove(&key, b"").await.unwrap());
    absent(&store, &key).await;
}

pub async fn try_extend_prolongs_the_expected_value(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    assert!(store.try_extend(&key, b"old", long_life()).await.unwrap());
    assert!(left(&store, &key).await > scene.ticks(100));
    holds(&store, &key, "old").await;
}

pub async fn try_extend_can_shorten_a_life(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = (scene.client().await, key("k"));
    put(&store, &key, "old").await;
    let extended = store.try_extend(&key, b"old", scene.life(3)).await;
    assert!(extended.unwrap());
    assert!(left(&store, &key).await <= scene.ticks(3));
    scene.pass(4).await;
    absent(&store, &key).await;
}

pub async fn try_extend_leaves_another_value_alone(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    for other in [&b"ol"[..], b"olds", b"OLD", b""] {
        assert!(!store.try_extend(&key, other, long_life()).await.unwrap());
    }
    unchanged(&scene, &store).await;
}

pub async fn try_extend_never_brings_an_entry_back(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = old(&scene).await;
    assert!(store.remove(&key).await.unwrap());
    for expected in [&b"old"[..], b""] {
        assert!(!store.try_extend(&key, expected, long_life()).await.unwrap());
    }
    absent(&store, &key).await;
}
