//! Dropping the future of an operation (S5).

use std::time::Duration;

use caching_abstractions::{CacheItem, CacheKey};
use futures_util::future::{BoxFuture, FutureExt};

use crate::harness::StoreHarness;
use crate::scene::{Client, Scene, bytes, holds, key, keys, long, long_life, put, text, token};

/// An operation on `k`, and what it leaves if it takes place.
struct Write {
    name: &'static str,
    before: Option<&'static str>,
    after: Option<&'static str>,
    call: fn(Client, CacheKey) -> BoxFuture<'static, ()>,
}

macro_rules! write {
    ($before:expr => $after:expr, $name:ident($($argument:expr),*)) => {
        Write {
            name: stringify!($name),
            before: $before,
            after: $after,
            call: |store, k| async move { let _ = store.$name(&k, $($argument),*).await; }.boxed(),
        }
    };
}

/// Polls `write` once, drops it, and asserts that it took place wholly or not at all, and that
/// nothing happens later.
async fn dropped(scene: &Scene, store: &Client, write: &Write) {
    let (k, name) = (key("k"), write.name);
    restore(store, &k, write.before).await;
    let _ = (write.call)(store.clone(), k.clone()).now_or_never();
    scene.settle().await;
    let seen = text(store, &k).await;
    let whole = seen.as_deref() == write.before || seen.as_deref() == write.after;
    assert!(whole, "a dropped {name} leaves {seen:?}");
    restore(store, &k, write.before).await;
    scene.settle().await;
    let seen = text(store, &k).await;
    assert_eq!(
        seen.as_deref(),
        write.before,
        "a dropped {name} happens later"
    );
}

async fn restore(store: &Client, k: &CacheKey, value: Option<&str>) {
    match value {
        Some(value) => put(store, k, value).await,
        None => {
            store.remove(k).await.unwrap();
        }
    }
}

pub async fn s5_a_dropped_write_takes_place_wholly_or_not_at_all(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let writes = [
        write!(Some("old") => Some("new"), set(bytes("new"), long())),
        write!(None => Some("new"), set(bytes("new"), long())),
        write!(None => Some("new"), try_add(bytes("new"), long())),
        write!(None => Some("new"), get_or_add(bytes("new"), long())),
        write!(Some("old") => Some("new"), try_replace(b"old", bytes("new"), long())),
        write!(Some("7") => Some("8"), increment(1, long())),
        write!(None => Some("1"), increment(1, long())),
    ];
    for write in &writes {
        dropped(&scene, &store, write).await;
    }
}

pub async fn s5_a_dropped_removal_takes_place_wholly_or_not_at_all(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let writes = [
        write!(Some("old") => None, remove()),
        write!(Some("old") => None, try_remove(b"old")),
        write!(Some("old") => None, release(&token("old"))),
    ];
    for write in &writes {
        dropped(&scene, &store, write).await;
    }
}

pub async fn s5_a_dropped_lease_takes_place_wholly_or_not_at_all(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let writes = [
        write!(None => Some("t"), try_lease(&token("t"), long_life())),
        write!(Some("t") => Some("u"), try_relay(&token("t"), &token("u"), long_life())),
    ];
    for write in &writes {
        dropped(&scene, &store, write).await;
    }
    // A dropped lease that was granted has a number; it can be asked for again.
    let (k, t) = (key("k"), token("t"));
    restore(&store, &k, None).await;
    let _ = store.try_lease(&k, &t, long_life()).now_or_never();
    scene.settle().await;
    let number = store.try_lease(&k, &t, long_life()).await.unwrap();
    assert!(number.is_some());
    assert_eq!(store.try_lease(&k, &t, long_life()).await.unwrap(), number);
}

pub async fn s5_a_dropped_try_extend_takes_place_wholly_or_not_at_all(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let short = scene.lasting(1000);
    store.set(&k, bytes("v"), short).await.unwrap();
    let _ = store.try_extend(&k, b"v", long_life()).now_or_never();
    scene.settle().await;
    holds(&store, &k, "v").await;
    store.set(&k, bytes("v"), short).await.unwrap();
    scene.settle().await;
    let left = store.time_to_live(&k).await.unwrap().unwrap();
    assert!(
        left <= scene.ticks(1000),
        "a dropped try_extend happens later"
    );
}

pub async fn s5_a_dropped_batch_leaves_every_key_whole(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let names = keys(["a", "b", "c"]);
    let item = |key: &CacheKey, value| CacheItem::new(key.clone(), bytes(value), long());
    let old: Vec<_> = names.iter().map(|key| item(key, "old")).collect();
    let new: Vec<_> = names.iter().map(|key| item(key, "new")).collect();
    store.set_many(&old).await.unwrap();
    let _ = store.set_many(&new).now_or_never();
    scene.settle().await;
    for value in store.get_many(&names).await.unwrap() {
        assert!(value == Some(bytes("old")) || value == Some(bytes("new")));
    }
    store.set_many(&old).await.unwrap();
    scene.settle().await;
    for key in &names {
        holds(&store, key, "old").await;
    }
    let _ = store.remove_many(&names).now_or_never();
    scene.settle().await;
    store.set_many(&old).await.unwrap();
    scene.settle().await;
    for key in &names {
        holds(&store, key, "old").await;
    }
}

/// Whenever an increment is cancelled, it counts once or not at all, and never afterwards.
pub async fn s5_cancelled_increments_count_at_most_once(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("n"));
    let (mut done, mut unknown) = (0, 0);
    for round in 0..60 {
        let call = store.increment(&k, 1, long());
        let answer = if round % 2 == 0 {
            call.now_or_never()
        } else {
            let patience = Duration::from_micros(round * 50);
            tokio::time::timeout(patience, call).await.ok()
        };
        match answer {
            Some(sum) => {
                sum.unwrap();
                done += 1;
            }
            None => unknown += 1,
        }
    }
    scene.settle().await;
    let sum = store.increment(&k, 0, long()).await.unwrap();
    assert!(
        sum >= done && sum <= done + unknown,
        "{sum} of {done} and {unknown}"
    );
    scene.settle().await;
    assert_eq!(store.increment(&k, 0, long()).await.unwrap(), sum);
}

pub async fn s5_a_client_works_on_after_dropped_calls(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    for round in 0..200 {
        let value = bytes(&round.to_string());
        let _ = store.get(&key("k")).now_or_never();
        let _ = store
            .set(&key("dropped"), value.clone(), long())
            .now_or_never();
        // The answer of a dropped call must not be taken for the next one's.
        store.set(&key("k"), value.clone(), long()).await.unwrap();
        assert_eq!(store.get(&key("k")).await.unwrap(), Some(value));
    }
}
