//! X1 problems over HTTP, X2 their languages.

use axum::body::Body;
use axum::http::{Method, Request};
use idempotency_pipeline::{Failure, InvocationContext, Stage};

use crate::support::http::{Answer, ORDER, post, post_unkeyed, send};
use crate::support::{Fixture, Gate, Step, Then, create_order, gated_order, operation};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const TRACEPARENT: (&str, &str) = (
    "traceparent",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
);

fn json(body: &'static str) -> Request<Body> {
    request("/orders", Some("application/json"), body)
}

fn request(path: &str, content_type: Option<&str>, body: &'static str) -> Request<Body> {
    let mut request = Request::post(path).header(TRACEPARENT.0, TRACEPARENT.1);
    if let Some(content_type) = content_type {
        request = request.header("content-type", content_type);
    }
    request.body(Body::from(body)).unwrap()
}

/// A whole problem of this status and code, at this path, with the caller's trace.
fn assert_problem(answer: &Answer, status: u16, code: &str, instance: &str) {
    let problem = answer.problem();
    assert_eq!(
        (answer.status.as_u16(), problem["code"].as_str()),
        (status, Some(code))
    );
    assert_eq!(
        (&problem["instance"], &problem["traceId"]),
        (&instance.into(), &TRACE.into())
    );
    assert_eq!(problem["type"], format!("urn:xihan:problem:{code}"));
}

#[tokio::test]
async fn x1_a_request_that_cannot_be_read_is_a_problem() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    for (body, reason) in [
        ("{\"name\":", "EOF"),
        ("", "missing field"),
        ("[]", ""),
        ("{}", ""),
    ] {
        let answer = send(&app, json(body)).await;
        assert_problem(&answer, 400, "HTTP_VALIDATION_001", "/orders");
        let problem = answer.problem();
        assert!(
            problem["parameters"]["reason"]
                .as_str()
                .unwrap()
                .contains(reason),
            "{problem}"
        );
    }
    for content_type in [
        None,
        Some("text/plain"),
        Some("application/jsonx"),
        Some("+json"),
    ] {
        let answer = send(&app, request("/orders", content_type, ORDER)).await;
        assert_problem(&answer, 415, "HTTP_MEDIATYPE_001", "/orders");
    }
    for content_type in [
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/a+json",
    ] {
        assert_eq!(
            send(&app, request("/orders", Some(content_type), ORDER))
                .await
                .status,
            201
        );
    }
    assert_eq!(fixture.runs.count(), 3);
}

#[tokio::test]
async fn x1_a_request_that_is_too_large_is_a_problem_with_and_without_a_length() {
    let limit = ORDER.len() as u64;
    let fixture = Fixture::configured(|settings| settings.max_request_bytes = limit);
    let app = fixture.app(&create_order(&fixture.runs));
    assert_eq!(send(&app, json(ORDER)).await.status, 201);
    let too_large = r#"{"name":"Keyboard" }"#;
    let answer = send(&app, json(too_large)).await;
    assert_problem(&answer, 413, "HTTP_TOOLARGE_001", "/orders");
    let pieces = too_large
        .as_bytes()
        .chunks(5)
        .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()));
    let mut chunked = json("");
    *chunked.body_mut() = Body::from_stream(futures_util::stream::iter(pieces.collect::<Vec<_>>()));
    assert_problem(
        &send(&app, chunked).await,
        413,
        "HTTP_TOOLARGE_001",
        "/orders",
    );
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test]
async fn x1_a_body_that_breaks_off_is_a_problem() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    let pieces = [
        Ok(ORDER.as_bytes().to_vec()),
        Err(std::io::Error::other("reset")),
    ];
    let mut broken = json("");
    *broken.body_mut() = Body::from_stream(futures_util::stream::iter(pieces));
    assert_problem(
        &send(&app, broken).await,
        400,
        "HTTP_VALIDATION_001",
        "/orders",
    );
    assert_eq!(fixture.runs.count(), 0);
}

#[tokio::test]
async fn x1_unknown_paths_and_methods_are_problems_and_the_methods_are_named() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    let missing = send(&app, request("/nowhere/a%20b", None, "")).await;
    assert_problem(&missing, 404, "HTTP_NOTFOUND_001", "/nowhere/a%20b");
    let mut put = json(ORDER);
    *put.method_mut() = Method::PUT;
    let refused = send(&app, put).await;
    assert_problem(&refused, 405, "HTTP_METHOD_001", "/orders");
    assert_eq!(refused.header("allow"), Some("POST"));
}

#[tokio::test]
async fn x1_a_panic_and_an_unknown_error_are_problems_without_their_text() {
    for panics in [false, true] {
        let fixture = Fixture::new();
        let fail = operation("orders.create", &fixture.runs, move |_, _, _| async move {
            assert!(!panics, "the password is hunter2");
            Err(std::io::Error::other("the password is hunter2").into())
        });
        let answer = send(&fixture.app(&fail), post("a", &[TRACEPARENT])).await;
        assert_problem(&answer, 500, "CACHING_INTERNAL_001", "/orders");
        assert!(!String::from_utf8_lossy(&answer.body).contains("hunter2"));
        assert_eq!(
            (answer.replayed(), answer.header("retry-after")),
            (Some("false"), None)
        );
    }
}

