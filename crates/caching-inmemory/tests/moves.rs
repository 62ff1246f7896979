//! Keys that move between the halves while others look.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use caching_abstractions::{CacheKey, CacheStore, hours, milliseconds, seconds};
use caching_inmemory::InMemoryStore;
use futures_util::StreamExt;
use support::{done, key, lives, long, on_manual_clock, slides, ttl};

#[test]
fn s1_a_reader_never_misses_a_key_that_moves() {
    const KEYS: usize = 20_000;
    let store = InMemoryStore::new();
    let name = |n: usize| key(format!("key:{n}"));
    let present = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..KEYS {
                done(store.set(&name(n), "1".into(), long()));
                present.store(n + 1, Ordering::SeqCst);
                assert!(done(store.try_replace(&name(n), b"1", "2".into(), long())));
            }
        });
        // Always at the key that moves just now, or is about to.
        loop {
            let present = present.load(Ordering::SeqCst);
            if present > 0 {
                assert!(
                    done(store.get(&name(present - 1))).is_some(),
                    "key {present}"
                );
            }
            if present == KEYS {
                break;
            }
        }
    });
}

/// Every value is written once, so each can be the expected one of one success at most.
#[test]
fn s1_no_value_is_taken_twice_whatever_else_happens_to_its_key() {
    const ROUNDS: u64 = 30_000;
    let store = InMemoryStore::new();
    let names: Vec<CacheKey> = ["a", "b", "c"].map(key).into();
    let next = AtomicU64::new(0);
    let taken: Mutex<HashMap<Bytes, u32>> = Mutex::default();
    let work = |seed: u64| {
        let mut random = seed;
        for _ in 0..ROUNDS {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let name = &names[(random >> 33) as usize % names.len()];
            let fresh = Bytes::from(next.fetch_add(1, Ordering::Relaxed).to_string());
            let standing = done(store.get(name)).unwrap_or_default();
            let took = match (random >> 40) % 5 {
                0 => {
                    done(store.set(name, fresh, long()));
                    false
                }
                1 => {
                    done(store.try_add(name, fresh, long()));
                    false
                }
                2 => {
                    done(store.remove(name));
                    false
                }
                3 => done(store.try_replace(name, &standing, fresh, long())),
                _ => done(store.try_remove(name, &standing)),
            };
            if took {
                *taken.lock().unwrap().entry(standing).or_default() += 1;
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| work(1));
        scope.spawn(|| work(2));
    });
    let taken = taken.into_inner().unwrap();
    assert!(taken.len() > 100, "the threads hardly met: {}", taken.len());
    assert!(taken.values().all(|&times| times == 1));
    for name in &names {
        done(store.remove(name));
    }
    assert_eq!((store.protected_bytes(), store.evictable_bytes()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_lists_a_key_that_moves_exactly_once() {
    const KEYS: usize = 3000;
    for round in 0..5 {
        let store = InMemoryStore::new();
        for n in 0..KEYS {
            done(store.set(&key(format!("key:{n}")), "1".into(), long()));
        }
        let mover = store.clone();
        // From the end and from the start, and not only behind or before the listing.
        let moves = tokio::task::spawn_blocking(move || {
            for n in 0..KEYS {
                let n = if round % 2 == 0 { n } else { KEYS - 1 - n };
                let name = key(format!("key:{n}"));
                assert!(done(mover.try_extend(&name, b"1", ttl(hours(1)))));
            }
        });
        let listed = listed(&store, "key:").await;
        moves.await.unwrap();
        assert_eq!(listed.len(), KEYS);
        assert!(listed.values().all(|&times| times == 1));
    }
}

#[tokio::test]
async fn keys_lists_a_key_that_is_removed_and_added_anew_at_most_once() {
    const KEYS: usize = 1000;
    let store = InMemoryStore::new();
    for n in 0..KEYS {
        done(store.set(&key(format!("key:{n}")), "1".into(), long()));
    }
    let mut keys = store.keys("");
    let mut times: HashMap<CacheKey, u32> = HashMap::new();
    while let Some(listed) = keys.next().await {
        let listed = listed.unwrap();
        assert!(done(store.remove(&listed)));
        assert!(done(store.try_add(&listed, "2".into(), long())));
        *times.entry(listed).or_default() += 1;
    }
    assert_eq!(times.len(), KEYS);
    assert!(times.values().all(|&times| times == 1));
}

#[tokio::test]
async fn e4_keys_does_not_list_what_expires_before_its_reader_comes_to_it() {
    let (store, clock) = on_manual_clock(InMemoryStore::builder());
    for n in 0..10 {
        done(store.set(&key(format!("set:{n}")), "1".into(), lives(seconds(1))));
        done(store.try_add(&key(format!("add:{n}")), "1".into(), lives(seconds(1))));
        done(store.set(&key(format!("slides:{n}")), "1".into(), slides(seconds(1))));
    }
    let mut keys = store.keys("");
    assert!(keys.next().await.is_some());
    clock.advance(milliseconds(999));
    let slid = key("slides:0");
    assert!(done(store.get(&slid)).is_some());
    clock.advance(milliseconds(1));
    let left: Vec<_> = keys.map(Result::unwrap).collect().await;
    assert!(left.iter().all(|listed| *listed == slid), "{left:?}");
}

#[tokio::test]
async fn keys_holds_no_lock_while_its_reader_waits() {
    let store = InMemoryStore::new();
    for n in 0..1000 {
        done(store.set(&key(format!("set:{n}")), "1".into(), long()));
        done(store.try_add(&key(format!("add:{n}")), "1".into(), long()));
    }
    let mut keys = store.keys("");
    let mut seen = 0;
    while let Some(listed) = keys.next().await {
        assert!(done(store.remove(&listed.unwrap())));
        seen += 1;
    }
    assert_eq!(seen, 2000);
}

/// How often each key comes in a listing.
async fn listed(store: &InMemoryStore, prefix: &str) -> HashMap<String, u32> {
    let mut times = HashMap::new();
    let mut keys = store.keys(prefix);
    while let Some(listed) = keys.next().await {
        *times
            .entry(listed.unwrap().as_str().to_owned())
            .or_default() += 1;
        // The reader is not in a hurry, so that others write between two keys.
        tokio::task::yield_now().await;
    }
    times
}
