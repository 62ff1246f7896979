//! The HTTP transport, driven as a service.
#![cfg(feature = "http")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use idempotency_pipeline::http::OperationRouter;
use idempotency_pipeline::{Operation, Pipeline};
use serde::{Deserialize, Serialize};
use support::Services;
use tower::ServiceExt;

#[derive(Deserialize)]
struct Create {
    name: String,
}

#[derive(Serialize, Deserialize)]
struct Created {
    id: usize,
    name: String,
}

fn app() -> (Router, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let create = Operation::new("orders.create")
        .handler(move |_context, request: Create| {
            let id = counter.fetch_add(1, Ordering::SeqCst);
            async move { Ok(Created { id, name: request.name }) }
        })
        .created(|order: &Created| format!("/orders/{}", order.id));
    let pipeline = Pipeline::builder().build(&Services::new());
    (OperationRouter::new(&pipeline).post("/orders", &create).into_router(), runs)
}

async fn send(app: &Router, request: Request<Body>) -> (StatusCode, HeaderMap, String) {
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
}

fn post(key: &str, body: &'static str) -> Request<Body> {
    Request::post("/orders")
        .header("content-type", "application/json")
        .header("baggage", format!("xihan.idempotency-key={key}"))
        .body(body.into())
        .unwrap()
}

#[tokio::test]
async fn p8_a_repeat_gets_the_first_answer_byte_for_byte() {
    let (app, runs) = app();
    let first = send(&app, post("a", r#"{"name":"Keyboard"}"#)).await;
    let again = send(&app, post("a", r#"{"name":"Mouse"}"#)).await;
    assert_eq!(first.0, StatusCode::CREATED, "{}", first.2);
    assert_eq!(first.1["idempotency-replayed"], "false");
    assert_eq!(again.1["idempotency-replayed"], "true");
    assert_eq!((first.0, &first.1["location"], &first.2), (again.0, &again.1["location"], &again.2));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
