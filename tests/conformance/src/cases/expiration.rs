//! How entries expire, and what a write does to an expiration (E1, E3, E5).

use std::time::Duration;

use caching_abstractions::{CacheEntryOptions, CacheItem, CacheKey, TimeToLive, days};

use crate::harness::{Setup, StoreHarness};
use crate::scene::{Client, Scene, absent, bytes, holds, key, left, long, long_life, put, token};

/// Writes an absent key with `options` through every method that creates entries.
pub(super) async fn create_all(store: &Client, options: CacheEntryOptions) -> [CacheKey; 5] {
    let names = ["set", "set_many", "try_add", "get_or_add", "increment"].map(key);
    let [set, set_many, try_add, get_or_add, increment] = &names;
    store.set(set, bytes("1"), options).await.unwrap();
    let items = [CacheItem::new(set_many.clone(), "1", options)];
    store.set_many(&items).await.unwrap();
    let added = store.try_add(try_add, bytes("1"), options).await;
    assert!(added.unwrap());
    let stood = store.get_or_add(get_or_add, bytes("1"), options).await;
    assert_eq!(stood.unwrap(), None);
    assert_eq!(store.increment(increment, 1, options).await.unwrap(), 1);
    names
}

/// Writes `1` over present keys with `options` through every method that overwrites.
pub(super) async fn overwrite_all(
    store: &Client,
    old: CacheEntryOptions,
    options: CacheEntryOptions,
) -> [CacheKey; 3] {
    let names = ["set", "set_many", "try_replace"].map(key);
    let [set, set_many, try_replace] = &names;
    for name in &names {
        store.set(name, bytes("0"), old).await.unwrap();
    }
    store.set(set, bytes("1"), options).await.unwrap();
    let items = [CacheItem::new(set_many.clone(), "1", options)];
    store.set_many(&items).await.unwrap();
    let replaced = store
        .try_replace(try_replace, b"0", bytes("1"), options)
        .await;
    assert!(replaced.unwrap());
    names
}

/// Asserts that what is left of `key` is `life`, but for the time the case took.
async fn lives(scene: &Scene, store: &Client, key: &CacheKey, life: Duration) {
    let left = left(store, key).await;
    let least = life.saturating_sub(scene.ticks(20));
    assert!(
        left <= life && left > least,
        "{key} lives for {left:?}, not {life:?}"
    );
}

pub async fn e1_an_entry_without_an_expiration_takes_the_default(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let default = CacheEntryOptions::default();
    for key in create_all(&store, default).await {
        lives(&scene, &store, &key, harness.default_time_to_live()).await;
    }
    for key in overwrite_all(&store, long(), default).await {
        lives(&scene, &store, &key, harness.default_time_to_live()).await;
    }
}

pub async fn e1_the_default_can_be_configured(harness: &dyn StoreHarness) {
    let default = TimeToLive::new(harness.pace().tick * 10).unwrap();
    let setup = Setup {
        default_time_to_live: Some(default),
        ..Setup::default()
    };
    let scene = Scene::start_with(harness, setup).await.unwrap();
    let store = scene.client().await;
    let names = create_all(&store, CacheEntryOptions::default()).await;
    for key in &names {
        lives(&scene, &store, key, scene.ticks(10)).await;
    }
    scene.pass(11).await;
    for key in &names {
        absent(&store, key).await;
    }
}

pub async fn e1_a_created_entry_ends_with_its_time_to_live(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let names = create_all(&store, scene.lasting(10)).await;
    for key in &names {
        lives(&scene, &store, key, scene.ticks(10)).await;
    }
    scene.pass(2).await;
    for key in &names {
        holds(&store, key, "1").await;
    }
    scene.pass(9).await;
    for key in &names {
        absent(&store, key).await;
    }
}

pub async fn e1_reads_do_not_prolong_a_time_to_live(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    store.set(&k, bytes("v"), scene.lasting(6)).await.unwrap();
    for _ in 0..3 {
        scene.pass(1).await;
        holds(&store, &k, "v").await;
        assert!(store.get_many(std::slice::from_ref(&k)).await.unwrap()[0].is_some());
    }
    scene.pass(4).await;
    absent(&store, &k).await;
}

/// 0.4 ms is 1 ms: the write is accepted, and the entry is soon gone.
pub async fn e3_a_fraction_of_a_millisecond_is_one_and_not_for_ever(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let blink = Duration::from_micros(400);
    for options in [
        CacheEntryOptions::time_to_live(blink).unwrap(),
        CacheEntryOptions::sliding_expiration(blink).unwrap(),
    ] {
        let names = create_all(&store, options).await;
        for key in &names {
            let left = store.time_to_live(key).await.unwrap();
            assert!(left.unwrap_or_default() <= Duration::from_millis(1));
        }
        scene.pass(1).await;
        for key in &names {
            absent(&store, key).await;
        }
    }
    let life = TimeToLive::new(blink).unwrap();
    let (k, t) = (key("lease"), token("t"));
    assert!(store.try_lease(&k, &t, life).await.unwrap().is_some());
    scene.pass(1).await;
    absent(&store, &k).await;
}

