//! Clients that go away, and handlers that take their time.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::support::{ALICE, Answer, Launch, Service, eventually, order};

#[tokio::test]
async fn p15_an_order_is_placed_although_the_client_hangs_up_and_the_retry_gets_it() {
    let service = Launch::new()
        .arguments(["--order-delay-milliseconds", "1500"])
        .start()
        .await;
    let mut connection = service.connect().await;
    connection.write(&order().key("order-1").to_bytes()).await;
    service.until_claimed(1).await;
    drop(connection);

    service.send(&order().key("order-1")).await.in_progress();
    let answer = completed(&service, "order-1").await;
    let id = answer.placed();
    assert_eq!(answer.replayed(), Some(true));
    let orders = service.orders(ALICE).await;
    assert_eq!(orders.len(), 1);
    assert_eq!(orders[0]["id"], id);
}

#[tokio::test]
async fn p15_a_crowd_that_hangs_up_at_every_moment_gets_one_order_each() {
    let service = Launch::new()
        .arguments(["--order-delay-milliseconds", "20"])
        .start()
        .await;
    for call in 0_u64..60 {
        let mut connection = service.connect().await;
        connection
            .write(&order().key(&format!("order-{call}")).to_bytes())
            .await;
        // From before the request is read to after the answer is sent.
        sleep(Duration::from_micros(call * 500)).await;
    }
    for call in 0..60 {
        completed(&service, &format!("order-{call}")).await.placed();
    }
    assert_eq!(service.orders(ALICE).await.len(), 60);
    assert_eq!(service.metrics().await.idempotency("executed"), 60.0);
}

#[tokio::test]
async fn p15_half_a_request_executes_and_stores_nothing() {
    let service = Service::start().await;
    let request = order().key("order-1").to_bytes();
    for length in [1, 20, request.len() / 2, request.len() - 1] {
        let mut connection = service.connect().await;
        connection.write(&request[..length]).await;
        drop(connection);
    }
    let answer = service.send(&order().key("order-1")).await;
    answer.placed();
    assert_eq!(answer.replayed(), Some(false));
    assert_eq!(service.orders(ALICE).await.len(), 1);
}

#[tokio::test]
async fn p16_a_handler_four_times_slower_than_its_marker_runs_once() {
    let service = Launch::new()
        .idempotency("InProgressTimeToLiveSeconds", "0.4")
        .arguments(["--order-delay-milliseconds", "1600"])
        .start()
        .await;
    let mut connection = service.connect().await;
    connection.write(&order().key("order-1").to_bytes()).await;
    service.until_claimed(1).await;

    let start = Instant::now();
    let mut last = start;
    while connection.is_silent() {
        let asked = Instant::now();
        let repeat = service.send(&order().key("order-1")).await;
        if repeat.status != 409 {
            assert_eq!(repeat.replayed(), Some(true), "{repeat:?}");
            break;
        }
        repeat.in_progress();
        last = asked;
        sleep(Duration::from_millis(50)).await;
    }
    assert!(
        last - start > Duration::from_millis(800),
        "no repeat came in the marker's later lives"
    );
    let answer = connection.answer().await.unwrap();
    answer.placed();
    assert_eq!(answer.replayed(), Some(false));
    let retry = service.send(&order().key("order-1")).await;
    assert_eq!((retry.replayed(), &retry.body), (Some(true), &answer.body));
    assert_eq!(service.orders(ALICE).await.len(), 1);
    assert_eq!(service.metrics().await.idempotency("marker_lost"), 0.0);
}

/// Retries until the first call has ended.
async fn completed(service: &Service, key: &str) -> Answer {
    eventually("an outcome", async || {
        let answer = service.send(&order().key(key)).await;
        if answer.status == 409 {
            answer.in_progress();
            return None;
        }
        Some(answer)
    })
    .await
}
