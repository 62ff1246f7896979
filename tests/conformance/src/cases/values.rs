//! `get`, `set`, `remove`, their batches, `time_to_live` and `ping` (spec part 3).

use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::CacheItem;

use crate::harness::StoreHarness;
use crate::scene::{Scene, absent, bytes, holds, key, keys, left, long, put};

pub async fn get_gives_none_for_an_absent_key(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    absent(&store, &key("k")).await;
    put(&store, &key("other"), "v").await;
    absent(&store, &key("k")).await;
}

pub async fn get_gives_what_was_set(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    put(&store, &key("k"), "v").await;
    holds(&store, &key("k"), "v").await;
    holds(&store, &key("k"), "v").await;
}

pub async fn get_tells_an_empty_value_from_none(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    put(&store, &key("k"), "").await;
    assert_eq!(store.get(&key("k")).await.unwrap(), Some(Bytes::new()));
    assert!(store.remove(&key("k")).await.unwrap());
}

pub async fn every_byte_value_comes_back(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let all: Bytes = (0..=u8::MAX).collect();
    store.set(&k, all.clone(), long()).await.unwrap();
    assert_eq!(store.get(&k).await.unwrap(), Some(all));
    for byte in 0..=u8::MAX {
        let single = Bytes::copy_from_slice(&[byte]);
        store.set(&k, single.clone(), long()).await.unwrap();
        assert_eq!(store.get(&k).await.unwrap(), Some(single));
    }
}

pub async fn a_value_of_one_mebibyte_comes_back(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let large: Bytes = (0..1024 * 1024_u32).map(|i| (i % 251) as u8).collect();
    store.set(&k, large.clone(), long()).await.unwrap();
    assert_eq!(store.get(&k).await.unwrap().as_ref(), Some(&large));
    let larger: Bytes = [&large[..], b"."].concat().into();
    let replaced = store.try_replace(&k, &large, larger.clone(), long()).await;
    assert!(replaced.unwrap());
    assert_eq!(store.get(&k).await.unwrap(), Some(larger));
}

pub async fn set_writes_whatever_was_there(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    put(&store, &k, "a long first value").await;
    put(&store, &k, "short").await;
    holds(&store, &k, "short").await;
    store.remove(&k).await.unwrap();
    assert!(store.try_add(&k, bytes("added"), long()).await.unwrap());
    put(&store, &k, "set").await;
    holds(&store, &k, "set").await;
}

pub async fn another_client_sees_a_write_at_once(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (one, two) = (scene.client().await, scene.client().await);
    put(&one, &key("k"), "v").await;
    holds(&one, &key("k"), "v").await;
    holds(&two, &key("k"), "v").await;
    assert!(two.try_remove(&key("k"), b"v").await.unwrap());
    absent(&one, &key("k")).await;
    let added = two.try_add(&key("k"), bytes("w"), long()).await;
    assert!(added.unwrap());
    assert!(!one.try_add(&key("k"), bytes("x"), long()).await.unwrap());
}

pub async fn get_many_answers_in_the_order_asked(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    put(&store, &key("a"), "1").await;
    put(&store, &key("b"), "").await;
    put(&store, &key("c"), "3").await;
    let asked = keys(["c", "missing", "a", "c", "b"]);
    let found = store.get_many(&asked).await.unwrap();
    let expected = [Some("3"), None, Some("1"), Some("3"), Some("")];
    assert_eq!(found, expected.map(|value| value.map(bytes)));
}

pub async fn set_many_writes_each_item_with_its_own_options(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    put(&store, &key("b"), "old").await;
    let items = [
        CacheItem::new(key("a"), "1", scene.lasting(50)),
        CacheItem::new(key("b"), "2", long()),
        CacheItem::new(key("c"), "", scene.lasting(100)),
    ];
    store.set_many(&items).await.unwrap();
    holds(&store, &key("a"), "1").await;
    holds(&store, &key("b"), "2").await;
    holds(&store, &key("c"), "").await;
    assert!(left(&store, &key("a")).await <= scene.ticks(50));
    assert!(left(&store, &key("b")).await > scene.ticks(100));
    assert!(left(&store, &key("c")).await > scene.ticks(50));
}

pub async fn set_many_lets_the_last_of_two_equal_keys_count(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let items = [
        CacheItem::new(key("a"), "first", long()),
        CacheItem::new(key("b"), "b", long()),
        CacheItem::new(key("a"), "last", scene.lasting(50)),
    ];
    store.set_many(&items).await.unwrap();
    holds(&store, &key("a"), "last").await;
    holds(&store, &key("b"), "b").await;
    assert!(left(&store, &key("a")).await <= scene.ticks(50));
}

