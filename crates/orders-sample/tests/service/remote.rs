//! Two instances on one remote store: records and locks are shared.

use std::sync::Arc;

use caching_remote::server::{AccessToken, StoreServer};
use xihan_caching::prelude::*;

use crate::support::{ALICE, Launch, Request, Service, order};

const TOKEN: &str = "the-token-of-two-instances-0123456789";

/// The server of a store in this process; it ends with the test.
async fn store_server() -> u16 {
    let assembled = Caching::builder().provider(InMemoryProvider::new()).build();
    let store = Arc::clone(assembled.await.unwrap().store());
    let server = StoreServer::builder(store)
        .token(AccessToken::new(TOKEN).unwrap())
        .build()
        .unwrap();
    let listening = server.bind(("127.0.0.1", 0)).await.unwrap();
    let port = listening.local_address().port();
    tokio::spawn(listening.run_until(std::future::pending()));
    port
}

async fn instance(port: u16) -> Service {
    Launch::new()
        .environment("XIHAN__CACHING__PROVIDER", "remote")
        .environment(
            "XIHAN__CACHING__REMOTE__ENDPOINT",
            &format!("grpc://127.0.0.1:{port}"),
        )
        .environment("XIHAN__CACHING__REMOTE__TOKEN", TOKEN)
        .environment("RUST_LOG", "trace")
        .arguments(["--report-seconds", "2"])
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn p8_l1_two_instances_on_a_remote_store_share_records_and_locks() {
    let port = store_server().await;
    let (first, second) = (instance(port).await, instance(port).await);
    let placed = first.send(&order().key("order-1")).await;
    let again = second.send(&order().key("order-1")).await;
    let replayed = (placed.replayed(), again.replayed());
    assert_eq!(replayed, (Some(false), Some(true)));
    assert_eq!(placed.body, again.body);

    let report = Request::post("/reports/daily").by(ALICE);
    let (one, other) = tokio::join!(first.send(&report), second.send(&report));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(second.send(&report).await.status, 200, "free again");
    for service in [first, second] {
        assert!(!service.log().contains(TOKEN), "X3: {}", service.log());
    }
}
