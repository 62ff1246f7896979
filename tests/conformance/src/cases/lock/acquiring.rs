//! Taking a free lock, and not taking a held one (L1 to L3, L7, L8, L13).

use std::sync::Arc;

use caching_abstractions::{ErrorCode, LockHandle, seconds};
use tokio::sync::Barrier;

use super::{LONG, RESOURCE, acquired, is_held, lock_key, one, two};
use crate::harness::{Gap, StoreHarness};
use crate::scene::{Scene, ability, absent, bytes, holds, left, long, refused};

pub async fn l1_a_free_lock_is_leased_under_its_key(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let lock = locks.acquire(RESOURCE, scene.life(50)).await.unwrap();
    holds(&store, &lock_key(), lock.token().as_str()).await;
    let left = left(&store, &lock_key()).await;
    assert!(
        left <= scene.ticks(50) && left > scene.ticks(40),
        "{left:?}"
    );
    assert!(lock.is_held());
    assert_eq!(lock.resource(), RESOURCE);
}

pub async fn l1_a_held_lock_gives_none_and_stays_as_it_is(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let lock = locks.acquire(RESOURCE, scene.life(50)).await.unwrap();
    scene.pass(20).await;
    is_held(&locks).await;
    is_held(&one(&scene).await.1).await;
    holds(&store, &lock_key(), lock.token().as_str()).await;
    let left = left(&store, &lock_key()).await;
    assert!(left <= scene.ticks(30), "its life was restarted: {left:?}");
}

pub async fn l1_every_grant_has_a_token_of_its_own(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (_, locks) = one(&scene).await;
    let first = acquired(&locks).await;
    assert!(first.release().await.unwrap());
    let second = acquired(&locks).await;
    assert_ne!(first.token(), second.token());
    assert!(
        second.token().as_str().len() >= 22,
        "128 random bits as text"
    );
    assert!(!first.release().await.unwrap());
    is_held(&locks).await;
}

pub async fn l1_different_resources_do_not_exclude_each_other(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let _lock = acquired(&locks).await;
    for other in [
        "report",
        "report:daily:2",
        "REPORT:DAILY",
        "lock:report:daily",
    ] {
        let lock = locks.try_acquire(other, LONG).await.unwrap();
        let lock = lock.unwrap_or_else(|| panic!("{other} is another resource"));
        assert!(lock.release().await.unwrap());
    }
    assert!(store.get(&lock_key()).await.unwrap().is_some());
}

pub async fn l1_a_resource_that_is_no_key_is_refused(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (_, locks) = one(&scene).await;
    let longest = "x".repeat(512 - "lock:".len());
    for resource in ["two words", "line\nfeed", &format!("{longest}x")] {
        refused(
            locks.try_acquire(resource, LONG).await,
            ErrorCode::InvalidKey,
        );
    }
    let never = locks.try_acquire(RESOURCE, seconds(0)).await;
    refused(never, ErrorCode::InvalidExpiration);
    let longest = locks.try_acquire(&longest, LONG).await.unwrap();
    assert!(longest.is_some());
}

pub async fn l1_one_of_64_wins(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let instances = two(&scene).await;
    for _ in 0..10 {
        let barrier = Arc::new(Barrier::new(64));
        let tasks: Vec<_> = (0..64)
            .map(|task| {
                let (locks, barrier) = (instances[task % 2].clone(), barrier.clone());
                tokio::spawn(async move {
                    barrier.wait().await;
                    locks.try_acquire(RESOURCE, LONG).await.unwrap()
                })
            })
            .collect();
        let mut won = Vec::new();
        for task in tasks {
            won.extend(task.await.unwrap());
        }
        assert_eq!(won.len(), 1, "exactly one task wins");
        assert!(won[0].release().await.unwrap());
    }
}

