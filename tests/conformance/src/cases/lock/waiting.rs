//! Waiting for a held lock (L11).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caching_abstractions::{DistributedLock, ErrorCode};
use futures_util::future::join;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{LONG, RESOURCE, acquired, is_held, lock_key, one, soon, two};
use crate::harness::StoreHarness;
use crate::scene::{Scene, refused};

pub async fn l11_a_waiter_gets_the_lock_after_a_release(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    for _ in 0..5 {
        let lock = acquired(&here).await;
        let waiting = there.acquire_within(RESOURCE, LONG, LONG);
        let release = async {
            scene.settle().await;
            assert!(lock.release().await.unwrap());
        };
        let both = join(waiting, release);
        let (next, ()) = soon(&scene, "the turn", both).await;
        let next = next.unwrap();
        assert!(next.fencing() > lock.fencing());
        assert!(next.release().await.unwrap());
    }
}

pub async fn l11_a_wait_that_is_too_short_times_out(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let lock = acquired(&here).await;
    for wait in [Duration::ZERO, scene.pace().settle * 5] {
        let began = Instant::now();
        let waited = there.acquire_within(RESOURCE, LONG, wait);
        let waited = soon(&scene, "giving up", waited).await;
        let error = refused(waited, ErrorCode::LockHeld);
        assert!(began.elapsed() >= wait, "it gave up too early");
        assert_eq!(error.message_key(), "caching.lock.wait_timeout");
        assert_eq!(error.parameter("resource"), Some(RESOURCE));
    }
    assert!(lock.release().await.unwrap());
    let free = there.acquire_within(RESOURCE, LONG, Duration::ZERO).await;
    assert!(free.is_ok_and(|lock| lock.is_held()));
}

/// The holder vanishes without a release, so no hint comes and the poll has to find it.
pub async fn l11_a_waiter_outlives_a_holder_that_vanished(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let vanished = here.acquire(RESOURCE, scene.life(3)).await.unwrap();
    std::mem::forget(vanished);
    let waiting = there.acquire_within(RESOURCE, LONG, LONG);
    let time = async {
        scene.settle().await;
        scene.pass(4).await;
    };
    let both = join(waiting, time);
    let (next, ()) = soon(&scene, "the end of the lease", both).await;
    assert!(next.unwrap().is_held());
}

pub async fn l11_a_cancelled_waiter_blocks_nobody(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let lock = acquired(&locks).await;
    let impatient: Vec<_> = (0..8).map(|_| waiter(&locks)).collect();
    scene.settle().await;
    let patient = waiter(&locks);
    scene.settle().await;
    for waiting in impatient {
        waiting.abort();
        assert!(
            waiting.await.unwrap_err().is_cancelled(),
            "the lock is held"
        );
    }
    assert!(lock.release().await.unwrap());
    let next = soon(&scene, "the turn", patient).await.unwrap();
    assert!(next.is_held());
    assert!(store.get(&lock_key()).await.unwrap().is_some());
}

fn waiter(locks: &DistributedLock) -> tokio::task::JoinHandle<caching_abstractions::LockHandle> {
    let locks = locks.clone();
    tokio::spawn(async move { locks.acquire_within(RESOURCE, LONG, LONG).await.unwrap() })
}

/// What the lock guards in a race: who is inside, and the fencing numbers in order of entry.
#[derive(Debug, Default)]
struct Guarded {
    inside: AtomicBool,
    numbers: Mutex<Vec<u64>>,
}

impl Guarded {
    async fn visit(&self, fencing: u64) {
        let occupied = self.inside.swap(true, Ordering::SeqCst);
        assert!(!occupied, "two are inside at once");
        self.numbers.lock().push(fencing);
        tokio::task::yield_now().await;
        self.inside.store(false, Ordering::SeqCst);
    }
}

pub async fn l11_64_waiters_get_their_turns_one_at_a_time(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let instances = two(&scene).await;
    let guarded = Arc::new(Guarded::default());
    let first = acquired(&instances[0]).await;
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let (locks, guarded) = (instances[task % 2].clone(), guarded.clone());
            tokio::spawn(async move {
                let lock = locks.acquire_within(RESOURCE, LONG, LONG).await.unwrap();
                guarded.visit(lock.fencing()).await;
                assert!(lock.release().await.unwrap());
            })
        })
        .collect();
    scene.settle().await;
    is_held(&instances[1]).await;
    assert!(guarded.numbers.lock().is_empty(), "the lock is held");
    assert!(first.release().await.unwrap());
    for task in tasks {
        task.await.unwrap();
    }
    let numbers = guarded.numbers.lock();
    assert_eq!(numbers.len(), 64, "each had its turn");
    assert!(
        numbers.is_sorted_by(|earlier, later| earlier < later),
        "{numbers:?}"
    );
}
