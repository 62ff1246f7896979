//! The task that frees what has expired, and what works without it.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use caching_abstractions::{CacheStore, seconds};
use caching_inmemory::InMemoryStore;
use futures_util::StreamExt;
use support::{done, key, lives, long, on_manual_clock};
use tokio::runtime::{Builder, Handle, Runtime};

fn paused() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

#[test]
fn s2_expired_entries_are_freed_without_being_touched() {
    paused().block_on(async {
        let store = InMemoryStore::new();
        for n in 0..1000 {
            let name = key(format!("record:{n}"));
            store
                .try_add(&name, "1".into(), lives(seconds(5)))
                .await
                .unwrap();
        }
        tokio::time::sleep(seconds(4)).await;
        assert!(store.protected_bytes() > 0);
        tokio::time::sleep(seconds(3)).await;
        assert_eq!(store.protected_bytes(), 0);
    });
}

#[test]
fn the_sweeper_ends_with_the_store_and_when_the_store_is_empty() {
    paused().block_on(async {
        let (emptied, dropped) = (InMemoryStore::new(), InMemoryStore::new());
        emptied
            .try_add(&key("a"), "1".into(), lives(seconds(1)))
            .await
            .unwrap();
        dropped
            .try_add(&key("a"), "1".into(), long())
            .await
            .unwrap();
        assert_eq!(alive_tasks(), 2);
        drop(dropped);
        tokio::time::sleep(seconds(4)).await;
        assert_eq!(alive_tasks(), 0);

        emptied
            .set(&key("b"), "1".into(), lives(seconds(1)))
            .await
            .unwrap();
        assert_eq!(alive_tasks(), 1, "the next write starts another one");
    });
}

#[test]
fn a_store_outlives_the_runtime_its_sweeper_ran_on() {
    let store = InMemoryStore::new();
    let (first, second) = (paused(), paused());
    first.block_on(async {
        store.try_add(&key("a"), "1".into(), long()).await.unwrap();
        assert_eq!(alive_tasks(), 1);
    });
    drop(first);
    second.block_on(async {
        store.try_add(&key("b"), "1".into(), long()).await.unwrap();
        assert_eq!(alive_tasks(), 1);
    });
}

#[test]
fn a_store_works_without_a_runtime() {
    let (store, clock) = on_manual_clock(InMemoryStore::builder().max_protected_bytes(1000));
    let record = || vec![1; 600].into();
    assert!(done(store.try_add(&key("a"), record(), lives(seconds(1)))));
    clock.advance(seconds(1));
    assert!(done(store.try_add(&key("b"), record(), lives(seconds(1)))));
    assert_eq!(done(store.get(&key("a"))), None);
}

#[test]
fn a_store_works_on_a_runtime_without_a_timer() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = InMemoryStore::new();
        for n in 0..3 {
            assert!(done(store.try_add(&key(n.to_string()), "1".into(), long())));
            tokio::task::yield_now().await;
        }
        assert!(done(store.get(&key("0"))).is_some());
        assert_eq!(alive_tasks(), 0, "no sweeper after the first one failed");
    });
}

#[tokio::test]
async fn every_way_to_free_a_key_gives_a_hint() {
    let (store, clock) = on_manual_clock(InMemoryStore::builder().max_protected_bytes(1000));
    let name = key("lock");
    let mut hints = store.watch(&name).await.unwrap();
    done(store.set(&name, "1".into(), long()));
    assert!(done(store.remove(&name)));
    assert_eq!(hints.next().await, Some(()));

    assert!(done(store.try_add(&name, "1".into(), long())));
    assert!(done(store.try_remove(&name, b"1")));
    assert_eq!(hints.next().await, Some(()));

    assert!(done(store.try_add(
        &name,
        vec![1; 500].into(),
        lives(seconds(1))
    )));
    clock.advance(seconds(1));
    assert!(done(store.try_add(
        &key("other"),
        vec![1; 500].into(),
        long()
    )));
    assert_eq!(hints.next().await, Some(()), "dropped to make room");
}