pub async fn l2_a_held_lock_is_a_conflict_that_names_the_resource(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let lock = here.acquire(RESOURCE, LONG).await.unwrap();
    let error = refused(there.acquire(RESOURCE, LONG).await, ErrorCode::LockHeld);
    assert_eq!(error.message_key(), "caching.lock.held");
    assert_eq!(error.parameter("resource"), Some(RESOURCE));
    assert!(lock.release().await.unwrap());
    let next = there.acquire(RESOURCE, LONG).await;
    assert!(next.is_ok_and(|lock| lock.is_held()));
}

pub async fn l3_other_programs_exclude_and_are_excluded(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let foreign = store.try_add(&lock_key(), bytes("theirs"), long()).await;
    assert!(foreign.unwrap());
    is_held(&locks).await;
    assert!(store.try_remove(&lock_key(), b"theirs").await.unwrap());
    let lock = acquired(&locks).await;
    let foreign = store.try_add(&lock_key(), bytes("theirs"), long()).await;
    assert!(!foreign.unwrap());
    let token = lock.token().as_bytes();
    assert!(
        store.try_remove(&lock_key(), token).await.unwrap(),
        "the value is the token and nothing else"
    );
    absent(&store, &lock_key()).await;
}

pub async fn l7_a_lock_is_not_reentrant(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (_, locks) = one(&scene).await;
    let lock = acquired(&locks).await;
    is_held(&locks).await;
    is_held(&locks.clone()).await;
    assert!(lock.release().await.unwrap());
}

pub async fn l7_after_its_time_anyone_may_acquire(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let late = here.acquire(RESOURCE, scene.life(3)).await.unwrap();
    is_held(&there).await;
    scene.pass(4).await;
    let next = acquired(&there).await;
    assert!(!late.release().await.unwrap());
    is_held(&here).await;
    assert!(next.release().await.unwrap());
}

pub async fn l8_an_unreachable_store_is_never_not_acquired(harness: &dyn StoreHarness) {
    let mut scene = Scene::start(harness).await;
    let (_, locks) = one(&scene).await;
    let lock = acquired(&locks).await;
    let cut = scene.running().cut().await;
    if ability(harness, Gap::Outage, cut).is_none() {
        // A store that is always there answers.
        return is_held(&locks).await;
    }
    let unavailable = ErrorCode::StoreUnavailable;
    refused(locks.try_acquire(RESOURCE, LONG).await, unavailable);
    refused(locks.acquire("free", LONG).await, unavailable);
    refused(
        locks.acquire_within(RESOURCE, LONG, LONG).await,
        unavailable,
    );
    refused(locks.acquire_all(["a", "b"], LONG).await, unavailable);
    refused(lock.release().await, unavailable);
    scene.running().mend().await;
    let recovery = scene.pace().recovery;
    let released = tokio::time::timeout(recovery, async {
        loop {
            if let Ok(released) = lock.release().await {
                return released;
            }
        }
    });
    assert!(released.await.unwrap(), "it may be called again (L5)");
}

pub async fn l13_fencing_numbers_rise_from_holder_to_holder(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let instances = two(&scene).await;
    let mut numbers = Vec::new();
    for round in 0..12 {
        let locks = &instances[round % 2];
        let lock = locks.acquire(RESOURCE, scene.life(3)).await.unwrap();
        numbers.push(lock.fencing());
        // Released, run out, and taken away by force.
        match round % 3 {
            0 => assert!(lock.release().await.unwrap()),
            1 => scene.pass(4).await,
            _ => assert!(locks.store().remove(&lock_key()).await.unwrap()),
        }
    }
    assert!(
        numbers.is_sorted_by(|earlier, later| earlier < later),
        "{numbers:?}"
    );
}

pub async fn l13_a_resource_that_keeps_the_largest_number_refuses_late_holders(
    harness: &dyn StoreHarness,
) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let mut newest = 0;
    let mut write = |lock: &LockHandle| {
        let accepted = lock.fencing() >= newest;
        newest = newest.max(lock.fencing());
        accepted
    };
    let late = here.acquire(RESOURCE, scene.life(3)).await.unwrap();
    assert!(write(&late));
    scene.pass(4).await;
    let next = acquired(&there).await;
    assert!(write(&next));
    assert!(!write(&late), "it woke too late");
    assert!(write(&next));
}