pub async fn remove_says_whether_the_key_was_there(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    assert!(!store.remove(&k).await.unwrap());
    put(&store, &k, "v").await;
    assert!(store.remove(&k).await.unwrap());
    absent(&store, &k).await;
    assert!(!store.remove(&k).await.unwrap());
}

pub async fn remove_leaves_other_keys_alone(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    for text in ["k", "k1", "K", "k:", "kk"] {
        put(&store, &key(text), text).await;
    }
    assert!(store.remove(&key("k")).await.unwrap());
    for text in ["k1", "K", "k:", "kk"] {
        holds(&store, &key(text), text).await;
    }
}

pub async fn remove_many_answers_in_the_order_asked(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    for text in ["a", "b", "c", "d"] {
        put(&store, &key(text), text).await;
    }
    let asked = keys(["c", "missing", "a", "d", "other"]);
    let removed = store.remove_many(&asked).await.unwrap();
    assert_eq!(removed, [true, false, true, true, false]);
    holds(&store, &key("b"), "b").await;
    for text in ["a", "c", "d"] {
        absent(&store, &key(text)).await;
    }
}

/// Of two equal keys the first one removes the entry; the second finds nothing.
pub async fn remove_many_answers_true_once_for_equal_keys(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    put(&store, &key("a"), "1").await;
    put(&store, &key("b"), "2").await;
    let removed = store.remove_many(&keys(["a", "b", "a", "a"])).await;
    assert_eq!(removed.unwrap(), [true, true, false, false]);
}

pub async fn empty_batches_do_nothing(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    put(&store, &key("k"), "v").await;
    assert!(store.get_many(&[]).await.unwrap().is_empty());
    store.set_many(&[]).await.unwrap();
    assert!(store.remove_many(&[]).await.unwrap().is_empty());
    holds(&store, &key("k"), "v").await;
}

pub async fn a_batch_of_a_thousand_keys_keeps_its_order(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let names: Vec<_> = (0..1000).map(|i| key(&format!("k{i}"))).collect();
    let item = |(i, key): (usize, &_)| CacheItem::new(Clone::clone(key), i.to_string(), long());
    let items: Vec<_> = names.iter().enumerate().map(item).collect();
    store.set_many(&items).await.unwrap();
    let reversed: Vec<_> = names.iter().rev().cloned().collect();
    let found = store.get_many(&reversed).await.unwrap();
    let expected = (0..1000).rev().map(|i| Some(bytes(&i.to_string())));
    assert!(found.into_iter().eq(expected));
    let removed = store.remove_many(&names[..999]).await.unwrap();
    assert_eq!(removed, [true; 999]);
    holds(&store, &names[999], "999").await;
}

pub async fn time_to_live_gives_none_for_an_absent_key(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    assert_eq!(store.time_to_live(&key("k")).await.unwrap(), None);
    put(&store, &key("k"), "v").await;
    store.remove(&key("k")).await.unwrap();
    assert_eq!(store.time_to_live(&key("k")).await.unwrap(), None);
}

/// At least what is left after the time that passed, and no more; a millisecond for rounding.
pub async fn time_to_live_counts_down(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let millisecond = Duration::from_millis(1);
    let options = scene.lasting(100);
    store.set(&k, bytes("v"), options).await.unwrap();
    let first = left(&store, &k).await;
    assert!(
        first <= scene.ticks(100) && first > scene.ticks(99),
        "{first:?}"
    );
    scene.pass(10).await;
    let later = left(&store, &k).await;
    assert!(
        later <= first - scene.ticks(10) + millisecond,
        "{later:?} after {first:?}"
    );
    assert!(later > scene.ticks(80), "{later:?}");
}

pub async fn time_to_live_of_a_sliding_entry_is_what_is_left(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    store.set(&k, bytes("v"), scene.sliding(100)).await.unwrap();
    scene.pass(20).await;
    let before = left(&store, &k).await;
    assert!(
        before <= scene.ticks(81) && before > scene.ticks(60),
        "{before:?}"
    );
    store.get(&k).await.unwrap();
    scene.settle().await;
    let after = left(&store, &k).await;
    assert!(
        after <= scene.ticks(100) && after > scene.ticks(90),
        "{after:?}"
    );
}

pub async fn ping_succeeds_and_changes_nothing(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    put(&store, &key("k"), "v").await;
    store.ping().await.unwrap();
    holds(&store, &key("k"), "v").await;
    scene.client().await.ping().await.unwrap();
}
