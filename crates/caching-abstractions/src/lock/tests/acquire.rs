use std::sync::Arc;

use futures_util::future::poll_immediate;

use super::store::{Fault, Op};
use super::{faulty, key, settle};
use crate::clock::{Clock, ManualClock};
use crate::error::ErrorCode;
use crate::expiration::{milliseconds, minutes, seconds};
use crate::lock::DistributedLock;

#[tokio::test(start_paused = true)]
async fn l1_a_free_lock_is_leased_with_one_request_and_l3_the_value_is_the_token() {
    let (locks, store) = faulty();
    let lock = locks.try_acquire("a", minutes(5)).await.unwrap().unwrap();
    assert_eq!(
        store.memory.get(&key("a")).unwrap(),
        lock.token().as_bytes()
    );
    assert_eq!(lock.resource(), "a");
    assert_eq!(store.count(Op::Lease), 1);
}

#[tokio::test(start_paused = true)]
async fn l1_a_held_lock_gives_none_and_every_grant_has_a_token_of_its_own() {
    let (locks, _store) = faulty();
    let first = locks.acquire("a", seconds(10)).await.unwrap();
    assert!(locks.try_acquire("a", seconds(10)).await.unwrap().is_none());
    let token = first.token().clone();
    first.release().await.unwrap();
    let second = locks.acquire("a", seconds(10)).await.unwrap();
    assert_ne!(*second.token(), token);
    assert!(second.fencing() > first.fencing());
}

#[tokio::test(start_paused = true)]
async fn l1_a_resource_that_is_no_key_is_refused_before_anything_is_sent() {
    let (locks, store) = faulty();
    for resource in ["two words", "line\nfeed", &"x".repeat(508)] {
        let error = locks.try_acquire(resource, seconds(1)).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidKey, "{resource}");
    }
    let error = locks.try_acquire("a", seconds(0)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidExpiration);
    assert_eq!(store.count(Op::Lease), 0);
    assert!(locks.acquire(&"x".repeat(507), seconds(1)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn l2_a_held_lock_is_an_error_that_names_the_resource() {
    let (locks, _store) = faulty();
    let _held = locks.acquire("report:daily", seconds(10)).await.unwrap();
    let error = locks
        .acquire("report:daily", seconds(10))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::LockHeld);
    assert_eq!(error.message_key(), "caching.lock.held");
    assert_eq!(error.parameter("resource"), Some("report:daily"));
}

#[tokio::test(start_paused = true)]
async fn l4_the_estimates_count_from_before_the_request() {
    let clock = ManualClock::new();
    let (_, store) = faulty();
    let locks = DistributedLock::with_clock(store.clone(), Arc::new(clock.clone()));
    store.next(Op::Lease, Fault::SlowAfter(seconds(3)));
    let before = clock.clone();
    let (lock, ()) = tokio::join!(locks.acquire("a", seconds(10)), async {
        tokio::task::yield_now().await;
        before.advance(seconds(3));
    });
    let lock = lock.unwrap();
    assert!(lock.remaining() <= seconds(7), "{:?}", lock.remaining());
    assert!(lock.remaining() > milliseconds(6900));
    let whole = lock
        .expires_at()
        .duration_since(lock.acquired_at())
        .unwrap();
    assert_eq!(whole, seconds(10));
    assert!(lock.is_held());
    clock.advance(seconds(7));
    assert!(!lock.is_held());
    assert!(lock.remaining().is_zero());
}

#[tokio::test(start_paused = true)]
async fn l4_a_wall_clock_that_jumps_ends_the_lease_too() {
    let clock = ManualClock::new();
    let (_, store) = faulty();
    let locks = DistributedLock::with_clock(store, Arc::new(clock.clone()));
    let lock = locks.acquire("a", minutes(5)).await.unwrap();
    let acquired_at = lock.acquired_at();
    let mut lost = Box::pin(lock.lost());
    assert!(poll_immediate(&mut lost).await.is_none());
    clock.set_unix_time(clock.unix_time() + minutes(6));
    assert!(!lock.is_held());
    assert_eq!(lock.acquired_at(), acquired_at);
    // A machine that slept is noticed by whoever waits for the loss, although no timer ran.
    tokio::time::timeout(seconds(2), lost).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn l4_a_grant_that_comes_after_its_own_end_is_a_failure_and_is_given_back() {
    let (locks, store) = faulty();
    store.next(Op::Lease, Fault::SlowBefore(seconds(11)));
    let error = locks.try_acquire("a", seconds(10)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    settle().await;
    assert_eq!(store.memory.get(&key("a")), None);
}

#[tokio::test(start_paused = true)]
async fn l8_an_unreachable_store_is_never_not_acquired() {
    for fault in [Fault::NotSent, Fault::FailBefore, Fault::FailAfter] {
        let (locks, store) = faulty();
        store.always(Op::Lease, fault);
        let error = locks.try_acquire("a", seconds(10)).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{fault:?}");
        let error = locks.acquire("a", seconds(10)).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn s4_the_lock_repeats_no_request() {
    let (locks, store) = faulty();
    store.always(Op::Lease, Fault::FailBefore);
    locks.try_acquire("a", seconds(10)).await.unwrap_err();
    settle().await;
    assert_eq!(store.count(Op::Lease), 1);
}

#[tokio::test(start_paused = true)]
async fn x3_no_token_prints() {
    let (locks, _store) = faulty();
    let lock = locks.acquire("a", seconds(10)).await.unwrap();
    assert!(!format!("{lock:?}").contains(lock.token().as_str()));
    assert!(!format!("{locks:?}").contains(lock.token().as_str()));
}

#[test]
fn every_future_can_be_spawned_and_a_handle_be_shared() {
    fn spawnable<T: Send>(_: T) {}
    fn shareable<T: Send + Sync + 'static>() {}
    shareable::<DistributedLock>();
    shareable::<crate::lock::LockHandle>();
    shareable::<crate::lock::MultiLockHandle>();
    let (locks, _store) = faulty();
    spawnable(locks.try_acquire("a", seconds(1)));
    spawnable(locks.acquire_within("a", seconds(1), seconds(1)));
    spawnable(locks.with_lock("a", seconds(1), || async {}));
    spawnable(locks.acquire_all(["a", "b"], seconds(1)));
    spawnable(locks.acquire_all_within(vec![String::new()], seconds(1), seconds(1)));
    spawnable(async {
        let lock = locks.acquire("a", seconds(1)).await.unwrap();
        lock.lost().await;
        lock.release().await
    });
    spawnable(async {
        let lock = locks.acquire_all(["a"], seconds(1)).await.unwrap();
        lock.lost().await;
        lock.release().await
    });
}
