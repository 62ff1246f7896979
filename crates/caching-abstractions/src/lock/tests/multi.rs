use super::store::{Fault, Op};
use super::{faulty, key, settle, timed};
use crate::error::ErrorCode;
use crate::expiration::{minutes, seconds};

#[tokio::test(start_paused = true)]
async fn l14_each_resource_is_locked_once_in_one_order() {
    let (locks, store) = faulty();
    let all = locks
        .acquire_all(["b", "a", "b", "c", "a"], minutes(5))
        .await
        .unwrap();
    let names: Vec<_> = all.locks().iter().map(|lock| lock.resource()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(store.count(Op::Lease), 3);
    assert!(all.is_held());
    assert!(all.get("b").is_some() && all.get("d").is_none());
    assert!(all.release().await.unwrap());
    assert!(
        ["a", "b", "c"]
            .iter()
            .all(|name| store.memory.get(&key(name)).is_none())
    );
}

#[tokio::test(start_paused = true)]
async fn l14_one_that_is_held_means_none() {
    let (locks, store) = faulty();
    let _held = locks.acquire("c", minutes(5)).await.unwrap();
    assert!(
        locks
            .try_acquire_all(["a", "b", "c"], minutes(5))
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        ["a", "b"]
            .iter()
            .all(|name| store.memory.get(&key(name)).is_none())
    );
    let error = locks
        .acquire_all(["c", "b", "a"], minutes(5))
        .await
        .unwrap_err();
    assert_eq!(error.message_key(), "caching.lock.held");
    assert_eq!(error.parameter("resource"), Some("c"));
    assert!(store.memory.get(&key("c")).is_some());
}

#[tokio::test(start_paused = true)]
async fn l14_an_error_means_none() {
    let (locks, store) = faulty();
    store.next(Op::Lease, None);
    store.next(Op::Lease, Fault::FailAfter);
    let error = locks
        .acquire_all(["a", "b", "c"], minutes(5))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    settle().await;
    assert!(
        ["a", "b", "c"]
            .iter()
            .all(|name| store.memory.get(&key(name)).is_none())
    );
}

#[tokio::test(start_paused = true)]
async fn l14_nothing_to_lock_is_refused() {
    let (locks, store) = faulty();
    let none: [&str; 0] = [];
    let error = locks.acquire_all(none, minutes(5)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidKey);
    let error = locks
        .acquire_all(["a", "b c"], minutes(5))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidKey);
    assert_eq!(store.count(Op::Lease), 0);
}

#[tokio::test(start_paused = true)]
async fn l14_a_store_too_slow_for_all_means_none() {
    let (locks, store) = faulty();
    store.always(Op::Lease, Fault::SlowBefore(seconds(4)));
    let error = locks
        .acquire_all(["a", "b", "c"], seconds(10))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    settle().await;
    assert!(
        ["a", "b", "c"]
            .iter()
            .all(|name| store.memory.get(&key(name)).is_none())
    );
}

#[tokio::test(start_paused = true)]
async fn l14_the_loss_of_one_is_the_loss_of_all() {
    let (locks, store) = faulty();
    let all = locks.acquire_all(["a", "b"], seconds(30)).await.unwrap();
    all.keep_alive();
    tokio::time::sleep(minutes(5)).await;
    assert!(all.is_held());
    store.memory.remove(&key("b"));
    let ((), took) = timed(all.lost()).await;
    assert!(took <= seconds(11), "{took:?}");
    assert!(!all.is_held());
    assert!(!all.release().await.unwrap());
    assert_eq!(
        store.memory.get(&key("a")),
        None,
        "what was left is released"
    );
}

#[tokio::test(start_paused = true)]
async fn l14_while_it_waits_for_one_it_keeps_the_others_alive() {
    let (locks, store) = faulty();
    let held = locks.acquire("b", minutes(5)).await.unwrap();
    let release = async {
        tokio::time::sleep(minutes(1)).await;
        assert!(store.memory.get(&key("a")).is_some());
        held.release().await.unwrap();
    };
    let wait = locks.acquire_all_within(["a", "b", "c"], seconds(10), minutes(2));
    let (all, ()) = tokio::join!(wait, release);
    let all = all.unwrap();
    assert!(all.remaining() > seconds(9), "{:?}", all.remaining());
    // Afterwards it is a plain lock again.
    all.lost().await;
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(store.memory.get(&key("a")), None);
}

#[tokio::test(start_paused = true)]
async fn l14_a_lock_that_is_taken_during_the_wait_means_none() {
    let (locks, store) = faulty();
    let held = locks.acquire("b", minutes(5)).await.unwrap();
    let release = async {
        // Between two renewals of the first lock.
        tokio::time::sleep(seconds(15)).await;
        store.memory.remove(&key("a"));
        held.release().await.unwrap();
    };
    let wait = locks.acquire_all_within(["a", "b"], minutes(1), minutes(2));
    let (all, ()) = tokio::join!(wait, release);
    assert_eq!(all.unwrap_err().code(), ErrorCode::StoreUnavailable);
    settle().await;
    assert_eq!(store.memory.get(&key("b")), None);
}

#[tokio::test(start_paused = true)]
async fn l14_the_wait_is_one_for_all() {
    let (locks, store) = faulty();
    let first = locks.acquire("b", minutes(5)).await.unwrap();
    let _second = locks.acquire("c", minutes(5)).await.unwrap();
    let release = async {
        tokio::time::sleep(seconds(40)).await;
        first.release().await.unwrap();
    };
    let wait = locks.acquire_all_within(["a", "b", "c"], seconds(10), seconds(60));
    let ((error, took), ()) = tokio::join!(timed(wait), release);
    assert_eq!(
        error.unwrap_err().message_key(),
        "caching.lock.wait_timeout"
    );
    assert!(took >= seconds(60) && took < seconds(61), "{took:?}");
    settle().await;
    assert!(
        ["a", "b"]
            .iter()
            .all(|name| store.memory.get(&key(name)).is_none())
    );
}
