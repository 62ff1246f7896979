//! Ctrl-C and SIGTERM.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::time::timeout;

use crate::support::{ALICE, Connection, Launch, Request, Service, eventually, order};

/// A service whose orders take this long, and one that has begun.
async fn with_an_order(delay: &str, shutdown: &str) -> (Service, Connection) {
    let service = Launch::new()
        .arguments(["--order-delay-milliseconds", delay])
        .idempotency("ShutdownSeconds", shutdown)
        .start()
        .await;
    let mut connection = service.connect().await;
    connection.write(&order().key("order-1").to_bytes()).await;
    service.until_claimed(1).await;
    (service, connection)
}

#[tokio::test]
async fn p15_a_running_order_ends_before_the_service_does_and_nobody_new_is_let_in() {
    for signal in ["TERM", "INT"] {
        let (service, mut connection) = with_an_order("3000", "30").await;
        service.signal(signal).await;
        eventually("a refused connection", async || {
            // One that waits to be taken meanwhile is reset.
            let refusal = Connection::try_open(service.address()).await.err()?;
            (refusal.kind() == ErrorKind::ConnectionRefused).then_some(())
        })
        .await;
        assert!(
            connection.is_silent(),
            "the order ended before a connection was refused"
        );
        connection.answer().await.unwrap().placed();
        let (status, log) = service.exit().await;
        assert_eq!(status.code(), Some(0), "{signal}:\n{log}");
        assert!(log.contains("stopped"), "{log}");
    }
}

#[tokio::test]
async fn p15_an_order_whose_client_hung_up_is_waited_for_as_well() {
    let (service, connection) = with_an_order("1000", "30").await;
    drop(connection);
    service.signal("TERM").await;
    let (status, log) = service.exit().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("still running"), "{log}");
}

#[tokio::test]
async fn p15_an_order_that_takes_too_long_is_cut() {
    let (service, mut connection) = with_an_order("600000", "0.5").await;
    service.signal("TERM").await;
    let (status, log) = service.exit().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(
        log.contains("still running") || log.contains("still open"),
        "{log}"
    );
    let rest = connection.closed().await;
    assert!(
        !rest.starts_with(b"HTTP/1.1 201"),
        "{}",
        String::from_utf8_lossy(&rest)
    );
}

#[tokio::test]
async fn connections_without_a_request_do_not_hold_up_the_end() {
    // Far longer than the test waits.
    let service = Launch::new()
        .idempotency("ShutdownSeconds", "3600")
        .start()
        .await;
    let mut untouched = service.connect().await;
    let mut idle = service.connect().await;
    assert_eq!(idle.send(&Request::get("/healthz")).await.status, 200);
    service.stop().await;
    assert_eq!(untouched.closed().await, b"");
    assert_eq!(idle.closed().await, b"");
}

#[tokio::test]
async fn half_a_request_holds_up_the_end_no_longer_than_shutdown_seconds() {
    let service = Launch::new()
        .idempotency("ShutdownSeconds", "1")
        .start()
        .await;
    let request = order().to_bytes();
    let mut halves = Vec::new();
    for length in [10, request.len() - 1] {
        let mut half = service.connect().await;
        half.write(&request[..length]).await;
        halves.push(half);
    }
    // The service has seen them: they came before this.
    assert_eq!(service.orders(ALICE).await.len(), 0);
    service.stop().await;
    for half in &mut halves {
        half.closed().await;
    }
}

#[tokio::test]
async fn a_signal_right_after_the_start_is_a_graceful_stop() {
    for _ in 0..20 {
        Service::start().await.stop().await;
    }
}

#[tokio::test]
async fn a_second_signal_does_not_cut_what_the_first_one_lets_end() {
    let (service, mut connection) = with_an_order("1500", "30").await;
    service.signal("TERM").await;
    service.until_logged("stopping").await;
    service.signal("TERM").await;
    let answer = timeout(Duration::from_secs(30), connection.answer())
        .await
        .unwrap();
    answer.unwrap().placed();
    assert_eq!(service.exit().await.0.code(), Some(0));
}
