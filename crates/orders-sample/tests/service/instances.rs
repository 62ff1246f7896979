//! Two instances on one Redis: records and locks are shared, and an outage executes nothing.

use std::time::Duration;

use redis_support::Server;
use tokio::time::Instant;

use crate::support::{ALICE, Launch, Request, Service, eventually, order};

async fn instance(redis: &Server, arguments: &[&str]) -> Service {
    Launch::new()
        .environment("XIHAN__CACHING__PROVIDER", "redis")
        .environment("XIHAN__CACHING__REDIS__URL", &redis.url())
        .environment(
            "XIHAN__CACHING__REDIS__OPERATIONTIMEOUTMILLISECONDS",
            "1000",
        )
        .arguments(arguments)
        .start()
        .await
}

/// The service answers, and its store does.
async fn until_ready(service: &Service) {
    eventually("the store", async || {
        let answer = service.send(&Request::get("/readyz")).await;
        (answer.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn p8_a_retry_that_reaches_another_instance_is_replayed() {
    let redis = Server::start();
    let (first, second) = (instance(&redis, &[]).await, instance(&redis, &[]).await);
    let placed = first.send(&order().key("order-1")).await;
    let again = second.send(&order().key("order-1")).await;
    assert_eq!(
        (placed.replayed(), again.replayed()),
        (Some(false), Some(true))
    );
    assert_eq!(placed.placed(), again.placed());
    assert_eq!(placed.body, again.body);
    assert_eq!(first.orders(ALICE).await.len(), 1);
    assert_eq!(
        second.orders(ALICE).await.len(),
        0,
        "it ran on the first one"
    );
}

#[tokio::test]
async fn p7_sixty_four_calls_at_once_over_two_instances_place_one_order() {
    let redis = Server::start();
    let delay = ["--order-delay-milliseconds", "20"];
    let (first, second) = (
        instance(&redis, &delay).await,
        instance(&redis, &delay).await,
    );
    for round in 0..20 {
        let request = order().key(&format!("order-{round}"));
        let calls = (0..64).map(|call| {
            let service = if call % 2 == 0 { &first } else { &second };
            service.send(&request)
        });
        let answers = futures_util::future::join_all(calls).await;
        let executed = answers
            .iter()
            .filter(|answer| answer.replayed() == Some(false));
        assert_eq!(executed.count(), 1, "round {round}");
        for answer in &answers {
            if answer.status != 201 {
                answer.problem(409, "CACHING_CONFLICT_002");
            }
        }
        let placed = first.orders(ALICE).await.len() + second.orders(ALICE).await.len();
        assert_eq!(placed, round + 1);
    }
}

#[tokio::test]
async fn l1_a_report_runs_on_one_of_two_instances() {
    let redis = Server::start();
    let report = Request::post("/reports/daily").by(ALICE);
    let long = ["--report-seconds", "2"];
    let (first, second) = (instance(&redis, &long).await, instance(&redis, &long).await);
    let (one, other) = tokio::join!(first.send(&report), second.send(&report));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(second.send(&report).await.status, 200, "free again");
}

#[tokio::test]
async fn p14_while_redis_is_away_nothing_is_executed_and_afterwards_all_is_well() {
    let mut redis = Server::start();
    let service = instance(&redis, &[]).await;
    service.send(&order().key("order-1")).await.placed();
    redis.kill();
    for attempt in 0..5 {
        let begun = Instant::now();
        let refused = service.send(&order().key("order-2")).await;
        refused.problem(503, "CACHING_UNAVAILABLE_001");
        assert!(refused.header("retry-after").is_some());
        let took = begun.elapsed();
        assert!(
            took < Duration::from_millis(1500),
            "attempt {attempt}: {took:?}"
        );
    }
    let ready = service.send(&Request::get("/readyz")).await;
    ready.problem(503, "CACHING_UNAVAILABLE_001");
    redis.restart();
    until_ready(&service).await;
    let placed = service.send(&order().key("order-2")).await;
    assert_eq!(placed.replayed(), Some(false), "it was not executed before");
    placed.placed();
    assert_eq!(service.metrics().await.idempotency("executed"), 2.0);
}

#[tokio::test]
async fn s3_a_service_starts_while_redis_is_away_and_serves_once_it_is_there() {
    let mut redis = Server::start();
    redis.kill();
    let service = instance(&redis, &[]).await;
    assert_eq!(service.send(&Request::get("/healthz")).await.status, 200);
    let refused = service.send(&order().key("order-1")).await;
    refused.problem(503, "CACHING_UNAVAILABLE_001");
    redis.restart();
    until_ready(&service).await;
    service.send(&order().key("order-1")).await.placed();
}

#[tokio::test]
async fn x3_the_password_of_redis_is_in_no_log() {
    let redis = Server::with(&[("requirepass", "hunter2")]);
    let with_password = |password: &str| {
        let url = format!("redis://:{password}@127.0.0.1:{}", redis.port());
        Launch::new()
            .environment("XIHAN__CACHING__PROVIDER", "redis")
            .environment("XIHAN__CACHING__REDIS__URL", &url)
            .environment("RUST_LOG", "trace")
    };
    let service = with_password("hunter2").start().await;
    service.send(&order().key("order-1")).await.placed();
    assert!(!service.log().contains("hunter2"), "{}", service.log());

    let (status, said) = with_password("wr0ng-password").end().await;
    assert!(!status.success(), "{said}");
    assert!(
        said.contains("redis refuses the user or password"),
        "{said}"
    );
    assert!(!said.contains("wr0ng"), "{said}");
}
