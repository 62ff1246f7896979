//! Clients that give up after a moment, a thousand times.

use std::time::Duration;

use caching_remote::proto::*;
use tokio::task::JoinSet;
use tonic::Request;

use crate::support::{Running, lease, resident_bytes};

const RESOURCES: usize = 50;

/// A thousand calls that nobody waits for longer than a millisecond.
async fn storm(server: &Running, round: usize) {
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(server.client().await);
    }
    let mut calls = JoinSet::new();
    for number in 0..1000 {
        let mut client = clients[number % clients.len()].clone();
        calls.spawn(async move {
            let mut request = Request::new(WaitForLeaseRequest {
                key: format!("lock:{}", number % RESOURCES),
                token: format!("token {round}:{number}"),
                time_to_live_milliseconds: 500,
                wait_milliseconds: 1000,
            });
            request.set_timeout(Duration::from_millis(1));
            let _ = client.wait_for_lease(request).await;
        });
    }
    calls.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l9_after_a_thousand_calls_of_a_millisecond_every_resource_can_be_leased() {
    let server = Running::new().await;
    // What the first rounds allocate is used again by the later ones.
    for round in 0..2 {
        storm(&server, round).await;
    }
    let before = resident_bytes();
    for round in 2..6 {
        storm(&server, round).await;
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 16 * 1024 * 1024, "{grown} bytes more");
    // What was leased within its millisecond runs out within its own time.
    tokio::time::sleep(Duration::from_millis(1000)).await;
    let mut client = server.client().await;
    for number in 0..RESOURCES {
        let request = lease(&format!("lock:{number}"), "afterwards");
        let fencing = client
            .try_lease(request)
            .await
            .unwrap()
            .into_inner()
            .fencing;
        assert!(fencing.is_some(), "{number}");
    }
}
