//! P8 and P9 over HTTP and across transports.

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use idempotency_pipeline::http::OperationRouter;
use idempotency_pipeline::{EntryKind, InvocationContext, Operation, was_replayed};

use crate::support::http::{Answer, ORDER, post, post_unkeyed, send};
use crate::support::{
    Create, Fixture, Gate, Order, code, create_order, gated_order, keyed, operation, refuse_order,
};

/// The repeat is the first answer to the byte, and says that it is a repeat.
fn assert_verbatim(first: &Answer, again: &Answer) {
    assert_eq!(
        (first.replayed(), again.replayed()),
        (Some("false"), Some("true"))
    );
    assert_eq!(first.status, again.status);
    assert_eq!(first.body, again.body);
    assert_eq!(first.describing(), again.describing());
}

#[tokio::test]
async fn p8_answers_say_whether_they_are_replayed_only_where_there_is_a_key() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    assert_eq!(send(&app, post("a", &[])).await.replayed(), Some("false"));
    assert_eq!(send(&app, post("a", &[])).await.replayed(), Some("true"));
    assert_eq!(send(&app, post_unkeyed(&[])).await.replayed(), None);
    assert_eq!(fixture.runs.count(), 2);
}

#[tokio::test]
async fn p9_http_replays_a_created_answer_verbatim() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    let first = send(&app, post("a", &[])).await;
    assert_eq!(first.status, 201);
    assert_eq!(first.header("location"), Some("/orders/1"));
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(first.body, r#"{"id":1,"name":"Keyboard"}"#);
    for _ in 0..3 {
        assert_verbatim(&first, &send(&app, post("a", &[])).await);
    }
}

#[tokio::test]
async fn p9_http_replays_accepted_and_plain_successes_with_their_status() {
    let fixture = Fixture::new();
    let accept = create_order(&fixture.runs).accepted(|order| format!("/jobs/{}", order.id));
    let plain = operation("orders.plain", &fixture.runs, |id, _, request| async move {
        Ok(Order {
            id,
            name: request.name,
        })
    });
    for (operation, status) in [(accept, 202), (plain, 200)] {
        let app = fixture.app(&operation);
        let first = send(&app, post(operation.id(), &[])).await;
        assert_eq!(first.status, status);
        assert_verbatim(&first, &send(&app, post(operation.id(), &[])).await);
    }
}

#[tokio::test]
async fn p9_http_replays_a_failure_in_the_language_of_the_first_caller() {
    let fixture = Fixture::new();
    let refuse = operation("orders.lock", &fixture.runs, |_, _, _| async {
        Err(caching_abstractions::CachingError::lock_held("orders:7").into())
    });
    let app = fixture.app(&refuse);
    let first = send(&app, post("a", &[("accept-language", "zh-CN")])).await;
    assert_eq!(
        (first.status.as_u16(), first.header("content-language")),
        (409, Some("zh-CN"))
    );
    let again = send(&app, post("a", &[("accept-language", "en")])).await;
    assert_verbatim(&first, &again);
    assert_eq!(again.problem()["traceId"], first.problem()["traceId"]);
    let english = send(&app, post("b", &[("accept-language", "en")])).await;
    assert_ne!(english.problem()["detail"], first.problem()["detail"]);
}

#[tokio::test]
async fn p9_http_replays_headers_that_describe_the_body_and_no_others() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    let headers = [(
        "traceparent",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )];
    send(&app, post("a", &headers)).await;
    let again = send(&app, post("a", &[])).await;
    let mut names: Vec<_> = again.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    // The length belongs to the transfer of this answer, and is its own.
    names.retain(|name| *name != "content-length");
    assert_eq!(names, ["content-type", "idempotency-replayed", "location"]);
}

#[tokio::test]
async fn p9_raw_bytes_are_replayed_identically() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    let mut responses = Vec::new();
    for replayed in [false, true, true] {
        let context = keyed(EntryKind::Raw, "a");
        let request = Bytes::from(ORDER);
        let (response, context) = fixture
            .invoker
            .invoke(&create, context, request)
            .await
            .unwrap();
        assert_eq!(was_replayed(&context), replayed);
        responses.push(response);
    }
    assert!(
        responses
            .iter()
            .all(|response| response == r#"{"id":1,"name":"Keyboard"}"#)
    );
}

#[tokio::test]
async fn p9_typed_calls_get_an_equal_object_and_an_equal_failure() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    let (first, _) = fixture.call(&create, "a").await.unwrap();
    let (again, _) = fixture.call(&create, "a").await.unwrap();
    assert_eq!(first, again);
    let refuse = refuse_order(&fixture.runs);
    let first = fixture.call(&refuse, "b").await.unwrap_err();
    let again = fixture.call(&refuse, "b").await.unwrap_err();
    assert_eq!(format!("{first:?}"), format!("{again:?}"));
}

