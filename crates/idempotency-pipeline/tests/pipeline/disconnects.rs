//! P15 over HTTP: the client goes away, the work does not.

use caching_abstractions::seconds;
use tokio::time::timeout;

use crate::support::http::{connect_and_post, post, send, serve};
use crate::support::{Fixture, Gate, create_order, gated_order, settle};

#[tokio::test(start_paused = true)]
async fn p15_a_dropped_response_future_does_not_stop_the_work() {
    let fixture = Fixture::new();
    let gate = Gate::new();
    let app = fixture.app(&gated_order(&fixture.runs, &gate));
    let cut = timeout(seconds(1), send(&app, post("a", &[]))).await;
    assert!(cut.is_err(), "an outer timeout has dropped the call");
    gate.reached().await;
    let repeat = send(&app, post("a", &[])).await;
    assert_eq!(repeat.code(), "CACHING_CONFLICT_002");
    assert_eq!(repeat.header("retry-after"), Some("1"));
    gate.open();
    settle().await;
    let repeat = send(&app, post("a", &[])).await;
    assert_eq!(
        (repeat.status.as_u16(), repeat.replayed()),
        (200, Some("true"))
    );
    assert_eq!(fixture.runs.count(), 1);
}

/// Runs on real time and a real port: closes the connection while the handler runs.
#[tokio::test]
async fn p15_a_closed_connection_does_not_stop_the_work() {
    let fixture = Fixture::new();
    let gate = Gate::new();
    let app = fixture.app(&gated_order(&fixture.runs, &gate));
    let address = serve(app.clone()).await;
    let connection = connect_and_post(address, "a").await;
    timeout(seconds(30), gate.reached()).await.unwrap();
    drop(connection);
    // The server has noticed once the response future, with its clone of the call, is gone.
    assert_eq!(
        send(&app, post("a", &[])).await.code(),
        "CACHING_CONFLICT_002"
    );
    gate.open();
    assert!(fixture.pipeline.shutdown().await);
    let repeat = send(&app, post("a", &[])).await;
    assert_eq!(
        (repeat.status.as_u16(), repeat.replayed()),
        (200, Some("true"))
    );
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test]
async fn p15_a_request_that_never_arrives_whole_writes_no_marker() {
    use tokio::io::AsyncWriteExt;
    let fixture = Fixture::new();
    let address = serve(fixture.app(&create_order(&fixture.runs))).await;
    let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = "POST /orders HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                baggage: xihan.idempotency-key=a\r\ncontent-length: 100\r\n\r\n{\"name\"";
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.shutdown().await.unwrap();
    // The server answers, or closes, once it knows that no more will come.
    let mut rest = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut connection, &mut rest);
    timeout(seconds(30), read).await.unwrap().unwrap();
    assert!(
        rest.is_empty() || rest.starts_with(b"HTTP/1.1 400"),
        "{rest:?}"
    );
    assert_eq!((fixture.store.round_trips(), fixture.runs.count()), (0, 0));
}