#[tokio::test]
async fn x1_an_unavailable_store_is_a_problem_with_a_retry_hint() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    fixture.store.set_away(true);
    let away = send(&app, post("a", &[TRACEPARENT])).await;
    assert_problem(&away, 503, "CACHING_UNAVAILABLE_001", "/orders");
    assert_eq!(
        (away.header("retry-after"), away.replayed()),
        (Some("1"), None)
    );
    fixture.store.set_away(false);
    fixture.store.set_full(true);
    let full = send(&app, post("b", &[TRACEPARENT])).await;
    assert_problem(&full, 503, "CACHING_UNAVAILABLE_002", "/orders");
    assert_eq!(full.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn x1_a_call_in_progress_is_a_problem_with_a_retry_hint() {
    let fixture = Fixture::new();
    let gate = Gate::new();
    let app = fixture.app(&gated_order(&fixture.runs, &gate));
    let repeat = async {
        gate.reached().await;
        let repeat = send(&app, post("a", &[TRACEPARENT])).await;
        gate.open();
        repeat
    };
    let (_, repeat) = tokio::join!(send(&app, post("a", &[])), repeat);
    assert_problem(&repeat, 409, "CACHING_CONFLICT_002", "/orders");
    assert_eq!(
        (repeat.header("retry-after"), repeat.replayed()),
        (Some("1"), None)
    );
}

#[tokio::test]
async fn x1_refusals_of_a_stage_that_are_worth_a_retry_carry_the_hint() {
    for (refusal, status) in [
        (Failure::exhausted as fn() -> Failure, 429),
        (Failure::unavailable, 503),
        (
            || Failure::exhausted().with_retry_after(std::time::Duration::from_millis(2500)),
            429,
        ),
        (Failure::unauthenticated, 401),
        (Failure::forbidden, 403),
    ] {
        let refuses = Step(move |_: &InvocationContext| Then::Answer(Ok(refusal().into())));
        let fixture = Fixture::built(|builder| builder.middleware(Stage::Authorize, refuses));
        let app = fixture.app(&create_order(&fixture.runs));
        let answer = send(&app, post("a", &[])).await;
        answer.problem();
        assert_eq!(answer.status, status);
        let expected = refusal()
            .retry_after()
            .map(|delay| delay.as_secs_f64().ceil().to_string());
        assert_eq!(
            answer.header("retry-after"),
            expected.as_deref(),
            "{status}"
        );
    }
}

#[tokio::test]
async fn x1_without_a_usable_traceparent_every_call_has_a_trace_of_its_own() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    let zero = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
    let upper = "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01";
    let mut seen = Vec::new();
    for value in [
        &b"garbage"[..],
        zero.as_bytes(),
        upper.as_bytes(),
        b"\xff",
        b"",
    ] {
        let mut request = post_unkeyed(&[("traceparent", value)]);
        *request.uri_mut() = "/nowhere".parse().unwrap();
        let trace = send(&app, request).await.problem()["traceId"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            trace.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{trace}"
        );
        assert!(!seen.contains(&trace) && trace != TRACE, "{trace}");
        seen.push(trace);
    }
}

#[tokio::test]
async fn x2_problems_are_in_the_callers_language_and_codes_are_not() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    fixture.store.set_away(true);
    let english = send(&app, post("a", &[])).await;
    let chinese = send(&app, post("a", &[("accept-language", "zh-CN, en;q=0.5")])).await;
    let french = send(&app, post("a", &[("accept-language", "fr")])).await;
    assert_eq!(english.header("content-language"), Some("en"));
    assert_eq!(chinese.header("content-language"), Some("zh-CN"));
    assert_eq!(french.header("content-language"), Some("en"));
    let (english, chinese) = (english.problem(), chinese.problem());
    for name in ["title", "detail"] {
        assert_ne!(english[name], chinese[name]);
        assert!(
            chinese[name]
                .as_str()
                .unwrap()
                .chars()
                .any(|c| c >= '\u{4e00}'),
            "{chinese}"
        );
    }
    for name in ["type", "status", "code", "messageKey", "parameters"] {
        assert_eq!(english[name], chinese[name]);
    }
}

#[tokio::test]
async fn x2_refusals_before_the_pipeline_are_in_the_callers_language_too() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    for (method, path) in [
        ("POST", "/orders"),
        ("POST", "/nowhere"),
        ("GET", "/orders"),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("accept-language", "zh-CN")
            .body(Body::from("{"))
            .unwrap();
        let answer = send(&app, request).await;
        assert_eq!(
            answer.header("content-language"),
            Some("zh-CN"),
            "{method} {path}"
        );
        answer.problem();
    }
}
