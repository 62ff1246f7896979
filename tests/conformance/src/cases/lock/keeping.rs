//! Keeping a lock beyond its time, and noticing its loss (L12).

use std::time::Duration;

use futures_util::future::poll_immediate;
use tokio::time::Instant;

use super::{LONG, RESOURCE, acquired, freed, is_held, lock_key, one, soon, two};
use crate::harness::StoreHarness;
use crate::scene::{Client, Scene, absent, holds, put};

/// The lease of the cases here, in ticks. It is renewed about every five.
const LIFE: u32 = 15;

/// Waits (in real time) for a renewal, which leaves more than `ticks` of the lease.
async fn renewed(scene: &Scene, store: &Client, ticks: u32) {
    let began = Instant::now();
    loop {
        let left = store.time_to_live(&lock_key()).await.unwrap();
        if left.expect("the lease stands") > scene.ticks(ticks) {
            return;
        }
        let limit = scene.ticks(LIFE);
        assert!(
            began.elapsed() < limit,
            "it was not renewed within {limit:?}"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub async fn l12_a_lock_is_kept_beyond_its_time(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let lock = locks.acquire(RESOURCE, scene.life(LIFE)).await.unwrap();
    lock.keep_alive();
    for _ in 0..4 {
        scene.pass(8).await;
        renewed(&scene, &store, LIFE - 7).await;
        is_held(&locks).await;
    }
    holds(&store, &lock_key(), lock.token().as_str()).await;
    assert!(lock.is_held());
    let loss = poll_immediate(Box::pin(lock.lost())).await;
    assert!(loss.is_none(), "nothing is lost");
    assert!(lock.release().await.unwrap());
}

pub async fn l12_without_it_a_lock_ends_with_its_time(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let lock = locks.acquire(RESOURCE, scene.life(5)).await.unwrap();
    soon(&scene, "the loss", lock.lost()).await;
    assert!(!lock.is_held());
    assert!(lock.remaining().is_zero());
    scene.pass(5).await;
    absent(&store, &lock_key()).await;
}

pub async fn l12_renewal_ends_with_the_handle(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let lock = here.acquire(RESOURCE, scene.life(LIFE)).await.unwrap();
    lock.keep_alive();
    drop(lock);
    freed(&scene, there.store(), &lock_key()).await;
    let next = acquired(&there).await;
    // Longer than the lease that is gone: whatever renews it would be due by now.
    tokio::time::sleep(scene.ticks(LIFE)).await;
    assert!(next.release().await.unwrap());
    absent(there.store(), &lock_key()).await;
}

pub async fn l12_a_deleted_key_is_a_loss(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let lock = locks.acquire(RESOURCE, scene.life(LIFE)).await.unwrap();
    lock.keep_alive();
    assert!(store.remove(&lock_key()).await.unwrap());
    soon(&scene, "the loss", lock.lost()).await;
    assert!(!lock.is_held());
    absent(&store, &lock_key()).await;
    assert!(!lock.release().await.unwrap());
    let _next = acquired(&locks).await;
}

pub async fn l12_an_overwritten_key_is_a_loss(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let lock = locks.acquire(RESOURCE, scene.life(LIFE)).await.unwrap();
    lock.keep_alive();
    put(&store, &lock_key(), "theirs").await;
    soon(&scene, "the loss", lock.lost()).await;
    assert!(!lock.release().await.unwrap());
    holds(&store, &lock_key(), "theirs").await;
}

pub async fn l12_renewal_never_brings_a_lost_lock_back(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let lock = here.acquire(RESOURCE, scene.life(LIFE)).await.unwrap();
    lock.keep_alive();
    assert!(there.store().remove(&lock_key()).await.unwrap());
    let next = there.acquire(RESOURCE, LONG).await.unwrap();
    soon(&scene, "the loss", lock.lost()).await;
    holds(there.store(), &lock_key(), next.token().as_str()).await;
    assert!(next.fencing() > lock.fencing());
    drop(lock);
    scene.settle().await;
    assert!(next.release().await.unwrap());
}
