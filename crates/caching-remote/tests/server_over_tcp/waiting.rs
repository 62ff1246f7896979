//! Waiting for a lease.

use std::time::Duration;

use caching_remote::proto::*;
use tokio::time::{Instant, timeout};
use tonic::{Code, Request};

use crate::gated::Gated;
use crate::support::{Running, get, lease, leave, reference, round_trips};

fn wait(token: &str, wait: Duration) -> WaitForLeaseRequest {
    WaitForLeaseRequest {
        key: "lock:a".to_owned(),
        token: token.to_owned(),
        time_to_live_milliseconds: 60_000,
        wait_milliseconds: wait.as_millis().try_into().unwrap(),
    }
}

fn release(token: &str) -> ReleaseRequest {
    ReleaseRequest {
        key: "lock:a".to_owned(),
        token: token.to_owned(),
    }
}

#[tokio::test]
async fn l11_a_release_wakes_the_waiter() {
    let server = Running::new().await;
    let mut client = server.client().await;
    client.try_lease(lease("lock:a", "one")).await.unwrap();
    let mut other = server.client().await;
    let waiting = tokio::spawn(async move {
        let answer = other
            .wait_for_lease(wait("two", Duration::from_secs(30)))
            .await;
        answer.unwrap().into_inner().fencing
    });
    // It waits, however long that took to begin.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished());
    let begun = Instant::now();
    client.release(release("one")).await.unwrap();
    assert!(waiting.await.unwrap().is_some());
    // The poll would take a second.
    assert!(
        begun.elapsed() < Duration::from_millis(900),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn l11_waiters_get_their_turns_one_after_the_other() {
    let server = Running::new().await;
    let mut client = server.client().await;
    client.try_lease(lease("lock:a", "first")).await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for number in 0..20 {
        let mut client = server.client().await;
        waiting.spawn(async move {
            let token = format!("token {number}");
            let leased = client
                .wait_for_lease(wait(&token, Duration::from_secs(60)))
                .await;
            let fencing = leased.unwrap().into_inner().fencing.unwrap();
            let released = client.release(release(&token)).await.unwrap();
            assert!(released.into_inner().released, "held twice");
            fencing
        });
    }
    client.release(release("first")).await.unwrap();
    let mut numbers = waiting.join_all().await;
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 20);
}

#[tokio::test]
async fn l11_the_wait_ends_when_it_is_over_or_the_deadline_is_near() {
    let server = Running::new().await;
    let mut client = server.client().await;
    client.try_lease(lease("lock:a", "one")).await.unwrap();
    for milliseconds in [0, 100] {
        let request = wait("two", Duration::from_millis(milliseconds));
        let answer = client.wait_for_lease(request).await.unwrap();
        assert_eq!(answer.into_inner().fencing, None);
    }
    let mut request = Request::new(wait("two", Duration::from_secs(3600)));
    request.set_timeout(Duration::from_secs(1));
    let answer = client.wait_for_lease(request).await.unwrap();
    assert_eq!(answer.into_inner().fencing, None);
}

#[tokio::test]
async fn l9_a_waiter_that_leaves_leaves_nothing_behind() {
    let server = Running::new().await;
    let mut client = server.client().await;
    client.try_lease(lease("lock:a", "one")).await.unwrap();
    let mut other = server.client().await;
    let waiting = other.wait_for_lease(wait("two", Duration::from_secs(30)));
    assert!(timeout(Duration::from_millis(100), waiting).await.is_err());
    round_trips(&mut other).await;
    client.release(release("one")).await.unwrap();
    let leased = client
        .wait_for_lease(wait("three", Duration::from_secs(30)))
        .await;
    assert!(leased.unwrap().into_inner().fencing.is_some());
    let got = client.get(get("lock:a")).await.unwrap().into_inner();
    assert_eq!(got.value, Some("three".into()));
}

#[tokio::test]
async fn l9_a_lease_that_is_taken_after_its_waiter_left_is_given_back() {
    let (store, gate) = Gated::new(reference());
    let server = Running::of(store, |settings| settings).await;
    let mut client = server.client().await;
    leave(
        &gate,
        client.wait_for_lease(wait("one", Duration::from_secs(30))),
    )
    .await;
    round_trips(&mut client).await;
    gate.open(1);
    gate.reaches(1, 1).await;
    let gone = async {
        while client
            .get(get("lock:a"))
            .await
            .unwrap()
            .into_inner()
            .value
            .is_some()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(Duration::from_secs(20), gone).await.is_ok());
}

#[tokio::test]
async fn l9_a_shutdown_ends_the_wait() {
    let mut server = Running::new().await;
    let mut client = server.client().await;
    client.try_lease(lease("lock:a", "one")).await.unwrap();
    let waiting = tokio::spawn(async move {
        client
            .wait_for_lease(wait("two", Duration::from_secs(30)))
            .await
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.begin_shutdown();
    let status = waiting.await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    server.ended().await;
}
