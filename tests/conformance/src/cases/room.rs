//! A full store refuses; it never forgets a lock (S2).

use bytes::Bytes;
use caching_abstractions::{CacheItem, CacheKey, ErrorCode, LeaseToken, Result};

use crate::harness::{Budgets, Gap, Setup, StoreHarness};
use crate::scene::{
    Client, Scene, ability, absent, bytes, holds, key, left, long, long_life, put, refused, token,
};

const MIB: usize = 1024 * 1024;
const LARGE: usize = 16 * 1024;
/// More leases than 5 % of the room could hold at a dozen bytes each.
const RESERVE: usize = 4096;
/// More than any small store has room for.
const FAR_TOO_MUCH: usize = 8 * MIB;

/// A store with 1 MiB of room for each kind; none where the store cannot be full.
async fn small(harness: &dyn StoreHarness) -> Option<Scene> {
    let setup = Setup {
        budgets: Some(Budgets {
            evictable_bytes: MIB as u64,
            protected_bytes: MIB as u64,
        }),
        ..Setup::default()
    };
    let started = Scene::start_with(harness, setup).await;
    let scene = ability(harness, Gap::FullStore, started);
    if scene.is_none() {
        takes_everything(harness).await;
    }
    scene
}

/// What a store that is never full owes: it refuses nothing and forgets nothing.
async fn takes_everything(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    for i in 0..128 {
        let added = store.try_add(&key(&format!("p{i}")), large(), long()).await;
        assert!(added.unwrap());
        store
            .set(&key(&format!("e{i}")), large(), long())
            .await
            .unwrap();
    }
    for i in 0..128 {
        assert!(store.get(&key(&format!("p{i}"))).await.unwrap().is_some());
    }
}

fn large() -> Bytes {
    Bytes::from(vec![b'x'; LARGE])
}

/// How many large entries may still fit after one was refused. Where there is one room only, the
/// buffers of the server's connections come out of it, and the server frees them when it likes.
fn slack(harness: &dyn StoreHarness) -> usize {
    if harness.gaps().contains(&Gap::TwoBudgets) {
        16
    } else {
        0
    }
}

/// A value that a full store has no room for, whatever its buffers do meanwhile.
fn too_much(harness: &dyn StoreHarness) -> Bytes {
    let size = if slack(harness) == 0 { LARGE } else { MIB };
    Bytes::from(vec![b'x'; size])
}

/// Adds protected entries of `size` bytes until one is refused, and gives the others.
async fn fill(store: &Client, name: &str, size: usize) -> Vec<CacheKey> {
    let value = Bytes::from(vec![b'x'; size]);
    let mut added = Vec::new();
    for i in 0..FAR_TOO_MUCH / (size + 64) {
        let k = key(&format!("{name}{i:06}"));
        match store.try_add(&k, value.clone(), long()).await {
            Ok(new) => assert!(new, "{k} was absent"),
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::StoreFull, "{error}");
                absent(store, &k).await;
                return added;
            }
        }
        added.push(k);
    }
    panic!("the store is never full");
}

/// Fills the store to the last byte that an ordinary protected entry may take.
async fn fill_up(store: &Client) -> Vec<CacheKey> {
    let mut added = fill(store, "large", LARGE).await;
    // The buffers of a server come and go within its room: it is full once it says so repeatedly.
    let (mut round, mut refusals) = (0, 0);
    while refusals < 3 {
        let more = fill(store, &format!("small{round}-"), 1).await;
        refusals = if more.is_empty() { refusals + 1 } else { 0 };
        round += 1;
        added.extend(more);
    }
    added
}

/// Sets four times as much as there is room for. Where there is one room only, a set may be
/// refused instead of evicting.
async fn flood(harness: &dyn StoreHarness, store: &Client) {
    let one_room = harness.gaps().contains(&Gap::TwoBudgets);
    for i in 0..4 * MIB / LARGE {
        let k = key(&format!("z{i}"));
        match store.set(&k, large(), long()).await {
            Err(error) if one_room => assert_eq!(error.code(), ErrorCode::StoreFull),
            result => result.unwrap(),
        }
    }
}

async fn all_stand(store: &Client, keys: &[CacheKey]) {
    for some in keys.chunks(500) {
        let found = store.get_many(some).await.unwrap();
        let lost = found.iter().filter(|value| value.is_none()).count();
        assert_eq!(lost, 0, "protected entries are gone");
    }
}

