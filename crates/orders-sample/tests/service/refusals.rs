//! Bad requests: each is answered with a problem that names the rule, and changes nothing.

use serde_json::json;

use crate::support::{ALICE, Request, Service, order};

/// 2 MiB, the default of `MaxRequestBytes`.
const LIMIT: usize = 2 * 1024 * 1024;

/// Sends each request, and checks its answer and that nothing was executed or stored.
async fn refused(status: u16, code: &str, cases: impl IntoIterator<Item = (Request, &str)>) {
    let service = Service::start().await;
    let before = service.metrics().await.stage_operations();
    for (request, reason) in cases {
        let answer = service.send(&request).await;
        let problem = answer.problem(status, code);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(reason), "{reason}: {detail}");
        assert_eq!(answer.replayed(), None, "{answer:?}");
    }
    assert_eq!(service.orders(ALICE).await.len(), 0);
    assert_eq!(
        service.metrics().await.stage_operations(),
        before,
        "the store was asked"
    );
}

fn body(json: &str) -> Request {
    order().json(json).key("order-1")
}

#[tokio::test]
async fn p12_a_body_that_does_not_decode() {
    let cases = [
        ("", "missing field `name`"),
        ("{}", "missing field `name`"),
        (r#"{"name":"Keyboard"}"#, "missing field `amount`"),
        (r#"{"amount":1}"#, "missing field `name`"),
        ("{", "EOF"),
        (r#"{"name":"Keyboard","amount":1"#, "EOF"),
        (r#"{"name":"Keyboard","amount":1}}"#, "trailing characters"),
        (r#"{"name":"Keyboard","amount":1,}"#, "trailing comma"),
        (
            r#"{"name":"Keyboard","amount":1,"amount":2}"#,
            "duplicate field `amount`",
        ),
        ("null", "invalid type: null"),
        ("7", "invalid type: integer"),
        ("[]", "invalid length 0"),
        ("\u{feff}{}", "expected value"),
        (
            r#"{"name":7,"amount":1}"#,
            "invalid type: integer `7`, expected a string",
        ),
        (r#"{"name":null,"amount":1}"#, "invalid type: null"),
        (
            r#"{"name":["Keyboard"],"amount":1}"#,
            "invalid type: sequence",
        ),
        (
            r#"{"name":"Keyboard","amount":"1"}"#,
            "invalid type: string \"1\"",
        ),
        (r#"{"name":"Keyboard","amount":null}"#, "invalid type: null"),
        (
            r#"{"name":"Keyboard","amount":true}"#,
            "invalid type: boolean",
        ),
        (
            r#"{"name":"Keyboard","amount":-1}"#,
            "invalid value: integer `-1`",
        ),
        (
            r#"{"name":"Keyboard","amount":1.5}"#,
            "invalid type: floating point `1.5`",
        ),
        (
            r#"{"name":"Keyboard","amount":1e400}"#,
            "number out of range",
        ),
        (
            r#"{"name":"Keyboard","amount":4294967296}"#,
            "invalid value: integer `4294967296`",
        ),
        (
            r#"{"name":"Keyboard","amount":99999999999999999999}"#,
            "floating point",
        ),
        (r#"{"name":"\ud800","amount":1}"#, "end of hex escape"),
        ("{\"name\":\"a\nb\",\"amount\":1}", "control character"),
    ];
    let cases = cases.map(|(json, reason)| (body(json), reason));
    refused(400, "HTTP_VALIDATION_001", cases).await;
}

#[tokio::test]
async fn p12_a_body_that_is_no_utf_8_or_too_deep() {
    let bytes = [b"{\"name\":\"", &[0xff][..], b"\",\"amount\":1}"].concat();
    let deep = format!(
        r#"{{"name":"Keyboard","amount":1,"other":{}}}"#,
        "[".repeat(200_000)
    );
    let cases = [
        (body("").body(bytes), "invalid unicode code point"),
        (body("").body(b"\xff\xfe{\0}\0"), "expected value"),
        (body(&deep), "expected value"),
    ];
    refused(400, "HTTP_VALIDATION_001", cases).await;
}

#[tokio::test]
async fn p12_an_order_that_breaks_the_services_rules() {
    let order =
        |name: &str, amount: u32| body(&json!({"name": name, "amount": amount}).to_string());
    let (name, amount) = ("1 to 100 characters", "1 to 1000");
    let cases = [
        (order("", 1), name),
        (order(&"k".repeat(101), 1), name),
        (order(&"订".repeat(101), 1), name),
        (order("Keyboard", 0), amount),
        (order("Keyboard", 1001), amount),
        (order("Keyboard", u32::MAX), amount),
    ];
    refused(400, "ORDERS_VALIDATION_001", cases).await;
}

#[tokio::test]
async fn x1_a_body_in_another_format() {
    let with = |kind: &str| {
        order()
            .key("order-1")
            .without("content-type")
            .header("content-type", kind)
    };
    let cases = [
        order().key("order-1").without("content-type"),
        with("text/plain"),
        with("application/x-www-form-urlencoded"),
        with("application/jsonp"),
        with("application/json5; a=application/json"),
        with("+json"),
        with(""),
        with("\u{e9}"),
    ];
    refused(
        415,
        "HTTP_MEDIATYPE_001",
        cases.map(|case| (case, "application/json")),
    )
    .await;
}

#[tokio::test]
async fn x1_json_by_other_names_is_json() {
    let service = Service::start().await;
    for kind in [
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/vnd.api+json",
    ] {
        let request = order().without("content-type").header("content-type", kind);
        service.send(&request).await.placed();
    }
}

#[tokio::test]
async fn p15_a_body_beyond_the_limit() {
    let padded = |length: usize| {
        let json = r#"{"name":"Keyboard","amount":1}"#;
        body(&format!("{json}{}", " ".repeat(length - json.len())))
    };
    refused(413, "HTTP_TOOLARGE_001", [(padded(LIMIT + 1), "2097152")]).await;

    let service = Service::start().await;
    let mut connection = service.connect().await;
    // The service answers and closes while the client may still be writing.
    let _ = connection
        .try_write(&padded(LIMIT + 1).to_chunks(64 * 1024))
        .await;
    connection
        .answer()
        .await
        .unwrap()
        .problem(413, "HTTP_TOOLARGE_001");
    assert_eq!(service.orders(ALICE).await.len(), 0);

    let mut connection = service.connect().await;
    connection.write(&padded(LIMIT).to_chunks(64 * 1024)).await;
    connection.answer().await.unwrap().placed();
    assert_eq!(
        service.send(&padded(LIMIT)).await.replayed(),
        Some(true),
        "exactly the limit"
    );
}

#[tokio::test]
async fn x1_wrong_credentials() {
    let with = |value: &str| {
        order()
            .key("order-1")
            .without("authorization")
            .header("authorization", value)
    };
    let report = Request::post("/reports/daily").key("order-1");
    let cases = [
        order().key("order-1").without("authorization"),
        with(""),
        with("ApiKey"),
        with("ApiKey "),
        with("ApiKey dev-alice-ke"),
        with("ApiKey dev-alice-key1"),
        with("ApiKey DEV-ALICE-KEY"),
        with("Bearer dev-alice-key"),
        with("dev-alice-key"),
        with("ApiKey  dev-alice-key"),
        with("\u{e9}"),
        report,
        Request::get("/orders"),
        Request::get("/orders/1"),
    ];
    refused(
        401,
        "HTTP_UNAUTHENTICATED_001",
        cases.map(|case| (case, "credentials")),
    )
    .await;
}

#[tokio::test]
async fn x1_a_path_that_nobody_serves() {
    let long = format!("/orders/{}/x", "a".repeat(8000));
    let paths = [
        "/",
        "/order",
        "/orders/",
        "//orders",
        "/orders/1/2",
        "/Orders",
        "/reports",
        "*",
        &long,
    ];
    let cases = paths.map(|path| (Request::get(path).by(ALICE), "path"));
    refused(404, "HTTP_NOTFOUND_001", cases).await;
}

#[tokio::test]
async fn x1_an_order_that_nobody_placed() {
    let long = format!("/orders/{}", "a".repeat(8000));
    let paths = [
        "/orders/1",
        "/orders/%20",
        "/orders/a%2Fb",
        "/orders/%E8%AE%A2",
        "/orders/1?id=2",
        &long,
    ];
    let cases = paths.map(|path| (Request::get(path).by(ALICE), "no order"));
    refused(404, "ORDERS_NOTFOUND_001", cases).await;
}

#[tokio::test]
async fn x1_a_method_that_the_path_does_not_have() {
    let mut cases = Vec::new();
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        for path in [
            "/orders",
            "/orders/1",
            "/reports/daily",
            "/healthz",
            "/readyz",
            "/metrics",
        ] {
            cases.push((
                Request::new(method, path).by(ALICE).key("order-1"),
                "method",
            ));
        }
    }
    for (method, path) in [
        ("GET", "/reports/daily"),
        ("POST", "/orders/1"),
        ("POST", "/metrics"),
    ] {
        cases.push((Request::new(method, path).by(ALICE), "method"));
    }
    refused(405, "HTTP_METHOD_001", cases).await;
}
