//! P5, P7 and P8 under load: 64 calls at once with one key.

use caching_abstractions::seconds;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::http::{post, send};
use crate::support::{Fixture, Order, create_order, operation};

const ROUNDS: usize = 1000;
const CALLS: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn p5_of_64_calls_at_once_one_is_executed() {
    let fixture = Fixture::new();
    let create = operation(
        "orders.create",
        &fixture.runs,
        |id, _, request| async move {
            // Every second round gives the others a chance to come meanwhile.
            if id % 2 == 0 {
                tokio::task::yield_now().await;
            }
            Ok(Order {
                id,
                name: request.name,
            })
        },
    )
    .created(|order| format!("/orders/{}", order.id));
    let app = fixture.app(&create);
    let (mut replays, mut conflicts) = (0, 0);
    for round in 1..=ROUNDS {
        let key = format!("order-{round}");
        let mut calls = JoinSet::new();
        for _ in 0..CALLS {
            let (app, request) = (app.clone(), post(&key, &[]));
            calls.spawn(async move { send(&app, request).await });
        }
        let body = format!(r#"{{"id":{round},"name":"Keyboard"}}"#);
        let mut executed = 0;
        for answer in calls.join_all().await {
            match answer.replayed() {
                None => {
                    assert_eq!(answer.code(), "CACHING_CONFLICT_002");
                    conflicts += 1;
                }
                Some(replayed) => {
                    assert_eq!(
                        (answer.status.as_u16(), &answer.body[..]),
                        (201, body.as_bytes())
                    );
                    executed += usize::from(replayed == "false");
                    replays += usize::from(replayed == "true");
                }
            }
        }
        assert_eq!((executed, fixture.runs.count()), (1, round));
    }
    assert_eq!(replays + conflicts, ROUNDS * (CALLS - 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn p15_of_calls_that_are_cut_at_any_moment_none_is_lost_or_doubled() {
    let fixture = Fixture::new();
    let create = operation(
        "orders.create",
        &fixture.runs,
        |id, _, request| async move {
            tokio::task::yield_now().await;
            Ok(Order {
                id,
                name: request.name,
            })
        },
    );
    let app = fixture.app(&create);
    for round in 1..=ROUNDS {
        let key = format!("order-{round}");
        let mut calls: Vec<_> = (0..4)
            .map(|_| {
                let (app, request) = (app.clone(), post(&key, &[]));
                tokio::spawn(async move { send(&app, request).await })
            })
            .collect();
        for _ in 0..round % 8 {
            tokio::task::yield_now().await;
        }
        for call in &mut calls {
            call.abort();
            let _cut_or_answered = call.await;
        }
        let last = timeout(seconds(30), async {
            loop {
                let answer = send(&app, post(&key, &[])).await;
                if answer.status == 200 {
                    break answer;
                }
                assert_eq!(answer.code(), "CACHING_CONFLICT_002");
                tokio::task::yield_now().await;
            }
        });
        last.await.unwrap();
        assert_eq!(fixture.runs.count(), round);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn p4_calls_at_once_with_different_keys_are_all_executed() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let (app, request) = (app.clone(), post(&format!("order-{number}"), &[]));
        calls.spawn(async move { send(&app, request).await });
    }
    let answers = calls.join_all().await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.replayed() == Some("false"))
    );
    assert_eq!(fixture.runs.count(), CALLS);
}
