use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::store::{Fault, FaultyStore, Hints, Op};
use super::{faulty, key, settle, timed, until_asked};
use crate::error::ErrorCode;
use crate::expiration::{milliseconds, minutes, seconds};
use crate::lock::{DistributedLock, LockHandle};

async fn held() -> (DistributedLock, Arc<FaultyStore>, LockHandle) {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", minutes(60)).await.unwrap();
    (locks, store, lock)
}

/// How long a waiter took, with the lock released after `delay`.
async fn wait_while_held_for(
    delay: Duration,
    prepare: impl FnOnce(&FaultyStore),
) -> (Duration, Arc<FaultyStore>) {
    let (locks, store, lock) = held().await;
    prepare(&store);
    let release = async {
        tokio::time::sleep(delay).await;
        lock.release().await.unwrap()
    };
    let ((won, took), _) = tokio::join!(
        timed(locks.acquire_within("a", minutes(60), minutes(10))),
        release
    );
    assert!(won.is_ok());
    (took, store)
}

#[tokio::test(start_paused = true)]
async fn l11_a_free_lock_costs_one_request() {
    let (locks, store) = faulty();
    let (lock, took) = timed(locks.acquire_within("a", minutes(5), seconds(5))).await;
    assert!(lock.is_ok());
    assert!(took.is_zero());
    assert_eq!((store.count(Op::Lease), store.count(Op::Watch)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn l11_a_wait_of_zero_tries_once() {
    let (locks, store, _lock) = held().await;
    let (error, took) = timed(locks.acquire_within("a", minutes(5), Duration::ZERO)).await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), ErrorCode::LockHeld);
    assert_eq!(error.message_key(), "caching.lock.wait_timeout");
    assert!(took.is_zero());
    assert_eq!(store.count(Op::Lease), 2);
    let free = locks.acquire_within("free", minutes(5), Duration::ZERO);
    assert!(free.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn l11_it_gives_up_exactly_after_the_wait() {
    for wait in [milliseconds(1), milliseconds(700), seconds(60)] {
        let (locks, _store, _lock) = held().await;
        let (error, took) = timed(locks.acquire_within("a", minutes(5), wait)).await;
        let error = error.unwrap_err();
        assert_eq!(error.message_key(), "caching.lock.wait_timeout");
        assert_eq!(error.parameter("resource"), Some("a"));
        // A timer has a resolution of a millisecond.
        assert!(took >= wait && took <= wait + milliseconds(1), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn l11_a_hint_wakes_the_waiter_at_once() {
    let (took, store) = wait_while_held_for(milliseconds(5300), |_| {}).await;
    assert!(took < milliseconds(5310), "{took:?}");
    assert_eq!(store.count(Op::Watch), 1);
}

#[tokio::test(start_paused = true)]
async fn l11_a_release_before_the_watch_began_is_not_missed() {
    let (took, _store) = wait_while_held_for(milliseconds(500), |store| {
        store.next(Op::Watch, Fault::SlowBefore(seconds(1)));
    })
    .await;
    assert!(took <= milliseconds(1010), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn l11_without_hints_the_poll_finds_it() {
    for hints in [None, Some(Hints::Ended)] {
        let (took, store) = wait_while_held_for(milliseconds(5300), |store| match hints {
            Some(hints) => store.hints(hints),
            None => store.always(Op::Watch, Fault::FailBefore),
        })
        .await;
        assert!(took <= milliseconds(6800), "{took:?}");
        // The holder's request; the waiter's first, and again once it watches; then the polls.
        assert!(store.count(Op::Lease) <= 14, "{}", store.count(Op::Lease));
    }
}

#[tokio::test(start_paused = true)]
async fn l11_the_poll_is_jittered_and_at_most_one_a_second() {
    let (locks, store, _lock) = held().await;
    let wait = locks.acquire_within("a", minutes(5), minutes(10));
    wait.await.unwrap_err();
    let polls: Vec<_> = store.times(Op::Lease).split_off(3);
    let gaps: Vec<_> = polls.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() > 300);
    assert!(
        gaps.iter()
            .all(|gap| *gap >= seconds(1) && *gap <= milliseconds(1501))
    );
    assert!(gaps.iter().any(|gap| *gap < milliseconds(1200)));
    assert!(gaps.iter().any(|gap| *gap > milliseconds(1300)));
}

#[tokio::test(start_paused = true)]
async fn l11_a_flood_of_hints_does_not_become_a_flood_of_requests() {
    let (locks, store, _lock) = held().await;
    store.hints(Hints::Flood);
    let wait = locks.acquire_within("a", minutes(5), seconds(10));
    wait.await.unwrap_err();
    assert!(store.count(Op::Lease) < 400, "{}", store.count(Op::Lease));
}

#[tokio::test(start_paused = true)]
async fn l11_of_many_waiters_one_asks() {
    let (locks, store, _lock) = held().await;
    let waits = (0..100).map(|_| locks.acquire_within("a", minutes(5), seconds(10)));
    for answer in join_all(waits).await {
        answer.unwrap_err();
    }
    assert!(store.count(Op::Lease) <= 13, "{}", store.count(Op::Lease));
    assert_eq!(store.count(Op::Watch), 1);
}

#[tokio::test(start_paused = true)]
async fn l11_one_release_wakes_one_waiter() {
    let (locks, store, lock) = held().await;
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        let locks = locks.clone();
        waiting.spawn(async move { locks.acquire_within("a", minutes(5), seconds(10)).await });
    }
    settle().await;
    let before = store.count(Op::Lease);
    lock.release().await.unwrap();
    let _next = waiting.join_next().await.unwrap().unwrap().unwrap();
    settle().await;
    // The one that was woken, and the first look of the next in line.
    assert_eq!(store.count(Op::Lease) - before, 2);
}

#[tokio::test(start_paused = true)]
async fn l11_waiters_are_served_in_the_order_they_came() {
    let (locks, _store, lock) = held().await;
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = JoinSet::new();
    for number in 0..50 {
        let (locks, served) = (locks.clone(), served.clone());
        waiting.spawn(async move {
            let lock = locks.acquire_within("a", minutes(5), minutes(5)).await;
            served.lock().push(number);
            lock.unwrap().release().await.unwrap();
        });
        tokio::task::yield_now().await;
    }
    lock.release().await.unwrap();
    waiting.join_all().await;
    assert_eq!(*served.lock(), (0..50).collect::<Vec<_>>());
    assert_eq!(locks.queues().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn l11_a_cancelled_waiter_leaks_nothing_and_blocks_nobody() {
    let (locks, store, lock) = held().await;
    {
        let first = locks.acquire_within("a", minutes(5), minutes(5));
        let second = locks.acquire_within("a", minutes(5), minutes(5));
        tokio::time::timeout(seconds(3), async { tokio::join!(first, second) })
            .await
            .unwrap_err();
    }
    assert_eq!(locks.queues().len(), 0);
    lock.release().await.unwrap();
    let won = locks.acquire_within("a", minutes(5), seconds(1)).await;
    assert!(won.is_ok());
    assert_eq!(locks.queues().len(), 0);
    assert!(store.memory.get(&key("a")).is_some());
}

#[tokio::test(start_paused = true)]
async fn l11_a_waiter_that_leaves_passes_the_turn_on() {
    let (locks, _store, lock) = held().await;
    let brief = locks.acquire_within("a", minutes(5), seconds(2));
    let patient = timed(locks.acquire_within("a", minutes(5), minutes(5)));
    let release = async {
        tokio::time::sleep(milliseconds(5300)).await;
        assert_eq!(locks.queues().len(), 1, "the queue stays while one waits");
        lock.release().await.unwrap();
    };
    let (brief, (patient, took), ()) = tokio::join!(brief, patient, release);
    brief.unwrap_err();
    assert!(patient.is_ok());
    assert!(took < milliseconds(5310), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn l11_different_resources_do_not_wait_for_each_other() {
    let (locks, _store, _lock) = held().await;
    let blocked = locks.acquire_within("a", minutes(5), seconds(30));
    let free = timed(locks.acquire_within("b", minutes(5), seconds(30)));
    let (blocked, (free, took)) = tokio::join!(blocked, free);
    blocked.unwrap_err();
    assert!(free.is_ok());
    assert!(took.is_zero());
}

#[tokio::test(start_paused = true)]
async fn l8_an_error_of_the_store_ends_the_wait() {
    let (locks, store, _lock) = held().await;
    let fail = async {
        until_asked(&store, Op::Lease, 4).await;
        store.always(Op::Lease, Fault::FailBefore);
    };
    let (answer, ()) = tokio::join!(
        timed(locks.acquire_within("a", minutes(5), minutes(5))),
        fail
    );
    assert_eq!(answer.0.unwrap_err().code(), ErrorCode::StoreUnavailable);
    assert!(answer.1 < seconds(5));
}

#[tokio::test(start_paused = true)]
async fn l8_a_store_that_never_answered_is_no_held_lock() {
    let (locks, store) = faulty();
    store.always(Op::Lease, Fault::HangBefore);
    let waits = (0..3).map(|_| locks.acquire_within("a", minutes(5), seconds(1)));
    for answer in join_all(waits).await {
        assert_eq!(answer.unwrap_err().code(), ErrorCode::StoreUnavailable);
    }
}

#[tokio::test(start_paused = true)]
async fn l11_the_lease_counts_from_the_request_that_was_granted() {
    let (locks, store, lock) = held().await;
    let release = async {
        tokio::time::sleep(seconds(8)).await;
        lock.release().await.unwrap();
    };
    let (won, ()) = tokio::join!(locks.acquire_within("a", seconds(10), seconds(30)), release);
    let won = won.unwrap();
    assert!(won.remaining() > seconds(9), "{:?}", won.remaining());
    assert!(store.memory.end(&key("a")) - tokio::time::Instant::now() > seconds(9));
}
