//! What the service does when everything is right.

use serde_json::json;

use crate::support::{ALICE, BOB, CAROL, Launch, ROOT, Request, Service, order};

#[tokio::test]
async fn an_order_is_found_where_its_location_says() {
    let service = Service::start().await;
    let placed = service.send(&order()).await;
    let id = placed.placed();
    assert_eq!(
        placed.json(),
        json!({"id": id, "name": "Keyboard", "amount": 1})
    );
    assert_eq!(placed.replayed(), None, "P8: without a key nothing is said");
    let found = service
        .send(&Request::get(&format!("/orders/{id}")).by(BOB))
        .await;
    assert_eq!((found.status, found.body), (200, placed.body));
    assert_eq!(
        service.orders(BOB).await,
        [json!({"id": id, "name": "Keyboard", "amount": 1})]
    );
}

#[tokio::test]
async fn an_order_of_another_tenant_is_not_there() {
    let service = Service::start().await;
    let id = service.send(&order()).await.placed();
    for caller in [CAROL, ROOT] {
        let answer = service
            .send(&Request::get(&format!("/orders/{id}")).by(caller))
            .await;
        let problem = answer.problem(404, "ORDERS_NOTFOUND_001");
        assert_eq!(problem["parameters"], json!({"id": id}));
        assert_eq!(problem["instance"], format!("/orders/{id}"));
        assert_eq!(service.orders(caller).await.len(), 0, "{caller}");
    }
}

#[tokio::test]
async fn the_smallest_and_the_largest_order_are_accepted() {
    let service = Service::start().await;
    let names = [
        "k".to_owned(),
        "k".repeat(100),
        "订".repeat(100),
        "\0\"\\\u{1F600}".to_owned(),
    ];
    for (name, amount) in names.iter().zip([1, 1000, 1, 1000]) {
        let request = order().json(&json!({"name": name, "amount": amount}).to_string());
        let answer = service.send(&request).await;
        answer.placed();
        assert_eq!(answer.json()["name"], *name);
        assert_eq!(answer.json()["amount"], amount);
    }
    let orders = service.orders(ALICE).await;
    assert!(
        orders.iter().map(|order| &order["name"]).eq(&names),
        "oldest first: {orders:?}"
    );
}

#[tokio::test]
async fn p5_a_business_failure_is_recorded_too() {
    let service = Launch::new()
        .arguments(["--order-delay-milliseconds", "1"])
        .start()
        .await;
    let request = order()
        .json(r#"{"name":"Unobtainium","amount":1}"#)
        .key("order-1");
    let first = service.send(&request).await;
    let problem = first.problem(409, "ORDERS_CONFLICT_001");
    assert_eq!(problem["messageKey"], "orders.out_of_stock");
    assert_eq!(problem["detail"], "Unobtainium is out of stock.");
    assert_eq!(first.header("retry-after"), None);
    let again = service.send(&request).await;
    assert_eq!(
        (first.replayed(), again.replayed()),
        (Some(false), Some(true))
    );
    assert_eq!(again.body, first.body);
    assert_eq!(service.orders(ALICE).await.len(), 0);
}

#[tokio::test]
async fn p9_a_replay_is_the_first_answer_but_for_its_date_and_mark() {
    let service = Service::start().await;
    let first = service.send(&order().key("order-1")).await;
    // P10: the request is not compared.
    let other = order()
        .json(r#"{"name":"Mouse","amount":9}"#)
        .key("order-1");
    let mut again = service.send(&other).await;
    assert_eq!(again.replayed(), Some(true));
    for (name, value) in &mut again.headers {
        match name.as_str() {
            "idempotency-replayed" => *value = "false".to_owned(),
            "date" => *value = first.header("date").unwrap().to_owned(),
            _ => {}
        }
    }
    assert_eq!(again, first);
}

#[tokio::test]
async fn p10_with_a_fingerprint_a_repeat_must_carry_the_same_request() {
    let service = Launch::new()
        .idempotency("Fingerprint", "true")
        .start()
        .await;
    service.send(&order().key("order-1")).await.placed();
    let spaced = order()
        .json(" {\"amount\": 1,\n \"name\": \"Keyboard\"}")
        .key("order-1");
    assert_eq!(service.send(&spaced).await.replayed(), Some(true));
    let other = order()
        .json(r#"{"name":"Keyboard","amount":2}"#)
        .key("order-1");
    let problem = service
        .send(&other)
        .await
        .problem(409, "CACHING_CONFLICT_003");
    assert_eq!(
        problem["messageKey"],
        "caching.idempotency.request_mismatch"
    );
}

#[tokio::test]
async fn h1_the_idempotency_key_header_counts_where_it_is_accepted() {
    let service = Launch::new()
        .idempotency("AcceptIdempotencyKeyHeader", "true")
        .start()
        .await;
    let first = service
        .send(&order().header("idempotency-key", "order-1"))
        .await;
    assert_eq!(first.replayed(), Some(false));
    for same in [
        order().header("idempotency-key", "\"order-1\""),
        order().key("order-1"),
        order().key("order-1").header("idempotency-key", "order-1"),
    ] {
        let answer = service.send(&same).await;
        assert_eq!(
            (answer.replayed(), &answer.body),
            (Some(true), &first.body),
            "{same:?}"
        );
    }
    let other = order().key("order-1").header("idempotency-key", "order-2");
    service
        .send(&other)
        .await
        .problem(400, "CACHING_VALIDATION_001");
    assert_eq!(service.orders(ALICE).await.len(), 1);

    let service = Service::start().await;
    let answer = service
        .send(&order().header("idempotency-key", "order-1"))
        .await;
    assert_eq!(
        answer.replayed(),
        None,
        "it does not count unless asked for"
    );
}

#[tokio::test]
async fn x2_problems_speak_the_callers_language_and_replays_the_first_callers() {
    let service = Service::start().await;
    let request = order().json(r#"{"name":"Unobtainium","amount":1}"#);
    let chinese = request
        .clone()
        .header("accept-language", "fr, zh-CN;q=0.8, en;q=0.5");
    let answer = service.send(&chinese.key("order-1")).await;
    assert_eq!(answer.header("content-language"), Some("zh-CN"));
    let problem = answer.problem(409, "ORDERS_CONFLICT_001");
    assert_eq!(
        (&problem["title"], &problem["detail"]),
        (&"缺货".into(), &"Unobtainium 缺货。".into())
    );
    let english = service.send(&request.key("order-1")).await;
    assert_eq!(
        (english.replayed(), &english.body),
        (Some(true), &answer.body)
    );
    assert_eq!(english.header("content-language"), Some("zh-CN"));

    for (accepted, language) in [
        ("zh", "zh-CN"),
        ("de", "en"),
        ("*", "en"),
        ("q=;;,\u{fc}", "en"),
    ] {
        let request = Request::get("/nowhere").header("accept-language", accepted);
        let answer = service.send(&request).await;
        answer.problem(404, "HTTP_NOTFOUND_001");
        assert_eq!(
            answer.header("content-language"),
            Some(language),
            "{accepted}"
        );
    }
}

#[tokio::test]
async fn x1_a_problem_bears_the_callers_trace() {
    let service = Service::start().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let answer = service
        .send(&Request::get("/nowhere").header("traceparent", parent))
        .await;
    assert_eq!(answer.problem(404, "HTTP_NOTFOUND_001")["traceId"], trace);
}
