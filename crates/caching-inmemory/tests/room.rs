//! What a full store does (S2).
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use bytes::Bytes;
use caching_abstractions::{CacheStore, LeaseToken, ManualClock, hours, seconds};
use caching_inmemory::InMemoryStore;
use support::{done, key, lives, long, now, on_manual_clock, refused, ttl};

const PROTECTED: u64 = 100_000;
const EVICTABLE: u64 = 100_000;

fn small() -> (InMemoryStore, ManualClock) {
    let builder = InMemoryStore::builder()
        .max_protected_bytes(PROTECTED)
        .max_capacity_bytes(EVICTABLE);
    on_manual_clock(builder)
}

fn hundred_bytes() -> Bytes {
    Bytes::from_static(&[7; 100])
}

/// Adds entries until not even an empty one fits under a name of ten characters or more.
fn fill_with_plain_entries(store: &InMemoryStore) {
    for (kind, value) in [("plain", hundred_bytes()), ("tiny", Bytes::new())] {
        let fits = |n: &usize| {
            let name = key(format!("{kind}:{n}"));
            now(store.try_add(&name, value.clone(), long())).is_ok()
        };
        let added = (0..).take_while(fits).count();
        assert!(added < 1000, "the store never fills");
    }
}

#[test]
fn s2_a_full_store_refuses_and_never_forgets_a_lock() {
    let (store, _) = small();
    let token = LeaseToken::generate();
    let mut leased = 0;
    let refusal = loop {
        match now(store.try_lease(&key(format!("lock:{leased}")), &token, ttl(hours(1)))) {
            Ok(fencing) => assert!(fencing.is_some()),
            Err(error) => break error,
        }
        leased += 1;
    };
    refused::<()>(Err(refusal));
    for n in 0..5000 {
        done(store.set(&key(format!("page:{n}")), hundred_bytes(), long()));
    }
    refused(now(store.try_add(&key("late"), hundred_bytes(), long())));
    for n in 0..leased {
        let lock = key(format!("lock:{n}"));
        assert_eq!(done(store.get(&lock)).unwrap(), token.as_bytes());
        let other = LeaseToken::generate();
        assert_eq!(
            now(store.try_lease(&lock, &other, ttl(hours(1)))).unwrap(),
            None
        );
    }
}

#[test]
fn s2_a_twentieth_is_kept_for_leases_and_essential_writes() {
    let (store, _) = small();
    fill_with_plain_entries(&store);
    let plain = store.protected_bytes();
    assert!(plain <= PROTECTED - PROTECTED / 20);
    assert!(plain > PROTECTED - PROTECTED / 20 - 400, "{plain}");

    let lock = key("lock");
    assert!(done(store.try_lease(&lock, &LeaseToken::generate(), ttl(hours(1)))).is_some());
    let marker = done(store.get_or_add(&key("marker"), hundred_bytes(), long().essential()));
    assert_eq!(marker, None);
    refused(now(store.try_add(
        &key("another-plain"),
        Bytes::new(),
        long(),
    )));

    let more = (0..)
        .take_while(|n| {
            let key = key(format!("essential:{n}"));
            now(store.try_add(&key, hundred_bytes(), long().essential())).is_ok()
        })
        .count();
    assert!(more > 5, "{more}");
    assert!(store.protected_bytes() <= PROTECTED);
}

#[test]
fn s2_a_refused_write_changes_nothing() {
    let (store, _) = small();
    fill_with_plain_entries(&store);
    let before = store.protected_bytes();
    let (grown, standing) = (Bytes::from(vec![1; 4000]), key("plain:0"));
    refused(now(store.try_replace(
        &standing,
        &hundred_bytes(),
        grown.clone(),
        long(),
    )));
    refused(now(store.set(&standing, grown, long())));
    assert_eq!(done(store.get(&standing)), Some(hundred_bytes()));

    let page = key("evictable-page");
    done(store.set(&page, hundred_bytes(), lives(seconds(30))));
    refused(now(store.try_extend(
        &page,
        &hundred_bytes(),
        ttl(hours(2)),
    )));
    refused(now(store.try_replace(
        &page,
        &hundred_bytes(),
        Bytes::new(),
        long(),
    )));
    assert_eq!(done(store.time_to_live(&page)), Some(seconds(30)));
    let count = key("evictable-count");
    done(store.set(&count, "1".into(), long()));
    refused(now(store.increment(&count, 1, long())));
    assert_eq!(done(store.get(&count)).unwrap(), "1");
    assert_eq!(store.protected_bytes(), before);
}

#[test]
fn s2_what_does_not_grow_fits_into_a_full_store() {
    let (store, _) = small();
    fill_with_plain_entries(&store);
    let (standing, value) = (key("plain:1"), Bytes::from(vec![9; 100]));
    assert!(done(store.try_replace(
        &standing,
        &hundred_bytes(),
        value.clone(),
        long()
    )));
    assert!(done(store.try_extend(&standing, &value, ttl(hours(3)))));
    done(store.set(&standing, "7".into(), long()));
    assert_eq!(done(store.increment(&standing, 1, long())), 8);
}

