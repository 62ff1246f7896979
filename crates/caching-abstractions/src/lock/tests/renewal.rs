use std::sync::Arc;

use futures_util::future::poll_immediate;
use tokio::time::Instant;

use super::store::{Fault, FaultyStore, Op};
use super::{faulty, key, settle, timed, until_asked};
use crate::clock::{Clock, ManualClock};
use crate::expiration::{hours, milliseconds, minutes, seconds};
use crate::lock::{DistributedLock, LockHandle};

async fn kept_alive() -> (DistributedLock, Arc<FaultyStore>, LockHandle) {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", seconds(30)).await.unwrap();
    lock.keep_alive();
    (locks, store, lock)
}

#[tokio::test(start_paused = true)]
async fn l12_it_is_kept_alive_by_a_request_every_third_of_its_time() {
    let (locks, store, lock) = kept_alive().await;
    for _ in 0..100 {
        tokio::time::sleep(seconds(3)).await;
        assert!(lock.is_held());
        assert!(locks.try_acquire("a", seconds(30)).await.unwrap().is_none());
    }
    assert!(
        (29..=30).contains(&store.count(Op::Extend)),
        "{}",
        store.count(Op::Extend)
    );
    assert!(poll_immediate(Box::pin(lock.lost())).await.is_none());
    let left = lock
        .expires_at()
        .duration_since(lock.acquired_at())
        .unwrap();
    assert!(left > seconds(30));
    assert!(lock.release().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn l7_without_it_nothing_is_renewed() {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", seconds(30)).await.unwrap();
    tokio::time::sleep(seconds(31)).await;
    assert_eq!(store.count(Op::Extend), 0);
    assert!(!lock.is_held());
    assert!(locks.try_acquire("a", seconds(30)).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn l12_without_renewal_the_loss_comes_just_before_the_end() {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", seconds(30)).await.unwrap();
    let ((), took) = timed(lock.lost()).await;
    assert!(took > milliseconds(29_900), "{took:?}");
    assert!(
        store.memory.get(&key("a")).is_some(),
        "the store still has it"
    );
    assert!(!lock.is_held());
    assert!(lock.remaining().is_zero());
    assert!(poll_immediate(Box::pin(lock.lost())).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn l12_renewal_stops_at_the_call_of_release() {
    let (_locks, store, lock) = kept_alive().await;
    store.always(Op::Release, Fault::HangBefore);
    let mut release = Box::pin(lock.release());
    assert!(poll_immediate(&mut release).await.is_none());
    drop(release);
    lock.keep_alive();
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(store.count(Op::Extend), 0, "nor does it start again");
}

#[tokio::test(start_paused = true)]
async fn l12_renewal_stops_with_the_handle() {
    let (locks, store, lock) = kept_alive().await;
    drop(lock);
    settle().await;
    assert_eq!(store.memory.get(&key("a")), None);
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(store.count(Op::Extend), 0);
    // Nothing but this test and the lock itself holds the store any more.
    assert_eq!(Arc::strong_count(&store), 2);
    drop(locks);
}

#[tokio::test(start_paused = true)]
async fn l12_a_handle_that_is_renewed_twice_has_one_renewal() {
    let (_locks, store, lock) = kept_alive().await;
    lock.keep_alive();
    lock.keep_alive_up_to(hours(1));
    tokio::time::sleep(seconds(65)).await;
    assert!(store.count(Op::Extend) <= 6, "{}", store.count(Op::Extend));
    assert!(lock.is_held());
}

#[tokio::test(start_paused = true)]
async fn l12_a_second_call_replaces_the_ceiling() {
    let (_locks, _store, lock) = kept_alive().await;
    lock.keep_alive_up_to(seconds(40));
    let ((), took) = timed(lock.lost()).await;
    assert!(took > seconds(39) && took <= seconds(40), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn l12_the_lease_never_outlives_the_ceiling() {
    let (locks, store) = faulty();
    let began = Instant::now();
    let lock = locks.acquire("a", seconds(30)).await.unwrap();
    tokio::time::sleep(seconds(5)).await;
    lock.keep_alive_up_to(seconds(100));
    lock.lost().await;
    assert!(began.elapsed() > seconds(99), "{:?}", began.elapsed());
    assert!(store.memory.end(&key("a")) <= began + milliseconds(100_002));
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(store.memory.get(&key("a")), None);
}

#[tokio::test(start_paused = true)]
async fn l12_a_ceiling_below_the_lease_shortens_nothing() {
    let (locks, store) = faulty();
    let lock = locks.acquire("a", seconds(30)).await.unwrap();
    lock.keep_alive_up_to(seconds(15));
    let ((), took) = timed(lock.lost()).await;
    assert!(took > seconds(29));
    assert_eq!(store.count(Op::Extend), 0);
}

#[tokio::test(start_paused = true)]
async fn l12_a_token_that_is_gone_is_a_loss_at_the_next_renewal() {
    for overwritten in [false, true] {
        let (_locks, store, lock) = kept_alive().await;
        if overwritten {
            store.memory.put(&key("a"), b"somebody else", minutes(5));
        } else {
            store.memory.remove(&key("a"));
        }
        let ((), took) = timed(lock.lost()).await;
        assert!(took <= milliseconds(10_001), "{took:?}");
        assert!(!lock.is_held());
        assert!(!lock.release().await.unwrap());
        tokio::time::sleep(seconds(60)).await;
        assert_eq!(store.count(Op::Extend), 1);
        let stands = store.memory.get(&key("a"));
        assert_eq!(stands.is_some(), overwritten, "nothing is brought back");
    }
}

#[tokio::test(start_paused = true)]
async fn l12_a_value_of_another_kind_is_a_loss() {
    let (_locks, store, lock) = kept_alive().await;
    store.next(Op::Extend, Fault::WrongKind);
    let ((), took) = timed(lock.lost()).await;
    assert!(took <= milliseconds(10_001), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn l12_a_short_outage_loses_nothing() {
    for fault in [Fault::FailBefore, Fault::FailAfter, Fault::HangBefore] {
        let (_locks, store, lock) = kept_alive().await;
        store.always(Op::Extend, fault);
        tokio::time::sleep(seconds(18)).await;
        assert!(lock.is_held(), "{fault:?}");
        store.always(Op::Extend, None);
        tokio::time::sleep(seconds(60)).await;
        assert!(lock.is_held(), "{fault:?}");
        assert!(lock.release().await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn l12_an_outage_is_a_loss_before_the_store_can_give_the_lock_away() {
    for fault in [Fault::FailBefore, Fault::HangBefore] {
        let (_locks, store, lock) = kept_alive().await;
        tokio::time::sleep(seconds(25)).await;
        store.always(Op::Extend, fault);
        let end = store.memory.end(&key("a"));
        lock.lost().await;
        assert!(Instant::now() < end, "{fault:?}");
        assert!(Instant::now() + seconds(1) > end, "{fault:?}");
        assert!(store.memory.get(&key("a")).is_some(), "{fault:?}");
        assert!(!lock.is_held());
        // Too many attempts would be an attack on a store that is coming back.
        assert!(store.count(Op::Extend) < 60, "{}", store.count(Op::Extend));
    }
}

#[tokio::test(start_paused = true)]
async fn l12_renewal_gives_up_at_the_end_of_the_lease_though_nobody_waits_for_the_loss() {
    let (_locks, store, lock) = kept_alive().await;
    store.always(Op::Extend, Fault::FailBefore);
    tokio::time::sleep(seconds(30)).await;
    let asked = store.count(Op::Extend);
    assert!(asked > 3, "{asked}");
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(store.count(Op::Extend), asked);
    assert!(!lock.is_held());
}

#[tokio::test(start_paused = true)]
async fn l12_an_answer_after_the_end_does_not_undo_the_loss() {
    let (_locks, store, lock) = kept_alive().await;
    // The store hears of it in time; the answer comes after the end of the lease it renewed.
    store.always(Op::Extend, Fault::SlowAfter(seconds(25)));
    lock.lost().await;
    tokio::time::sleep(seconds(30)).await;
    assert!(!lock.is_held());
}

#[tokio::test(start_paused = true)]
async fn l12_an_answer_after_the_end_by_the_wall_clock_renews_nothing() {
    let (_, store) = faulty();
    let clock = ManualClock::new();
    let locks = DistributedLock::with_clock(store.clone(), Arc::new(clock.clone()));
    let lock = locks.acquire("a", seconds(30)).await.unwrap();
    lock.keep_alive();
    store.next(Op::Extend, Fault::SlowAfter(milliseconds(400)));
    tokio::task::yield_now().await;
    clock.advance(seconds(10));
    until_asked(&store, Op::Extend, 1).await;
    // The machine sleeps between the request and its answer, and nobody has looked yet.
    clock.set_unix_time(clock.unix_time() + seconds(20));
    tokio::time::sleep(milliseconds(500)).await;
    assert!(!lock.is_held());
}

#[tokio::test(start_paused = true)]
async fn l12_after_a_release_there_is_no_loss() {
    let (_locks, _store, lock) = kept_alive().await;
    let released = async {
        tokio::time::sleep(seconds(3)).await;
        lock.release().await.unwrap()
    };
    let watched = tokio::time::timeout(hours(1), lock.lost());
    let (released, watched) = tokio::join!(released, watched);
    assert!(released);
    assert!(watched.is_err(), "no loss was signalled");
}

#[tokio::test(start_paused = true)]
async fn l12_a_loss_is_told_to_everybody_who_waits_for_it() {
    let (_locks, store, lock) = kept_alive().await;
    store.memory.remove(&key("a"));
    tokio::join!(lock.lost(), lock.lost(), lock.lost());
}

#[test]
fn l12_without_a_runtime_nothing_is_renewed_and_nothing_panics() {
    use futures_util::FutureExt;
    let (locks, store) = faulty();
    let lock = locks.acquire("a", minutes(5)).now_or_never().unwrap();
    lock.unwrap().keep_alive();
    assert_eq!(store.count(Op::Extend), 0);
}
