use std::pin::pin;

use futures_util::future::poll_immediate;

use super::store::{Fault, Op};
use super::{faulty, key, settle, until_asked};
use crate::error::ErrorCode;
use crate::expiration::{milliseconds, minutes, seconds};

#[tokio::test(start_paused = true)]
async fn l9_a_lost_reply_leaves_no_lock() {
    let (locks, store) = faulty();
    store.next(Op::Lease, Fault::FailAfter);
    locks.try_acquire("a", minutes(5)).await.unwrap_err();
    settle().await;
    assert_eq!(store.memory.get(&key("a")), None);
    assert!(locks.try_acquire("a", minutes(5)).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn l9_a_cancelled_acquire_leaves_no_lock() {
    for fault in [Fault::HangBefore, Fault::HangAfter] {
        let (locks, store) = faulty();
        store.next(Op::Lease, fault);
        let acquire = locks.acquire("a", minutes(5));
        let cancelled = tokio::time::timeout(milliseconds(20), acquire).await;
        assert!(cancelled.is_err());
        settle().await;
        assert_eq!(store.memory.get(&key("a")), None, "{fault:?}");
        assert!(store.count(Op::Release) >= 1, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn l9_an_acquire_that_was_never_polled_sends_nothing() {
    let (locks, store) = faulty();
    drop(locks.acquire("a", minutes(5)));
    settle().await;
    assert_eq!(store.count(Op::Lease) + store.count(Op::Release), 0);
}

#[tokio::test(start_paused = true)]
async fn l9_a_request_that_arrives_after_its_own_release_is_found() {
    let (locks, store) = faulty();
    store.next(Op::Lease, Fault::Overtaken(seconds(1)));
    let mut acquire = Box::pin(locks.acquire("a", minutes(5)));
    assert!(poll_immediate(&mut acquire).await.is_none());
    drop(acquire);
    tokio::time::sleep(seconds(3)).await;
    assert_eq!(store.memory.get(&key("a")), None);
    assert!(store.count(Op::Release) >= 2);
}

#[tokio::test(start_paused = true)]
async fn l9_the_release_is_repeated_while_the_store_is_away() {
    for fault in [Fault::FailBefore, Fault::HangBefore] {
        let (locks, store) = faulty();
        store.next(Op::Lease, Fault::FailAfter);
        store.always(Op::Release, fault);
        locks.try_acquire("a", minutes(5)).await.unwrap_err();
        tokio::time::sleep(minutes(1)).await;
        assert!(store.memory.get(&key("a")).is_some());
        store.always(Op::Release, None);
        tokio::time::sleep(seconds(20)).await;
        assert_eq!(store.memory.get(&key("a")), None, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn l9_the_release_is_given_up_when_the_lease_has_run_out() {
    let (locks, store) = faulty();
    store.next(Op::Lease, Fault::FailAfter);
    store.always(Op::Release, Fault::FailBefore);
    locks.try_acquire("a", minutes(1)).await.unwrap_err();
    tokio::time::sleep(minutes(2)).await;
    let asked = store.count(Op::Release);
    assert!((5..30).contains(&asked), "{asked} requests in a minute");
    tokio::time::sleep(minutes(10)).await;
    assert_eq!(store.count(Op::Release), asked);
}

#[tokio::test(start_paused = true)]
async fn l9_a_definite_answer_needs_no_cleanup() {
    let (locks, store) = faulty();
    let _held = locks.acquire("a", minutes(5)).await.unwrap();
    assert!(locks.try_acquire("a", minutes(5)).await.unwrap().is_none());
    for fault in [Fault::Full, Fault::NotSent, Fault::WrongKind] {
        store.next(Op::Lease, fault);
        locks.try_acquire("b", minutes(5)).await.unwrap_err();
    }
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(store.count(Op::Release), 0);
}

#[tokio::test(start_paused = true)]
async fn l9_a_cancelled_waiter_leaves_no_lock() {
    let (locks, store) = faulty();
    store.next(Op::Lease, Fault::HangAfter);
    let error = locks
        .acquire_within("a", minutes(5), seconds(1))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    settle().await;
    assert_eq!(store.memory.get(&key("a")), None);
}

#[tokio::test(start_paused = true)]
async fn l9_cancelled_at_every_poll_no_lock_stays() {
    // The request is applied, and each further poll finds the answer a little nearer.
    for polls in 1..6 {
        let (locks, store) = faulty();
        store.next(Op::Lease, Fault::SlowAfter(milliseconds(4)));
        {
            let mut acquire = pin!(locks.acquire("a", minutes(5)));
            for _ in 0..polls {
                // What was acquired in time is dropped here, and so released as well.
                if poll_immediate(&mut acquire).await.is_some() {
                    break;
                }
                tokio::time::advance(milliseconds(1)).await;
            }
        }
        until_asked(&store, Op::Release, 1).await;
        settle().await;
        assert_eq!(store.memory.get(&key("a")), None, "after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn l9_settled_waits_for_what_a_cancelled_acquire_may_have_left() {
    let (locks, store) = faulty();
    locks.settled().await;
    store.next(Op::Lease, Fault::Overtaken(seconds(1)));
    let mut acquire = Box::pin(locks.acquire("a", minutes(5)));
    assert!(poll_immediate(&mut acquire).await.is_none());
    drop(acquire);
    locks.clone().settled().await;
    assert!(store.count(Op::Release) >= 2);
    assert_eq!(store.memory.get(&key("a")), None);
}

#[tokio::test(start_paused = true)]
async fn l6_settled_waits_for_a_dropped_handle_and_not_for_a_held_one() {
    let (locks, store) = faulty();
    let held = locks.acquire("a", minutes(5)).await.unwrap();
    let dropped = locks.acquire("b", minutes(5)).await.unwrap();
    locks.settled().await;
    store.next(Op::Release, Fault::FailBefore);
    drop(dropped);
    locks.settled().await;
    assert_eq!(store.memory.get(&key("b")), None);
    assert!(held.is_held());
}