#[test]
fn s2_expired_entries_in_other_shards_make_room() {
    let (store, clock) = small();
    let half = (PROTECTED / 2 / 400) as usize;
    for n in 0..half {
        let short = lives(seconds(5));
        assert!(done(store.try_add(
            &key(format!("short:{n}")),
            hundred_bytes(),
            short
        )));
    }
    fill_with_plain_entries(&store);
    clock.advance(seconds(5));
    let (room, large) = (half * 250, key("large"));
    assert!(done(store.try_add(&large, vec![1; room].into(), long())));
    assert!(store.protected_bytes() <= PROTECTED);
}

#[test]
fn s2_eviction_keeps_what_was_used_last() {
    let (store, _) = small();
    let kept = key("kept");
    done(store.set(&kept, "always read".into(), long()));
    for n in 0..3000 {
        let page = key(format!("page:{n}"));
        done(store.set(&page, hundred_bytes(), long()));
        assert_eq!(done(store.get(&page)), Some(hundred_bytes()), "just set");
        assert!(done(store.get(&kept)).is_some(), "read {n} sets ago");
    }
    assert!(store.evictable_bytes() <= EVICTABLE);
    assert!(store.evictable_bytes() > EVICTABLE / 2);
    let survivors = (0..3000)
        .filter(|n| done(store.get(&key(format!("page:{n}")))).is_some())
        .collect::<Vec<_>>();
    let first = survivors[0];
    assert!(first > 2000, "{first} survives");
}

#[test]
fn s2_a_set_larger_than_its_budget_keeps_the_old_value() {
    let (store, _) = small();
    let page = key("page");
    done(store.set(&page, "old".into(), long()));
    refused(now(store.set(
        &page,
        vec![1; EVICTABLE as usize].into(),
        long(),
    )));
    store.evictable_bytes();
    assert_eq!(done(store.get(&page)).unwrap(), "old");
    let almost = vec![1; EVICTABLE as usize - 1000];
    done(store.set(&page, almost.clone().into(), long()));
    store.evictable_bytes();
    assert_eq!(done(store.get(&page)).unwrap(), almost);
}

#[test]
fn s2_a_set_over_a_protected_entry_stays_protected_and_is_charged_there() {
    let (store, _) = small();
    let record = key("record");
    assert!(done(store.try_add(&record, "1".into(), long())));
    done(store.set(&record, "2".into(), long()));
    for n in 0..3000 {
        done(store.set(&key(format!("page:{n}")), hundred_bytes(), long()));
    }
    assert_eq!(done(store.get(&record)).unwrap(), "2");
    assert!(done(store.remove(&record)));
    assert_eq!(store.protected_bytes(), 0);
}

#[test]
fn s2_a_set_over_an_expired_protected_entry_is_evictable() {
    let (store, clock) = small();
    let record = key("record");
    assert!(done(store.try_add(&record, "1".into(), lives(seconds(1)))));
    clock.advance(seconds(1));
    done(store.set(&record, "2".into(), long()));
    assert_eq!(store.protected_bytes(), 0);
    assert!(store.evictable_bytes() > 0);
}

#[test]
fn s2_an_evictable_entry_that_another_operation_changes_moves_over() {
    let (store, _) = small();
    let (replaced, extended, counted, relayed) = (key("a"), key("b"), key("c"), key("d"));
    let token = LeaseToken::new("1").unwrap();
    for page in [&replaced, &extended, &counted, &relayed] {
        done(store.set(page, "1".into(), long()));
    }
    assert!(done(store.try_replace(&replaced, b"1", "2".into(), long())));
    assert!(done(store.try_extend(&extended, b"1", ttl(hours(1)))));
    assert_eq!(done(store.increment(&counted, 1, long())), 2);
    assert!(done(store.try_relay(&relayed, &token, &token, ttl(hours(1)))).is_some());
    assert_eq!(store.evictable_bytes(), 0);
    for n in 0..3000 {
        done(store.set(&key(format!("page:{n}")), hundred_bytes(), long()));
    }
    for page in [&replaced, &extended, &counted, &relayed] {
        assert!(done(store.remove(page)));
    }
    assert_eq!(store.protected_bytes(), 0);
}

#[test]
fn s2_every_byte_is_given_back() {
    let (store, clock) = small();
    for n in 0..50 {
        let name = key(n.to_string());
        done(store.set(&name, hundred_bytes(), lives(seconds(5))));
        if n % 2 == 0 {
            assert!(done(store.try_replace(
                &name,
                &hundred_bytes(),
                vec![n; 150].into(),
                long()
            )));
        }
        if n % 4 == 0 {
            assert!(done(store.try_remove(&name, &[n; 150])));
        }
    }
    clock.advance(hours(1));
    for n in 0..50 {
        assert!(!done(store.remove(&key(n.to_string()))));
    }
    assert_eq!((store.protected_bytes(), store.evictable_bytes()), (0, 0));
}

#[test]
fn s2_a_small_part_of_a_large_buffer_keeps_only_itself() {
    let (store, _) = small();
    let large = Bytes::from(vec![7; 1_000_000]);
    done(store.set(&key("evictable"), large.slice(..10), long()));
    assert!(done(store.try_add(
        &key("protected"),
        large.slice(..10),
        long()
    )));
    assert!(large.is_unique());
}