/// A store that counts in whole seconds would end it at once or keep it too long.
pub async fn e3_a_life_below_a_second_is_kept_to_the_millisecond(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    for milliseconds in [1999, 1500, 999] {
        let life = TimeToLive::from_millis(milliseconds).unwrap();
        for key in create_all(&store, life.into()).await {
            let left = left(&store, &key).await;
            assert!(left <= life.as_duration(), "{key} lives for {left:?}");
            assert!(
                left > life.as_duration() - Duration::from_millis(490),
                "{key}: {left:?}"
            );
            store.remove(&key).await.unwrap();
        }
    }
    let life = TimeToLive::from_millis(800).unwrap();
    let names = create_all(&store, life.into()).await;
    scene.pass_time(Duration::from_millis(801)).await;
    for key in &names {
        absent(&store, key).await;
    }
}

pub async fn e3_a_hundred_years_are_accepted_everywhere(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let century = TimeToLive::MAX;
    for options in [
        century.into(),
        CacheEntryOptions::sliding_expiration(century).unwrap(),
    ] {
        for key in create_all(&store, options).await {
            assert!(left(&store, &key).await > days(99 * 365), "{key}");
            holds(&store, &key, "1").await;
            assert!(
                left(&store, &key).await > days(99 * 365),
                "{key} after a read"
            );
            store.remove(&key).await.unwrap();
        }
    }
    put(&store, &key("k"), "v").await;
    let extended = store.try_extend(&key("k"), b"v", century).await;
    assert!(extended.unwrap());
    let leased = store.try_lease(&key("l"), &token("a"), century).await;
    assert!(leased.unwrap().is_some());
    let relayed = store
        .try_relay(&key("l"), &token("a"), &token("b"), century)
        .await;
    assert!(relayed.unwrap().is_some());
    assert!(left(&store, &key("k")).await > days(99 * 365));
    assert!(left(&store, &key("l")).await > days(99 * 365));
}

pub async fn e5_overwriting_shortens_a_life(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let names = overwrite_all(&store, long(), scene.lasting(5)).await;
    for key in &names {
        lives(&scene, &store, key, scene.ticks(5)).await;
    }
    scene.pass(6).await;
    for key in &names {
        absent(&store, key).await;
    }
}

pub async fn e5_overwriting_prolongs_a_life(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let names = overwrite_all(&store, scene.lasting(10), long()).await;
    scene.pass(11).await;
    for key in &names {
        holds(&store, key, "1").await;
        lives(&scene, &store, key, long_life().as_duration()).await;
    }
}

pub async fn e5_overwriting_ends_sliding(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    for new in [scene.lasting(8), CacheEntryOptions::default()] {
        let names = overwrite_all(&store, scene.sliding(1000), new).await;
        for key in &names {
            let before = left(&store, key).await;
            holds(&store, key, "1").await;
            scene.settle().await;
            assert!(left(&store, key).await <= before, "a read prolongs {key}");
        }
    }
    let names = overwrite_all(&store, scene.sliding(20), scene.lasting(8)).await;
    scene.pass(3).await;
    for key in &names {
        holds(&store, key, "1").await;
    }
    scene.pass(6).await;
    for key in &names {
        absent(&store, key).await;
    }
}

pub async fn e5_overwriting_begins_sliding(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let names = overwrite_all(&store, scene.lasting(1000), scene.sliding(8)).await;
    for key in &names {
        lives(&scene, &store, key, scene.ticks(8)).await;
    }
    for _ in 0..3 {
        scene.pass(4).await;
        for key in &names {
            holds(&store, key, "1").await;
        }
    }
    scene.pass(9).await;
    for key in &names {
        absent(&store, key).await;
    }
}

pub async fn e5_overwriting_takes_the_new_sliding_period(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let names = overwrite_all(&store, scene.sliding(1000), scene.sliding(8)).await;
    for key in &names {
        holds(&store, key, "1").await;
    }
    scene.settle().await;
    for key in &names {
        lives(&scene, &store, key, scene.ticks(8)).await;
    }
    scene.pass(9).await;
    for key in &names {
        absent(&store, key).await;
    }
}

pub async fn e5_an_expiration_ends_with_a_removed_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    store.set(&k, bytes("v"), scene.sliding(4)).await.unwrap();
    assert!(store.remove(&k).await.unwrap());
    assert!(
        store
            .try_add(&k, bytes("w"), scene.lasting(1000))
            .await
            .unwrap()
    );
    holds(&store, &k, "w").await;
    scene.pass(5).await;
    holds(&store, &k, "w").await;
    assert!(left(&store, &k).await <= scene.ticks(995) + Duration::from_millis(1));
}

pub async fn e5_try_extend_ends_sliding(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    store.set(&k, bytes("v"), scene.sliding(8)).await.unwrap();
    let extended = store.try_extend(&k, b"v", scene.life(8)).await;
    assert!(extended.unwrap());
    scene.pass(3).await;
    holds(&store, &k, "v").await;
    scene.pass(6).await;
    absent(&store, &k).await;
}

pub async fn e5_an_old_expiration_does_not_end_a_new_entry(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    store.set(&k, bytes("v"), scene.lasting(2)).await.unwrap();
    scene.pass(3).await;
    assert!(
        store
            .try_add(&k, bytes("w"), scene.lasting(20))
            .await
            .unwrap()
    );
    scene.pass(4).await;
    holds(&store, &k, "w").await;
}
