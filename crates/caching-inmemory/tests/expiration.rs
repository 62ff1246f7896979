//! When entries end (E2, E4, E5), where the two halves of the store meet.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caching_abstractions::{CacheStore, Clock, milliseconds, seconds};
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
    let (store, clock) = on_interrupting_clock();
    let count = key("count");
    done(store.set(&count, "1".into(), slides(seconds(10))));
    clock.advance(seconds(5));
    let (other, name) = (store.clone(), count.clone());
    clock.interrupt_next_look(move || {
        assert_eq!(done(other.increment(&name, 1, long())), 2);
    });
    assert_eq!(done(store.get(&count)).unwrap(), "2");
    assert_eq!(done(store.time_to_live(&count)), Some(seconds(10)));
}

#[test]
fn e4_what_one_reader_saw_expire_no_other_reader_brings_back() {
    let (store, clock) = on_interrupting_clock();
    let page = key("page");
    done(store.set(&page, "1".into(), slides(seconds(10))));
    clock.advance(milliseconds(9_999));
    let (other, name, later) = (store.clone(), page.clone(), Arc::clone(&clock));
    clock.interrupt_next_look(move || {
        later.advance(milliseconds(1));
        assert_eq!(done(other.get(&name)), None);
    });
    assert_eq!(done(store.get(&page)), None);
}

/// A clock on which something can happen between a look at it and what is done by that time.
#[derive(Default)]
struct InterruptingClock {
    monotonic: Mutex<Duration>,
    interruption: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl InterruptingClock {
    fn advance(&self, by: Duration) {
        *self.monotonic.lock().unwrap() += by;
    }

    fn interrupt_next_look(&self, by: impl FnOnce() + Send + 'static) {
        *self.interruption.lock().unwrap() = Some(Box::new(by));
    }
}

impl Clock for InterruptingClock {
    fn monotonic(&self) -> Duration {
        let seen = *self.monotonic.lock().unwrap();
        let interruption = self.interruption.lock().unwrap().take();
        if let Some(interruption) = interruption {
            interruption();
        }
        seen
    }

    fn unix_time(&self) -> Duration {
        self.monotonic()
    }
}

impl fmt::Debug for InterruptingClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InterruptingClock")
    }
}

fn on_interrupting_clock() -> (InMemoryStore, Arc<InterruptingClock>) {
    let clock = Arc::new(InterruptingClock::default());
    let store = InMemoryStore::builder()
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .build();
    (store, clock)
}
