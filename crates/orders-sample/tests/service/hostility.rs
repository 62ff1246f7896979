//! Clients that mean harm.

use crate::support::{ALICE, Connection, Request, Service, order};

#[tokio::test]
async fn many_connections_that_say_nothing_keep_nobody_out() {
    let service = Service::start().await;
    let mut held: Vec<Connection> = Vec::new();
    for _ in 0..400 {
        let mut connection = service.connect().await;
        connection
            .write(b"POST /orders HTTP/1.1\r\nhost: loc")
            .await;
        held.push(connection);
    }
    service.send(&order().key("order-1")).await.placed();
    assert_eq!(service.send(&Request::get("/healthz")).await.status, 200);
    drop(held);
    assert_eq!(service.orders(ALICE).await.len(), 1);
}
