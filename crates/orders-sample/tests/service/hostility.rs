//! Clients that mean harm.

use serde_json::json;

use crate::support::{ALICE, Connection, Launch, Request, Service, order};

#[tokio::test]
async fn connections_that_say_nothing_keep_nobody_out_and_are_closed() {
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
    assert_eq!(service.orders(ALICE).await.len(), 1);
    for connection in &mut held {
        assert_eq!(connection.closed().await, b"");
    }
}

#[tokio::test]
async fn s2_more_keys_than_the_store_has_room_for_are_refused_and_none_is_forgotten() {
    let service = Launch::new()
        .environment("XIHAN__CACHING__INMEMORY__MAXPROTECTEDBYTES", "65536")
        .start()
        .await;
    let mut connection = service.connect().await;
    let mut placed = 0;
    let refusal = loop {
        let answer = connection
            .send(&order().key(&format!("order-{placed}")))
            .await;
        if answer.status != 201 {
            break answer;
        }
        placed += 1;
        assert!(placed < 2000, "65536 bytes hold everything");
    };
    let problem = refusal.problem(503, "CACHING_UNAVAILABLE_002");
    assert_eq!(problem["messageKey"], "caching.store.full");
    assert!(refusal.header("retry-after").is_some());
    assert!(placed > 50, "{placed}");

    // P14: a record whose response had no room says so, and nothing runs again.
    for index in 0..placed {
        let answer = connection
            .send(&order().key(&format!("order-{index}")))
            .await;
        if answer.status != 201 {
            let problem = answer.problem(409, "CACHING_CONFLICT_003");
            assert_eq!(
                problem["messageKey"],
                "caching.idempotency.response_unavailable"
            );
            continue;
        }
        assert_eq!(answer.replayed(), Some(true));
    }
    assert_eq!(service.orders(ALICE).await.len(), placed);
    connection.send(&order()).await.placed();
    assert_eq!(service.orders(ALICE).await.len(), placed + 1);
}

#[tokio::test]
async fn a_client_that_asks_without_reading_is_not_served_without_end() {
    let service = Service::start().await;
    let mut greedy = service.connect().await;
    let requests = Request::get("/metrics").to_bytes().repeat(1000);
    let flood = tokio::spawn(async move {
        // Ends when the service is gone; until then it blocks once every buffer is full.
        while greedy.try_write(&requests).await.is_ok() {}
    });
    for _ in 0..20 {
        service.send(&order()).await.placed();
    }
    assert!(!flood.is_finished());
    flood.abort();
}

#[tokio::test]
async fn values_that_look_like_markup_or_templates_are_only_values() {
    let service = Service::start().await;
    for name in [
        "{name}",
        "{{amount}}",
        "</script>",
        "%s%n",
        "../../etc/passwd",
        "\u{202e}",
    ] {
        let request = order().json(&json!({"name": name, "amount": 1}).to_string());
        assert_eq!(service.send(&request).await.json()["name"], name);
    }
    let lost = Request::get("/orders/%7Bid%7D%22%5C%0A").by(ALICE);
    let problem = service
        .send(&lost)
        .await
        .problem(404, "ORDERS_NOTFOUND_001");
    assert_eq!(problem["parameters"]["id"], "{id}\"\\\n");
    assert_eq!(
        problem["detail"],
        "There is no order with the id `{id}\"\\\n`."
    );
}
