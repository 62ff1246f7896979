//! Many calls at once with one key.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use crate::support::{ALICE, Answer, Connection, Launch, Service, order};

const CALLERS: usize = 64;
const ROUNDS: usize = 500;

#[tokio::test]
async fn p5_64_calls_at_once_place_one_order_each_of_500_times() {
    let service = Service::start().await;
    race(&service).await;
    service.stop().await;
}

#[tokio::test]
async fn p7_64_calls_at_once_to_a_slow_handler_place_one_order_each_of_500_times() {
    let service = Launch::new()
        .arguments(["--order-delay-milliseconds", "4"])
        .start()
        .await;
    race(&service).await;
    let refused = service.metrics().await.idempotency("in_progress");
    assert!(
        refused >= ROUNDS as f64,
        "{refused} calls met one in progress"
    );
    service.stop().await;
}

async fn race(service: &Service) {
    let mut connections = Vec::new();
    for _ in 0..CALLERS {
        connections.push(service.connect().await);
    }
    let mut ids = BTreeSet::new();
    for round in 0..ROUNDS {
        let answers = call_at_once(&mut connections, &format!("round-{round}")).await;
        assert!(
            ids.insert(winner(&answers)),
            "an order of an earlier round came back"
        );
    }
    let placed = service.orders(ALICE).await;
    let placed: BTreeSet<_> = placed
        .iter()
        .map(|o| o["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        placed, ids,
        "the orders that were placed and the ones that were answered"
    );
    let metrics = service.metrics().await;
    assert_eq!(metrics.idempotency("executed"), ROUNDS as f64);
    let calls = ["executed", "replayed", "in_progress"].map(|outcome| metrics.idempotency(outcome));
    assert_eq!(
        calls.iter().sum::<f64>(),
        (CALLERS * ROUNDS) as f64,
        "{calls:?}"
    );
}

/// Sends one request on each connection, all but the last byte first, so that they end together.
async fn call_at_once(connections: &mut [Connection], key: &str) -> Vec<Answer> {
    let request = order().key(key).to_bytes();
    let (last, rest) = request.split_last().unwrap();
    for connection in &mut *connections {
        connection.write(rest).await;
    }
    for connection in &mut *connections {
        connection.write(&[*last]).await;
    }
    join_all(
        connections
            .iter_mut()
            .map(async |connection| connection.answer().await.unwrap()),
    )
    .await
}

/// The id of the round's only order, after checking that everybody heard of it or was told to
/// retry.
fn winner(answers: &[Answer]) -> String {
    let first: Vec<_> = answers
        .iter()
        .filter(|answer| answer.replayed() == Some(false))
        .collect();
    assert_eq!(first.len(), 1, "{first:?}");
    for answer in answers {
        match answer.status {
            201 => assert_eq!(answer.body, first[0].body),
            _ => answer.in_progress(),
        }
    }
    first[0].placed()
}
