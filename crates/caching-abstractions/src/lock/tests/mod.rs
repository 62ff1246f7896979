//! What needs a store that fails on purpose or a clock that stands still; what any real store can
//! show is proved by the conformance suite.

mod acquire;
mod metrics;
mod multi;
mod release;
mod renewal;
mod store;
mod unsettled;
mod waiting;
mod with_lock;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use store::{FaultyStore, Op};
use tokio::time::Instant;

use super::DistributedLock;
use crate::expiration::{milliseconds, seconds};
use crate::key::CacheKey;

/// A lock on a store that fails when it is told to.
fn faulty() -> (DistributedLock, Arc<FaultyStore>) {
    let store = Arc::new(FaultyStore::default());
    (DistributedLock::new(store.clone()), store)
}

fn key(resource: &str) -> CacheKey {
    super::key_of(resource).unwrap()
}

/// Lets everything that is ready run, and a few milliseconds of paused time pass.
async fn settle() {
    tokio::time::sleep(milliseconds(10)).await;
}

/// What `future` gave, and how long it took by the paused clock.
async fn timed<F: Future>(future: F) -> (F::Output, Duration) {
    let began = Instant::now();
    let output = future.await;
    (output, began.elapsed())
}

/// Waits in paused time until the store has answered `count` requests of `op`.
async fn until_asked(store: &FaultyStore, op: Op, count: usize) {
    tokio::time::timeout(seconds(600), async {
        while store.count(op) < count {
            tokio::time::sleep(milliseconds(1)).await;
        }
    })
    .await
    .unwrap();
}