#[tokio::test]
async fn p9_what_http_recorded_is_replayed_to_typed_and_raw_calls() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    let first = send(&fixture.app(&create), post("a", &[])).await;
    let (order, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!(order, serde_json::from_slice(&first.body).unwrap());
    let context = keyed(EntryKind::Raw, "a");
    let (raw, _) = fixture
        .invoker
        .invoke(&create, context, Bytes::from(ORDER))
        .await
        .unwrap();
    assert_eq!((raw, fixture.runs.count()), (first.body, 1));
    let refuse = refuse_order(&fixture.runs);
    let first = send(&fixture.app(&refuse), post("b", &[])).await;
    assert_eq!(fixture.refusal(&refuse, "b").await, first.code());
}

#[tokio::test]
async fn p9_what_typed_and_raw_calls_recorded_is_replayed_over_http() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    let app = fixture.app(&create);
    let (order, _) = fixture.call(&create, "typed").await.unwrap();
    let context = keyed(EntryKind::Raw, "raw");
    let (raw, _) = fixture
        .invoker
        .invoke(&create, context, Bytes::from(ORDER))
        .await
        .unwrap();
    for (key, body) in [
        ("typed", serde_json::to_vec(&order).unwrap().into()),
        ("raw", raw),
    ] {
        let first = send(&app, post(key, &[])).await;
        let location = format!(
            "/orders/{}",
            serde_json::from_slice::<Order>(&body).unwrap().id
        );
        assert_eq!((first.status.as_u16(), &first.body), (201, &body));
        assert_eq!(first.header("location"), Some(location.as_str()));
        assert_eq!(first.replayed(), Some("true"));
        let again = send(&app, post(key, &[("accept-language", "zh-CN")])).await;
        assert_eq!((again.status, again.body), (first.status, first.body));
    }
    assert_eq!(fixture.runs.count(), 2);
}

#[tokio::test]
async fn p9_the_first_answer_of_http_is_what_a_fresh_call_without_a_key_gets() {
    let fixture = Fixture::new();
    let gate = Gate::new();
    gate.open();
    let app = fixture.app(&gated_order(&fixture.runs, &gate));
    let keyed = send(&app, post("a", &[])).await;
    let unkeyed = send(&app, post_unkeyed(&[])).await;
    assert_eq!(
        (keyed.status, keyed.describing()),
        (unkeyed.status, unkeyed.describing())
    );
}

#[tokio::test]
async fn p10_a_fingerprint_knows_the_path() {
    let fixture = Fixture::configured(|settings| settings.fingerprint = true);
    let cancel = Operation::new("orders.cancel")
        .handler(|_: InvocationContext, ()| async { Ok("cancelled") });
    let app = OperationRouter::new(&fixture.pipeline)
        .delete("/orders/{id}", &cancel)
        .into_router();
    let delete = |path: &str| {
        Request::delete(path)
            .header("baggage", "xihan.idempotency-key=a")
            .body(Body::empty())
            .unwrap()
    };
    assert_eq!(send(&app, delete("/orders/1")).await.status, 200);
    assert_eq!(
        send(&app, delete("/orders/1")).await.replayed(),
        Some("true")
    );
    let other = send(&app, delete("/orders/2")).await;
    assert_eq!(
        other.problem()["messageKey"],
        "caching.idempotency.request_mismatch"
    );
}

#[tokio::test]
async fn p10_a_fingerprint_does_not_know_the_order_of_a_query_or_how_nothing_is_written() {
    let fixture = Fixture::configured(|settings| settings.fingerprint = true);
    let touch = Operation::new("orders.touch").handler(
        |_: InvocationContext, _: std::collections::BTreeMap<String, String>| async { Ok("done") },
    );
    let app = OperationRouter::new(&fixture.pipeline)
        .get("/touch", &touch)
        .post("/touch", &touch)
        .into_router();
    let get = |query: &str| {
        Request::get(format!("/touch?{query}"))
            .header("baggage", "xihan.idempotency-key=a")
            .body(Body::empty())
            .unwrap()
    };
    send(&app, get("a=1&b=2")).await;
    assert_eq!(send(&app, get("b=2&a=1")).await.replayed(), Some("true"));
    assert_eq!(send(&app, get("a=1&b=3")).await.status, 409);
    let touch_with = |body: &'static str| {
        Request::post("/touch")
            .header("baggage", "xihan.idempotency-key=b")
            .header("content-type", "application/json")
            .body(Body::from(body))
            .unwrap()
    };
    send(&app, touch_with("")).await;
    assert_eq!(send(&app, touch_with("{}")).await.replayed(), Some("true"));
}

#[tokio::test]
async fn p11_http_says_what_cannot_be_replayed_without_a_retry_hint() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    send(&fixture.app(&create), post("a", &[])).await;
    let other = send(&fixture.app(&refuse_order(&fixture.runs)), post("a", &[])).await;
    let problem = other.problem();
    assert_eq!(problem["code"], "CACHING_CONFLICT_003");
    assert_eq!(problem["parameters"]["operation"], "orders.refuse");
    assert_eq!(problem["parameters"]["recorded"], "orders.create");
    assert_eq!(
        (other.header("retry-after"), other.replayed()),
        (None, None)
    );
    let error = fixture
        .invoker
        .invoke_typed(
            &refuse_order(&fixture.runs),
            keyed(EntryKind::Typed, "a"),
            &Create::new("a"),
        )
        .await
        .unwrap_err();
    assert_eq!(code(&error), "CACHING_CONFLICT_003");
}