pub async fn s2_a_full_store_refuses_and_forgets_nothing(harness: &dyn StoreHarness) {
    let Some(scene) = small(harness).await else {
        return;
    };
    let store = scene.client().await;
    let added = fill(&store, "k", LARGE).await;
    assert!(added.len() > 16 && added.len() < 256, "{} fit", added.len());
    all_stand(&store, &added).await;
    let more = fill(&store, "more", LARGE).await;
    assert!(more.len() <= slack(harness), "it was full");
    all_stand(&store, &added).await;
    all_stand(&store, &more).await;
}

pub async fn s2_a_refused_write_changes_nothing(harness: &dyn StoreHarness) {
    let Some(scene) = small(harness).await else {
        return;
    };
    let (store, k) = (scene.client().await, key("k"));
    let added = store.try_add(&k, bytes("old"), scene.lasting(1000)).await;
    assert!(added.unwrap());
    fill_up(&store).await;
    let (full, value) = (ErrorCode::StoreFull, too_much(harness));
    let replaced = store.try_replace(&k, b"old", value.clone(), long()).await;
    refused(replaced, full);
    holds(&store, &k, "old").await;
    assert!(left(&store, &k).await <= scene.ticks(1000));
    refused(store.get_or_add(&key("new"), value, long()).await, full);
    absent(&store, &key("new")).await;
    // Whatever stands there is answered without any room.
    let stands = store.get_or_add(&k, large(), long()).await.unwrap();
    assert_eq!(stands, Some(bytes("old")));
    assert!(!store.try_add(&k, large(), long()).await.unwrap());
}

pub async fn s2_removed_and_expired_entries_make_room(harness: &dyn StoreHarness) {
    let Some(scene) = small(harness).await else {
        return;
    };
    let store = scene.client().await;
    let expiring = store
        .try_add(&key("soon"), large(), scene.lasting(40))
        .await;
    assert!(expiring.unwrap());
    let mut added = fill(&store, "k", LARGE).await;
    // What a server's buffers take meanwhile.
    for k in added.split_off(added.len() - slack(harness).min(added.len() / 2)) {
        assert!(store.remove(&k).await.unwrap());
    }
    assert!(store.remove(&added[3]).await.unwrap());
    assert!(store.try_add(&added[3], large(), long()).await.unwrap());
    let value = large();
    assert!(store.try_remove(&added[5], &value).await.unwrap());
    assert!(store.try_add(&added[5], large(), long()).await.unwrap());
    scene.pass(41).await;
    let again = store.try_add(&key("soon"), large(), long()).await;
    assert!(again.unwrap());
    all_stand(&store, &added).await;
}

/// 5 % of the protected room are kept for leases and for entries that are marked essential.
pub async fn s2_a_store_full_of_entries_still_leases(harness: &dyn StoreHarness) {
    let Some(scene) = small(harness).await else {
        return;
    };
    let store = scene.client().await;
    let added = fill_up(&store).await;
    let one_room = harness.gaps().contains(&Gap::TwoBudgets);
    for i in 0..20 {
        let (k, a, b) = (key(&format!("lease{i}")), token("a"), token("b"));
        match store.try_lease(&k, &a, long_life()).await {
            Err(error) if one_room => assert_eq!(error.code(), ErrorCode::StoreFull),
            granted => {
                assert!(granted.unwrap().is_some());
                let relayed = store.try_relay(&k, &a, &b, long_life()).await;
                assert!(one_room || relayed.unwrap().is_some());
            }
        }
        let marker = key(&format!("marker{i}"));
        match store.try_add(&marker, bytes("m"), long().essential()).await {
            Err(error) if one_room => assert_eq!(error.code(), ErrorCode::StoreFull),
            marked => assert!(marked.unwrap()),
        }
    }
    all_stand(&store, &added).await;
}

pub async fn s2_leases_are_refused_when_the_reserve_is_used_up(harness: &dyn StoreHarness) {
    let Some(scene) = small(harness).await else {
        return;
    };
    let store = scene.client().await;
    let added = fill_up(&store).await;
    let mut granted = Vec::new();
    let refusal = loop {
        assert!(granted.len() < RESERVE, "the store is never full");
        let k = key(&format!("lease{:06}", granted.len()));
        match store
            .try_lease(&k, &LeaseToken::generate(), long_life())
            .await
        {
            Ok(number) => assert!(number.is_some(), "{k} was free"),
            Err(error) => break (k, error),
        }
        granted.push(k);
    };
    assert_eq!(refusal.1.code(), ErrorCode::StoreFull, "{}", refusal.1);
    absent(&store, &refusal.0).await;
    all_stand(&store, &added).await;
    all_stand(&store, &granted).await;
}

