//! Several applications on one store, each with its key prefix (K4).

use std::time::Duration;

use caching_abstractions::CacheItem;
use futures_util::StreamExt;

use crate::harness::{Gap, StoreHarness};
use crate::scene::{Scene, absent, bytes, holds, key, keys, listed, long, long_life, put, token};

pub async fn k4_a_prefix_is_invisible(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (shop, same) = (scene.client_of("shop").await, scene.client_of("shop").await);
    put(&shop, &key("a"), "1").await;
    put(&shop, &key("order:1"), "2").await;
    holds(&same, &key("a"), "1").await;
    assert_eq!(listed(&shop, "").await, ["a", "order:1"]);
    assert_eq!(listed(&shop, "order").await, ["order:1"]);
    assert!(listed(&shop, "shop").await.is_empty());
}

pub async fn k4_reads_see_no_entry_of_another_prefix(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (one, two) = (scene.client_of("one").await, scene.client_of("two").await);
    put(&one, &key("k"), "1").await;
    absent(&two, &key("k")).await;
    assert_eq!(two.get_many(&keys(["k", "k"])).await.unwrap(), [None, None]);
    assert_eq!(two.time_to_live(&key("k")).await.unwrap(), None);
    assert!(listed(&two, "").await.is_empty());
    assert!(listed(&two, "k").await.is_empty());
}

pub async fn k4_writes_leave_another_prefix_alone(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (one, two) = (scene.client_of("one").await, scene.client_of("two").await);
    let k = key("k");
    put(&one, &k, "1").await;
    put(&two, &k, "2").await;
    holds(&one, &k, "1").await;
    let items = [CacheItem::new(k.clone(), "3", long())];
    two.set_many(&items).await.unwrap();
    holds(&one, &k, "1").await;
    assert!(two.remove(&k).await.unwrap());
    assert!(two.try_add(&k, bytes("4"), long()).await.unwrap());
    assert!(two.remove(&k).await.unwrap());
    assert_eq!(two.get_or_add(&k, bytes("5"), long()).await.unwrap(), None);
    assert_eq!(two.increment(&k, 1, long()).await.unwrap(), 6);
    holds(&one, &k, "1").await;
    holds(&two, &k, "6").await;
}

pub async fn k4_comparisons_match_no_entry_of_another_prefix(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (one, two) = (scene.client_of("one").await, scene.client_of("two").await);
    let k = key("k");
    put(&one, &k, "1").await;
    assert!(!two.try_replace(&k, b"1", bytes("2"), long()).await.unwrap());
    assert!(!two.try_extend(&k, b"1", long_life()).await.unwrap());
    assert!(!two.try_remove(&k, b"1").await.unwrap());
    assert!(!two.release(&k, &token("1")).await.unwrap());
    let relayed = two
        .try_relay(&k, &token("1"), &token("2"), long_life())
        .await;
    assert_eq!(relayed.unwrap(), None);
    holds(&one, &k, "1").await;
}

pub async fn k4_removals_leave_another_prefix_alone(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (one, two) = (scene.client_of("one").await, scene.client_of("two").await);
    put(&one, &key("a"), "1").await;
    put(&one, &key("b"), "2").await;
    put(&two, &key("b"), "3").await;
    assert!(!two.remove(&key("a")).await.unwrap());
    let removed = two.remove_many(&keys(["a", "b"])).await.unwrap();
    assert_eq!(removed, [false, true]);
    holds(&one, &key("a"), "1").await;
    holds(&one, &key("b"), "2").await;
}

pub async fn k4_leases_of_two_prefixes_do_not_exclude_each_other(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (one, two) = (scene.client_of("one").await, scene.client_of("two").await);
    let (k, a, b) = (key("k"), token("a"), token("b"));
    assert!(one.try_lease(&k, &a, long_life()).await.unwrap().is_some());
    assert!(two.try_lease(&k, &b, long_life()).await.unwrap().is_some());
    assert!(!two.release(&k, &a).await.unwrap());
    assert!(two.release(&k, &b).await.unwrap());
    holds(&one, &k, "a").await;
}

/// A hint may be wrong, but a store that takes no notice of prefixes gives one each time.
pub async fn k4_a_release_under_another_prefix_wakes_nobody(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (one, two) = (scene.client_of("one").await, scene.client_of("two").await);
    let (k, t) = (key("k"), token("t"));
    let mut hints = one.watch(&k).await.unwrap();
    scene.settle().await;
    // A hint that comes with the registration is nobody's release.
    while tokio::time::timeout(Duration::ZERO, hints.next())
        .await
        .is_ok()
    {}
    assert!(two.try_lease(&k, &t, long_life()).await.unwrap().is_some());
    assert!(two.release(&k, &t).await.unwrap());
    let woken = tokio::time::timeout(scene.pace().settle, hints.next()).await;
    assert!(
        woken.is_err(),
        "the release of another prefix woke a watcher"
    );
    assert!(one.try_lease(&k, &t, long_life()).await.unwrap().is_some());
    assert!(one.release(&k, &t).await.unwrap());
    let woken = tokio::time::timeout(scene.pace().hint, hints.next()).await;
    assert_eq!(woken.ok().flatten(), Some(()), "its own release wakes it");
}

pub async fn k4_prefix_and_key_do_not_run_together(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (a, ab) = (scene.client_of("a").await, scene.client_of("ab").await);
    put(&a, &key("bc"), "1").await;
    absent(&ab, &key("c")).await;
    put(&ab, &key("c"), "2").await;
    holds(&a, &key("bc"), "1").await;
    assert_eq!(listed(&a, "").await, ["bc"]);
    assert_eq!(listed(&ab, "").await, ["c"]);
    put(&a, &key("b:c"), "3").await;
    assert_eq!(listed(&a, "b").await, ["b:c", "bc"]);
    assert_eq!(listed(&ab, "").await, ["c"]);
}

pub async fn k4_glob_characters_in_a_prefix_are_literal(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let plain = scene.client_of("ab").await;
    put(&plain, &key("k"), "plain").await;
    for prefix in ["a*", "a?", "[a]b", "*", "a[^x]", "\\ab", "{a}b", "a%", "a_"] {
        let odd = scene.client_of(prefix).await;
        assert!(listed(&odd, "").await.is_empty(), "prefix {prefix:?}");
        put(&odd, &key("k"), prefix).await;
        assert_eq!(listed(&odd, "").await, ["k"], "prefix {prefix:?}");
        holds(&odd, &key("k"), prefix).await;
    }
    assert_eq!(listed(&plain, "").await, ["k"]);
    holds(&plain, &key("k"), "plain").await;
}

/// Where the harness cannot give a client the whole keyspace, the entry is out of its sight.
pub async fn k4_without_a_prefix_the_whole_keyspace_is_owned(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (shop, all) = (scene.client_of("shop").await, scene.client().await);
    put(&shop, &key("k"), "v").await;
    let found = all.get(&key("shop:k")).await.unwrap();
    if harness.gaps().contains(&Gap::WholeKeyspace) {
        assert_eq!(found, None, "the gap is none; take it out of gaps()");
        assert!(listed(&all, "").await.is_empty());
    } else {
        assert_eq!(found, Some(bytes("v")));
        assert_eq!(listed(&all, "").await, ["shop:k"]);
        assert!(all.remove(&key("shop:k")).await.unwrap());
        absent(&shop, &key("k")).await;
    }
}
