//! The lease lock (spec part 5), as far as a real store can show it. What needs lost replies is
//! proved beside the lock itself.

mod acquiring;
mod keeping;
mod releasing;
mod several;
mod waiting;
mod working;

pub use acquiring::*;
pub use keeping::*;
pub use releasing::*;
pub use several::*;
pub use waiting::*;
pub use working::*;

use std::time::Duration;

use caching_abstractions::{CacheKey, DistributedLock, LockHandle, hours, seconds};
use tokio::time::Instant;

use crate::scene::{Client, Scene, key};

/// What the cases lock.
const RESOURCE: &str = "report:daily";
/// A lease and a wait that outlive their case.
const LONG: Duration = hours(1);

/// The key under which [`RESOURCE`] is leased (L1).
fn lock_key() -> CacheKey {
    key("lock:report:daily")
}

/// A client and a lock on it.
async fn one(scene: &Scene) -> (Client, DistributedLock) {
    let client = scene.client().await;
    (client.clone(), DistributedLock::new(client))
}

/// The locks of two instances: each on a client of its own.
async fn two(scene: &Scene) -> [DistributedLock; 2] {
    [one(scene).await.1, one(scene).await.1]
}

/// The lock on [`RESOURCE`], which is free.
async fn acquired(locks: &DistributedLock) -> LockHandle {
    let lock = locks.try_acquire(RESOURCE, LONG).await.unwrap();
    lock.expect("the lock is free")
}

/// Asserts that somebody holds [`RESOURCE`].
async fn is_held(locks: &DistributedLock) {
    let lock = locks.try_acquire(RESOURCE, LONG).await.unwrap();
    assert!(lock.is_none(), "the lock is held");
}

/// Within this (real) time a waiter has its turn without a hint, and a loss is noticed: the poll
/// of a waiter takes up to 1.5 s, and a lease here lasts up to 15 ticks.
fn patience(scene: &Scene) -> Duration {
    scene.pace().hint + seconds(2) + scene.ticks(15)
}

/// Waits (in real time) until nothing stands at `key`.
async fn freed(scene: &Scene, store: &Client, key: &CacheKey) {
    let began = Instant::now();
    while store.get(key).await.unwrap().is_some() {
        assert!(began.elapsed() < patience(scene), "{key} is still leased");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// What `future` gives within [`patience`].
async fn soon<F: Future>(scene: &Scene, what: &str, future: F) -> F::Output {
    let limit = patience(scene);
    match tokio::time::timeout(limit, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what} takes longer than {limit:?}"),
    }
}