/// Writes one entry through every method that protects it, and gives keys and values.
async fn protect(store: &Client) -> Vec<(CacheKey, &'static str)> {
    let (a, b) = (token("a"), token("b"));
    let names = [
        "added", "got", "replaced", "leased", "relayed", "counted", "summed",
    ]
    .map(key);
    let [added, got, replaced, leased, relayed, counted, summed] = names.clone();
    assert!(store.try_add(&added, bytes("1"), long()).await.unwrap());
    store.get_or_add(&got, bytes("1"), long()).await.unwrap();
    put(store, &replaced, "0").await;
    let swapped = store.try_replace(&replaced, b"0", bytes("1"), long()).await;
    assert!(swapped.unwrap());
    store.try_lease(&leased, &a, long_life()).await.unwrap();
    store.try_lease(&relayed, &a, long_life()).await.unwrap();
    store
        .try_relay(&relayed, &a, &b, long_life())
        .await
        .unwrap();
    store.increment(&counted, 1, long()).await.unwrap();
    put(store, &summed, "0").await;
    store.increment(&summed, 1, long()).await.unwrap();
    let values = ["1", "1", "1", "a", "b", "1", "1"];
    names.into_iter().zip(values).collect()
}

pub async fn s2_no_number_of_sets_evicts_what_is_protected(harness: &dyn StoreHarness) {
    let Some(scene) = small(harness).await else {
        return;
    };
    let store = scene.client().await;
    let protected = protect(&store).await;
    flood(harness, &store).await;
    for (k, value) in protected {
        holds(&store, &k, value).await;
    }
}

pub async fn s2_a_set_never_makes_a_protected_entry_evictable(harness: &dyn StoreHarness) {
    let Some(scene) = small(harness).await else {
        return;
    };
    let store = scene.client().await;
    let (one, many) = (key("set"), key("set_many"));
    assert!(store.try_add(&one, bytes("0"), long()).await.unwrap());
    assert!(store.try_add(&many, bytes("0"), long()).await.unwrap());
    put(&store, &one, "1").await;
    let items = [CacheItem::new(many.clone(), "1", long())];
    store.set_many(&items).await.unwrap();
    flood(harness, &store).await;
    holds(&store, &one, "1").await;
    holds(&store, &many, "1").await;
}

pub async fn s2_sets_evict_other_sets(harness: &dyn StoreHarness) {
    let Some(scene) = small(harness).await else {
        return;
    };
    let store = scene.client().await;
    flood(harness, &store).await;
    let written = 4 * MIB / LARGE;
    let stand = crate::scene::listed(&store, "z").await.len();
    assert!(
        stand >= 8 && stand < written / 2,
        "{stand} of {written} stand"
    );
    if !harness.gaps().contains(&Gap::TwoBudgets) {
        put(&store, &key("last"), "v").await;
        holds(&store, &key("last"), "v").await;
    }
}

pub async fn s2_a_set_larger_than_its_room_leaves_the_old_value(harness: &dyn StoreHarness) {
    let Some(scene) = small(harness).await else {
        return;
    };
    let (store, k) = (scene.client().await, key("k"));
    store
        .set(&k, bytes("old"), scene.lasting(1000))
        .await
        .unwrap();
    let one_room = harness.gaps().contains(&Gap::TwoBudgets);
    if one_room {
        fill_up(&store).await;
    }
    let huge = Bytes::from(vec![b'x'; 2 * MIB]);
    let items = [CacheItem::new(k.clone(), huge.clone(), long())];
    too_large(store.set(&k, huge, long()).await, one_room);
    too_large(store.set_many(&items).await, one_room);
    if !one_room {
        holds(&store, &k, "old").await;
        assert!(left(&store, &k).await <= scene.ticks(1000));
    }
}

/// With one room a set that does not fit may push others out instead.
fn too_large(result: Result<()>, one_room: bool) {
    if !(one_room && result.is_ok()) {
        refused(result, ErrorCode::StoreFull);
    }
}

pub async fn s2_neither_room_takes_from_the_other(harness: &dyn StoreHarness) {
    let Some(scene) = small(harness).await else {
        return;
    };
    let store = scene.client().await;
    let one_room = harness.gaps().contains(&Gap::TwoBudgets);
    flood(harness, &store).await;
    let added = fill(&store, "k", LARGE).await;
    assert!(one_room || added.len() > 16, "only {} fit", added.len());
    let set = store.set(&key("set"), large(), long()).await;
    if !one_room {
        set.unwrap();
        assert!(store.get(&key("set")).await.unwrap().is_some());
    }
    all_stand(&store, &added).await;
}
