//! What operators look at.

use crate::support::{ALICE, Launch, Request, eventually, order};

#[tokio::test]
async fn health_readiness_and_metrics_need_no_credentials() {
    let service = Launch::new().start().await;
    for (path, text) in [("/healthz", "ok"), ("/readyz", "ready")] {
        let answer = service.send(&Request::get(path)).await;
        assert_eq!((answer.status, &*answer.text()), (200, text));
    }
    let answer = service.send(&Request::get("/metrics")).await;
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .header("content-type")
            .unwrap()
            .starts_with("text/plain"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn part_10_the_metrics_have_their_names_and_no_secret_in_a_label() {
    let service = Launch::new()
        .environment("RUST_LOG", "trace")
        .arguments(["--report-seconds", "0", "--order-delay-milliseconds", "1"])
        .start()
        .await;
    let named = |name: &str| order().json(&format!(r#"{{"name":"{name}","amount":7}}"#));
    service
        .send(&named("private-product").key("private-key"))
        .await
        .placed();
    service
        .send(&named("private-product").key("private-key"))
        .await
        .placed();
    service
        .send(&order().key("private key"))
        .await
        .problem(400, "CACHING_VALIDATION_001");
    service
        .send(
            &Request::post("/reports/daily")
                .by(ALICE)
                .key("private-key-2"),
        )
        .await;
    service
        .send(&order().by("private-credentials"))
        .await
        .problem(401, "HTTP_UNAUTHENTICATED_001");

    eventually("used bytes", async || {
        let metrics = service.metrics().await;
        (metrics.value(r#"xihan_caching_store_bytes{kind="protected"}"#) > 0.0).then_some(())
    })
    .await;
    let text = service.send(&Request::get("/metrics")).await.text();
    let metrics = service.metrics().await;
    for name in [
        "xihan_caching_store_operations_total",
        "xihan_caching_store_operation_seconds_count",
        "xihan_caching_idempotency_total",
        "xihan_caching_lock_acquisitions_total",
        "xihan_caching_lock_wait_seconds_count",
        "xihan_caching_lock_hold_seconds_count",
    ] {
        assert!(
            metrics.names().any(|other| other == name),
            "{name}:\n{text}"
        );
    }
    assert_eq!(metrics.idempotency("executed"), 2.0);
    assert_eq!(metrics.idempotency("replayed"), 1.0);
    // X3, also for what is logged at the lowest level.
    let log = service.log();
    for secret in ["private", ALICE, "dev-"] {
        assert!(!text.contains(secret), "{secret}:\n{text}");
    }
    for secret in ["private-credentials", "private-product", ALICE] {
        assert!(!log.contains(secret), "{secret}:\n{log}");
    }
}
