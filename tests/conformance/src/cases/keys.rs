//! What a key may be (spec part 1) and how keys are listed.

use std::collections::HashMap;

use caching_abstractions::{CacheItem, CacheKey, CacheStoreExt};
use futures_util::StreamExt;

use crate::harness::StoreHarness;
use crate::scene::{Client, Scene, absent, bytes, holds, key, keys, listed, long, put, token};

pub async fn k1_the_longest_key_is_kept_whole(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    // 511 characters of four bytes each, and one that tells the keys apart.
    let stem = "\u{1f512}".repeat(511);
    let (a, b) = (key(&format!("{stem}a")), key(&format!("{stem}b")));
    put(&store, &a, "a").await;
    absent(&store, &b).await;
    put(&store, &b, "b").await;
    holds(&store, &a, "a").await;
    assert_eq!(store.sorted_keys(&stem).await.unwrap(), [a, b]);
}

pub async fn k2_keys_are_compared_byte_for_byte(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    // Case, composed and decomposed, ligature, full width, long s.
    let alike = [
        "k", "K", "\u{e9}", "e\u{301}", "\u{fb01}", "fi", "\u{ff4b}", "s", "\u{17f}",
    ];
    for text in alike {
        absent(&store, &key(text)).await;
        put(&store, &key(text), text).await;
    }
    for text in alike {
        holds(&store, &key(text), text).await;
    }
    let mut sorted = alike.map(str::to_owned);
    sorted.sort_unstable();
    assert_eq!(listed(&store, "").await, sorted);
}

pub async fn k1_every_character_of_the_grammar_is_only_itself(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let printable = (0x21..0x7f).map(|byte| char::from(byte).to_string());
    let odd = [
        "%3A", "%%", "{a}b", "}{", "{}x", "a}b", "../a", "\u{200d}", "\u{fffd}", "🔒", "k*?",
    ];
    let texts: Vec<String> = printable.chain(odd.map(str::to_owned)).collect();
    for text in &texts {
        let added = store.try_add(&key(text), bytes(text), long()).await;
        assert!(added.unwrap(), "{text} is a key of its own");
    }
    for text in &texts {
        holds(&store, &key(text), text).await;
        let leased = store
            .try_lease(&key(&format!("lease{text}")), &token("t"), scene.life(1000))
            .await;
        assert!(leased.unwrap().is_some(), "{text}");
    }
}

/// Writes `texts` and asserts which of them the listing of `prefix` gives.
async fn lists(store: &Client, texts: &[&str], prefix: &str, expected: &[&str]) {
    for text in texts {
        put(store, &key(text), "v").await;
    }
    assert_eq!(listed(store, prefix).await, expected, "prefix {prefix:?}");
}

pub async fn keys_lists_what_begins_with_the_prefix(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let all = ["a", "ab", "abc", "b", "ba", "Ab"];
    lists(&store, &all, "ab", &["ab", "abc"]).await;
    lists(&store, &all, "b", &["b", "ba"]).await;
    lists(&store, &all, "abcd", &[]).await;
    lists(&store, &all, "A", &["Ab"]).await;
}

pub async fn keys_with_an_empty_prefix_lists_everything(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    assert!(listed(&store, "").await.is_empty());
    lists(&store, &["a", "z", "é"], "", &["a", "z", "é"]).await;
}

pub async fn keys_takes_glob_characters_literally(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let all = ["*1", "?1", "[ab]1", "\\*1", "^1", "a1", "b1", "%1", "_1"];
    lists(&store, &all, "*", &["*1"]).await;
    lists(&store, &all, "?", &["?1"]).await;
    lists(&store, &all, "[ab]", &["[ab]1"]).await;
    lists(&store, &all, "[", &["[ab]1"]).await;
    lists(&store, &all, "\\", &["\\*1"]).await;
    lists(&store, &all, "\\*", &["\\*1"]).await;
    lists(&store, &all, "%", &["%1"]).await;
    lists(&store, &all, "_", &["_1"]).await;
    lists(&store, &all, "a*", &[]).await;
}

pub async fn keys_takes_a_prefix_that_is_no_key(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    lists(&store, &["a"], "a b", &[]).await;
    lists(&store, &["a"], "\n", &[]).await;
    lists(&store, &["a"], &"a".repeat(600), &[]).await;
}

pub async fn keys_lists_ten_thousand_keys_once_each(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let names: Vec<_> = (0..10_000).map(|i| key(&format!("k:{i:04}"))).collect();
    write_all(&store, &names).await;
    put(&store, &key("other"), "v").await;
    assert_eq!(store.sorted_keys("k:").await.unwrap(), names);
}

async fn write_all(store: &Client, names: &[CacheKey]) {
    for some in names.chunks(500) {
        let item = |key: &CacheKey| CacheItem::new(key.clone(), "v", long());
        let items: Vec<_> = some.iter().map(item).collect();
        store.set_many(&items).await.unwrap();
    }
}

/// Keys that live throughout come once; those that come and go meanwhile at most once.
pub async fn keys_lists_correctly_while_others_write(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, other) = (scene.client().await, scene.client().await);
    let stable: Vec<_> = (0..2000).map(|i| key(&format!("k:{i:04}"))).collect();
    write_all(&store, &stable).await;
    let writer = tokio::spawn(async move {
        for round in 0..40 {
            let fleeting: Vec<_> = (0..50).map(|i| key(&format!("k:{round}-{i}"))).collect();
            write_all(&other, &fleeting).await;
            other.remove_many(&fleeting[..25]).await.unwrap();
        }
    });
    while !writer.is_finished() {
        let mut seen: HashMap<CacheKey, u32> = HashMap::new();
        let mut listing = store.keys("k:");
        while let Some(found) = listing.next().await {
            *seen.entry(found.unwrap()).or_default() += 1;
        }
        assert!(seen.values().all(|&times| times == 1), "a key came twice");
        assert!(
            stable.iter().all(|key| seen.contains_key(key)),
            "a key is missing"
        );
    }
    writer.await.unwrap();
}

pub async fn keys_lists_no_removed_key(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    lists(&store, &["a", "b", "c"], "", &["a", "b", "c"]).await;
    store.remove(&key("b")).await.unwrap();
    assert_eq!(listed(&store, "").await, ["a", "c"]);
    store.remove_many(&keys(["a", "c"])).await.unwrap();
    assert!(listed(&store, "").await.is_empty());
}

pub async fn keys_lists_leases_and_counters(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let leased = store
        .try_lease(&key("lease"), &token("t"), scene.life(1000))
        .await;
    assert!(leased.unwrap().is_some());
    store.increment(&key("counter"), 1, long()).await.unwrap();
    assert!(
        store
            .try_add(&key("added"), bytes(""), long())
            .await
            .unwrap()
    );
    assert_eq!(listed(&store, "").await, ["added", "counter", "lease"]);
}

pub async fn keys_can_be_left_half_read(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let names: Vec<_> = (0..2000).map(|i| key(&format!("k:{i:04}"))).collect();
    write_all(&store, &names).await;
    for _ in 0..20 {
        let mut listing = store.keys("");
        assert!(listing.next().await.unwrap().is_ok());
    }
    assert_eq!(store.sorted_keys("k:").await.unwrap(), names);
}
