//! The daily report, which runs once at a time.

use serde_json::json;

use crate::support::{ALICE, CAROL, Connection, Launch, Request, Service, eventually, order};

const HELD: &str = "xihan_caching_lock_hold_seconds_count";

fn report() -> Request {
    Request::post("/reports/daily").by(ALICE)
}

async fn until_acquired(service: &Service, count: u32) {
    let series = r#"xihan_caching_lock_acquisitions_total{outcome="acquired"}"#;
    eventually("the lock", async || {
        (service.metrics().await.value(series) >= f64::from(count)).then_some(())
    })
    .await;
}

async fn begin(service: &Service, request: &Request) -> Connection {
    let mut connection = service.connect().await;
    connection.write(&request.to_bytes()).await;
    connection
}

#[tokio::test]
async fn l2_of_two_reports_at_once_one_is_refused_and_then_it_is_free_again() {
    let service = Launch::new()
        .arguments(["--report-seconds", "2"])
        .start()
        .await;
    service.send(&order()).await.placed();
    let mut first = begin(&service, &report()).await;
    until_acquired(&service, 1).await;

    let refused = service.send(&report().by(CAROL)).await;
    let problem = refused.problem(409, "CACHING_CONFLICT_001");
    assert_eq!(problem["messageKey"], "caching.lock.held");
    assert_eq!(problem["parameters"], json!({"resource": "report:daily"}));
    assert!(
        first.is_silent(),
        "the first report ended before the second was refused"
    );

    let first = first.answer().await.unwrap();
    assert_eq!(
        (first.status, first.json()),
        (200, json!({"report": "daily", "orders": 1}))
    );
    let third = service.send(&report().json("{}").by(CAROL)).await;
    assert_eq!(
        (third.status, third.json()),
        (200, json!({"report": "daily", "orders": 0}))
    );
    assert_eq!(service.metrics().await.value(HELD), 2.0);
}

#[tokio::test]
async fn l6_a_client_that_is_gone_frees_the_report() {
    let service = Launch::new()
        .arguments(["--report-seconds", "600"])
        .start()
        .await;
    for count in 1..=3 {
        let connection = begin(&service, &report()).await;
        until_acquired(&service, count).await;
        service
            .send(&report())
            .await
            .problem(409, "CACHING_CONFLICT_001");
        drop(connection);
        eventually("the release", async || {
            (service.metrics().await.value(HELD) >= f64::from(count)).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn p15_a_report_with_a_key_runs_on_without_its_client() {
    let service = Launch::new()
        .arguments(["--report-seconds", "2"])
        .start()
        .await;
    let connection = begin(&service, &report().key("monday")).await;
    until_acquired(&service, 1).await;
    drop(connection);

    service.send(&report().key("monday")).await.in_progress();
    // P2: that another one runs is an outcome, and recorded.
    let refused = service.send(&report().key("tuesday")).await;
    refused.problem(409, "CACHING_CONFLICT_001");
    assert_eq!(refused.replayed(), Some(false));

    let report_of = async |key: &str| {
        eventually("the report", async || {
            let answer = service.send(&report().key(key)).await;
            (answer.json()["code"] != "CACHING_CONFLICT_002").then_some(answer)
        })
        .await
    };
    let monday = report_of("monday").await;
    assert_eq!((monday.status, monday.replayed()), (200, Some(true)));
    let tuesday = report_of("tuesday").await;
    assert_eq!(
        (tuesday.replayed(), tuesday.body),
        (Some(true), refused.body)
    );
}
