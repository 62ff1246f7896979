//! Giving a lock back: by release, by drop, after a cancelled acquire (L5, L6, L9).

use std::pin::pin;

use futures_util::future::{join_all, poll_immediate};

use super::{LONG, RESOURCE, acquired, freed, is_held, lock_key, one, patience, soon, two};
use crate::harness::StoreHarness;
use crate::scene::{Scene, absent, holds, put};

pub async fn l5_the_first_release_is_true_and_the_next_false(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let lock = acquired(&locks).await;
    assert!(lock.release().await.unwrap());
    absent(&store, &lock_key()).await;
    assert!(!lock.is_held());
    assert!(!lock.release().await.unwrap());
    let _next = acquired(&locks).await;
    assert!(!lock.release().await.unwrap());
    drop(lock);
    scene.settle().await;
    is_held(&locks).await;
}

pub async fn l5_of_releases_at_the_same_time_one_is_true(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    for _ in 0..10 {
        let lock = acquired(&locks).await;
        let answers = join_all((0..8).map(|_| lock.release())).await;
        let won = answers
            .into_iter()
            .filter(|answer| *answer.as_ref().unwrap());
        assert_eq!(won.count(), 1);
        absent(&store, &lock_key()).await;
    }
}

pub async fn l5_release_of_an_expired_lease_is_false(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (_, locks) = one(&scene).await;
    let lock = locks.acquire(RESOURCE, scene.life(3)).await.unwrap();
    scene.pass(4).await;
    assert!(!lock.release().await.unwrap());
    assert!(!lock.release().await.unwrap());
}

pub async fn l5_a_value_that_is_not_ours_is_left_alone(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let lock = acquired(&locks).await;
    put(&store, &lock_key(), "theirs").await;
    assert!(!lock.release().await.unwrap());
    drop(lock);
    scene.settle().await;
    holds(&store, &lock_key(), "theirs").await;
}

pub async fn l6_dropping_the_handle_frees_the_lock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    drop(acquired(&locks).await);
    freed(&scene, &store, &lock_key()).await;
    let _next = acquired(&locks).await;
}

pub async fn l6_dropping_the_handle_outside_a_runtime_frees_the_lock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let lock = acquired(&locks).await;
    let dropped = std::thread::spawn(move || drop(lock)).join();
    assert!(dropped.is_ok(), "it never panics");
    freed(&scene, &store, &lock_key()).await;
}

pub async fn l6_dropping_a_late_handle_takes_nothing_from_the_next_holder(
    harness: &dyn StoreHarness,
) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let late = here.acquire(RESOURCE, scene.life(3)).await.unwrap();
    scene.pass(4).await;
    let next = acquired(&there).await;
    drop(late);
    scene.settle().await;
    assert!(next.release().await.unwrap());
}

/// Dropped after its first, second, … poll, whatever the store has done by then.
pub async fn l9_a_cancelled_acquire_leaves_no_lock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    for polls in 0..8 {
        {
            let mut acquire = pin!(locks.try_acquire(RESOURCE, LONG));
            for _ in 0..polls {
                if poll_immediate(&mut acquire).await.is_some() {
                    break;
                }
                tokio::time::sleep(scene.pace().settle / 16).await;
            }
        }
        let next = locks.acquire_within(RESOURCE, LONG, patience(&scene));
        let next = next.await.expect("no lock stays that nobody holds");
        assert!(next.release().await.unwrap());
        // Nothing is left on its way that would lease the key later.
        scene.settle().await;
        absent(&store, &lock_key()).await;
    }
}

pub async fn l9_a_cancelled_waiter_leaves_no_lock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    put(&store, &lock_key(), "theirs").await;
    for _ in 0..8 {
        let wait = locks.acquire_within(RESOURCE, LONG, LONG);
        let cancelled = tokio::time::timeout(scene.pace().settle / 4, wait).await;
        assert!(cancelled.is_err(), "the lock is held");
    }
    assert!(store.try_remove(&lock_key(), b"theirs").await.unwrap());
    scene.settle().await;
    absent(&store, &lock_key()).await;
    let next = locks.acquire_within(RESOURCE, LONG, LONG);
    let next = soon(&scene, "a free lock", next).await;
    assert!(next.unwrap().release().await.unwrap());
}
