//! When entries end (E2, E4, E5), where the two halves of the store meet.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use caching_abstractions::{CacheStore, milliseconds, seconds};
use caching_inmemory::InMemoryStore;
use support::{done, key, lives, long, on_manual_clock, slides, ttl};

#[tokio::test(start_paused = true)]
async fn e4_the_default_clock_follows_the_runtimes_paused_time() {
    let store = InMemoryStore::new();
    let (page, record) = (key("page"), key("record"));
    store
        .set(&page, "1".into(), lives(seconds(60)))
        .await
        .unwrap();
    assert!(
        store
            .try_add(&record, "1".into(), lives(seconds(60)))
            .await
            .unwrap()
    );
    tokio::time::advance(milliseconds(59_999)).await;
    assert!(store.get(&page).await.unwrap().is_some());
    assert!(store.get(&record).await.unwrap().is_some());
    tokio::time::advance(milliseconds(1)).await;
    assert_eq!(store.get(&page).await.unwrap(), None);
    assert_eq!(store.get(&record).await.unwrap(), None);
}

#[test]
fn e2_a_sliding_entry_stays_sliding_when_a_number_moves_it() {
    let (store, clock) = on_manual_clock(InMemoryStore::builder());
    let count = key("count");
    done(store.set(&count, "1".into(), slides(seconds(10))));
    clock.advance(seconds(6));
    assert!(done(store.get(&count)).is_some());
    clock.advance(seconds(6));
    assert_eq!(done(store.increment(&count, 1, long())), 2);
    assert_eq!(
        done(store.time_to_live(&count)),
        Some(seconds(4)),
        "no read"
    );
    assert!(done(store.get(&count)).is_some());
    clock.advance(seconds(9));
    assert_eq!(done(store.get(&count)).unwrap(), "2", "it slides on");
    clock.advance(seconds(10));
    assert_eq!(done(store.get(&count)), None);
}

#[test]
fn e5_a_moved_entry_takes_the_whole_new_expiration() {
    let (store, clock) = on_manual_clock(InMemoryStore::builder());
    let page = key("page");
    done(store.set(&page, "1".into(), slides(seconds(10))));
    assert!(done(store.try_extend(&page, b"1", ttl(seconds(15)))));
    clock.advance(seconds(9));
    assert!(done(store.get(&page)).is_some());
    clock.advance(seconds(6));
    assert_eq!(done(store.get(&page)), None);
}

#[test]
fn e4_an_expired_entry_is_absent_in_either_half_for_a_write() {
    let (store, clock) = on_manual_clock(InMemoryStore::builder());
    let (page, record) = (key("page"), key("record"));
    done(store.set(&page, "1".into(), slides(seconds(1))));
    assert!(done(store.try_add(&record, "1".into(), slides(seconds(1)))));
    clock.advance(seconds(1));
    for name in [&page, &record] {
        assert!(!done(store.try_replace(name, b"1", "2".into(), long())));
        assert!(!done(store.try_remove(name, b"1")));
        assert!(!done(store.try_extend(name, b"1", ttl(seconds(1)))));
        assert!(done(store.try_add(name, "3".into(), long())));
        assert_eq!(done(store.get(name)).unwrap(), "3");
    }
}

#[test]
fn e2_a_read_that_meets_a_move_counts_for_the_moved_entry() {
    for _ in 0..300 {
        let (store, clock) = on_manual_clock(InMemoryStore::builder());
        let count = key("count");
        done(store.set(&count, "1".into(), slides(seconds(10))));
        clock.advance(seconds(5));
        thread::scope(|scope| {
            scope.spawn(|| assert!(done(store.get(&count)).is_some()));
            assert_eq!(done(store.increment(&count, 1, long())), 2);
        });
        assert_eq!(done(store.time_to_live(&count)), Some(seconds(10)));
    }
}

#[test]
fn e4_what_one_reader_saw_expire_no_other_reader_brings_back() {
    for _ in 0..300 {
        let (store, clock) = on_manual_clock(InMemoryStore::builder());
        let (page, was_absent) = (key("page"), AtomicBool::new(false));
        done(store.set(&page, "1".into(), slides(seconds(10))));
        clock.advance(milliseconds(9_999));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let before = was_absent.load(Ordering::SeqCst);
                        let is_there = done(store.get(&page)).is_some();
                        assert!(!(before && is_there), "it came back");
                        was_absent.fetch_or(!is_there, Ordering::SeqCst);
                    }
                });
            }
            clock.advance(milliseconds(1));
        });
    }
}
