use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;

use super::store::{Fault, Op};
use super::{faulty, key, settle};
use crate::error::ErrorCode;
use crate::expiration::{minutes, seconds};

#[tokio::test(start_paused = true)]
async fn l10_the_works_own_result_comes_back_and_the_lock_is_free() {
    let (locks, store) = faulty();
    let output: Result<u8, &str> = locks
        .with_lock("a", minutes(5), || async { Err("out of paper") })
        .await
        .unwrap();
    assert_eq!(output, Err("out of paper"));
    assert_eq!(store.memory.get(&key("a")), None);
}

#[tokio::test(start_paused = true)]
async fn l10_a_failed_release_never_replaces_the_result() {
    let (locks, store) = faulty();
    store.next(Op::Release, Fault::FailBefore);
    let output = locks.with_lock("a", minutes(5), || async { 42 }).await;
    assert_eq!(output.unwrap(), 42);
    settle().await;
    assert_eq!(
        store.memory.get(&key("a")),
        None,
        "released in the background"
    );
}

#[tokio::test(start_paused = true)]
async fn l10_a_late_release_never_replaces_the_result() {
    let (locks, _store) = faulty();
    let work = || tokio::time::sleep(seconds(5));
    locks.with_lock("a", seconds(1), work).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn l10_under_a_held_lock_the_work_does_not_run() {
    let (locks, _store) = faulty();
    let _held = locks.acquire("a", minutes(5)).await.unwrap();
    let ran = AtomicBool::new(false);
    let work = || async { ran.store(true, Ordering::Relaxed) };
    let error = locks.with_lock("a", minutes(5), work).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::LockHeld);
    assert!(!ran.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn l10_a_panic_releases() {
    let (locks, store) = faulty();
    let work = || async { panic!("the work is broken") };
    let panicked = std::panic::AssertUnwindSafe(locks.with_lock::<_, _, _>("a", minutes(5), work))
        .catch_unwind()
        .await;
    assert!(panicked.is_err());
    settle().await;
    assert_eq!(store.memory.get(&key("a")), None);
}

#[tokio::test(start_paused = true)]
async fn l10_a_cancellation_releases() {
    let (locks, store) = faulty();
    let work = locks.with_lock("a", minutes(5), std::future::pending::<()>);
    tokio::time::timeout(seconds(1), work).await.unwrap_err();
    settle().await;
    assert_eq!(store.memory.get(&key("a")), None);
}
