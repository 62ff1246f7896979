use std::thread;

use futures_util::FutureExt;
use futures_util::future::poll_immediate;
use tokio::runtime::{Builder, Runtime};

use super::store::{Fault, FaultyStore, Op};
use super::{faulty, key, settle};
use crate::error::ErrorCode;
use crate::expiration::{minutes, seconds};

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap()
}

/// Waits in real time until nothing stands at `a`.
async fn freed(store: &FaultyStore) {
    let freed = async {
        while store.memory.get(&key("a")).is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(seconds(10), freed).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn l5_the_first_release_is_true_and_after_that_nothing_is_asked() {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", minutes(5)).await.unwrap();
    assert!(lock.release().await.unwrap());
    assert!(!lock.is_held());
    let _next = locks.acquire("a", minutes(5)).await.unwrap();
    assert!(!lock.release().await.unwrap());
    drop(lock);
    settle().await;
    assert_eq!(store.count(Op::Release), 1);
    assert!(store.memory.get(&key("a")).is_some());
}

#[tokio::test(start_paused = true)]
async fn l5_release_of_an_expired_lease_is_false() {
    let (locks, _store) = faulty();
    let lock = locks.acquire("a", seconds(1)).await.unwrap();
    tokio::time::sleep(seconds(2)).await;
    assert!(!lock.release().await.unwrap());
    assert!(!lock.release().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn l5_anothers_lock_is_never_released() {
    let (locks, store) = faulty();
    let late = locks.acquire("a", seconds(1)).await.unwrap();
    tokio::time::sleep(seconds(2)).await;
    let next = locks.acquire("a", minutes(5)).await.unwrap();
    assert!(!late.release().await.unwrap());
    drop(late);
    settle().await;
    assert_eq!(
        store.memory.get(&key("a")).unwrap(),
        next.token().as_bytes()
    );
}

#[tokio::test(start_paused = true)]
async fn l5_a_value_of_another_kind_is_not_ours() {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", minutes(5)).await.unwrap();
    store.next(Op::Release, Fault::WrongKind);
    assert!(!lock.release().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn l5_after_an_error_it_may_be_called_again() {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", minutes(5)).await.unwrap();
    store.next(Op::Release, Fault::FailBefore);
    let error = lock.release().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(lock.release().await.unwrap());
    assert!(!lock.release().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn l5_of_releases_at_the_same_time_one_is_true() {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", minutes(5)).await.unwrap();
    store.next(Op::Release, Fault::SlowBefore(seconds(1)));
    let (a, b, c) = tokio::join!(lock.release(), lock.release(), lock.release());
    let won = [a, b, c]
        .into_iter()
        .filter(|answer| *answer.as_ref().unwrap());
    assert_eq!(won.count(), 1);
    assert_eq!(store.count(Op::Release), 1);
}

#[tokio::test(start_paused = true)]
async fn l5_the_next_of_releases_at_the_same_time_takes_over_after_an_error() {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", minutes(5)).await.unwrap();
    store.next(Op::Release, Fault::FailBefore);
    let (first, second) = tokio::join!(lock.release(), lock.release());
    assert!(first.is_err());
    assert!(second.unwrap());
}

#[tokio::test(start_paused = true)]
async fn l5_a_cancelled_release_can_be_called_again() {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", minutes(5)).await.unwrap();
    store.next(Op::Release, Fault::HangBefore);
    assert!(poll_immediate(Box::pin(lock.release())).await.is_none());
    assert!(lock.release().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn l5_a_cancelled_release_is_finished_by_drop() {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", minutes(5)).await.unwrap();
    store.next(Op::Release, Fault::HangBefore);
    assert!(poll_immediate(Box::pin(lock.release())).await.is_none());
    drop(lock);
    settle().await;
    assert_eq!(store.memory.get(&key("a")), None);
}

#[tokio::test(start_paused = true)]
async fn l6_drop_releases_and_tries_again_while_the_store_is_away() {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", minutes(5)).await.unwrap();
    store.always(Op::Release, Fault::FailBefore);
    drop(lock);
    tokio::time::sleep(seconds(30)).await;
    assert!(store.memory.get(&key("a")).is_some());
    store.always(Op::Release, None);
    tokio::time::sleep(seconds(20)).await;
    assert_eq!(store.memory.get(&key("a")), None);
}

#[test]
fn l6_drop_outside_a_runtime_uses_the_one_it_was_acquired_on() {
    let (locks, store) = faulty();
    let runtime = runtime();
    let lock = runtime.block_on(locks.acquire("a", minutes(5))).unwrap();
    thread::spawn(move || drop(lock)).join().unwrap();
    runtime.block_on(freed(&store));
}

#[test]
fn l6_drop_after_its_runtime_ended_uses_the_current_one() {
    let (locks, store) = faulty();
    let first = runtime();
    let lock = first.block_on(locks.acquire("a", minutes(5))).unwrap();
    drop(first);
    runtime().block_on(async move {
        drop(lock);
        freed(&store).await;
    });
}

#[test]
fn l6_a_release_whose_runtime_ends_moves_on_to_the_other_one() {
    let (locks, store) = faulty();
    let lasting = runtime();
    let lock = lasting.block_on(locks.acquire("a", minutes(5))).unwrap();
    store.next(Op::Release, Fault::HangBefore);
    let (brief, asked) = (runtime(), store.clone());
    brief.block_on(async move {
        drop(lock);
        let begun = async {
            while asked.count(Op::Release) == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(seconds(10), begun).await.unwrap();
    });
    drop(brief);
    lasting.block_on(freed(&store));
}

#[test]
fn l6_drop_without_any_runtime_does_not_panic() {
    let (locks, store) = faulty();
    let first = runtime();
    let lock = first.block_on(locks.acquire("a", minutes(5))).unwrap();
    drop(first);
    drop(lock);
    let never_had_one = locks.acquire("b", minutes(5)).now_or_never().unwrap();
    drop(never_had_one.unwrap());
    assert!(store.memory.get(&key("a")).is_some());
    assert!(store.memory.get(&key("b")).is_some());
}

#[test]
fn l6_drop_during_shutdown_does_not_panic() {
    let (locks, store) = faulty();
    let runtime = runtime();
    let lock = runtime.block_on(locks.acquire("a", minutes(5))).unwrap();
    let (started, has_started) = std::sync::mpsc::channel();
    let task = runtime.spawn(async move {
        let _lock = lock;
        started.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    has_started.recv().unwrap();
    drop(runtime);
    // The task was dropped by the shutdown, not by a panic.
    assert!(task.now_or_never().unwrap().unwrap_err().is_cancelled());
    assert_eq!(store.count(Op::Lease), 1);
}
