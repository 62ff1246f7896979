//! `try_add`, `get_or_add`, `try_replace`, `try_remove` and `try_extend`: what they answer and
//! change (spec part 3).

use bytes::Bytes;
use caching_abstractions::CacheStore;

use crate::harness::StoreHarness;
use crate::scene::{Scene, absent, bytes, holds, key, left, long, put};

pub async fn try_add_writes_an_absent_key(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = (scene.client().await, key("k"));
    assert!(store.try_add(&key, bytes("new"), long()).await.unwrap());
    holds(&store, &key, "new").await;
}

pub async fn try_add_leaves_a_present_key_alone(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, key) = (scene.client().await, key("k"));
    let old = scene.lasting(100);
    store.set(&key, bytes("old"), old).await.unwrap();
    assert!(!store.try_add(&key, bytes("new"), long()).await.unwrap());
    holds(&store, &key, "old").await;
    assert!(left(&store, &key).await <= scene.ticks(100));
}
