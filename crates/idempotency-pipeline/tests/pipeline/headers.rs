//! H1: where the key is in a request.

use axum::body::Body;
use axum::http::Request;
use idempotency_pipeline::Operation;

use crate::support::http::{ORDER, post, post_unkeyed, send};
use crate::support::{Create, Fixture, Order, create_order, operation};

/// An operation whose answer names the key and the other members of the baggage.
fn tell(fixture: &Fixture) -> Operation<Create, Order> {
    operation("baggage.tell", &fixture.runs, |id, context, _| async move {
        let key = context.baggage().idempotency_key().map(str::to_owned);
        let others: Vec<_> = context.baggage().members().map(str::to_owned).collect();
        Ok(Order {
            id,
            name: serde_json::to_string(&(key, others))?,
        })
    })
}

/// What the operation told: key and other members, or the code of the refusal.
async fn told(lines: &[&[u8]]) -> Result<(Option<String>, Vec<String>), String> {
    let fixture = Fixture::new();
    let headers: Vec<_> = lines.iter().map(|line| ("baggage", *line)).collect();
    let answer = send(&fixture.app(&tell(&fixture)), post_unkeyed(&headers)).await;
    if answer.status != 200 {
        assert_eq!((answer.status.as_u16(), fixture.runs.count()), (400, 0));
        assert_eq!(fixture.store.round_trips(), 0);
        return Err(answer.code());
    }
    let order: Order = serde_json::from_slice(&answer.body).unwrap();
    Ok(serde_json::from_str(&order.name).unwrap())
}

#[tokio::test]
async fn h1_cases_over_http() {
    let mut rows = 0;
    for row in include_str!("../data/baggage.tsv")
        .lines()
        .filter(|row| !row.starts_with('#'))
    {
        let columns: Vec<&str> = row.split('\t').collect();
        let lines: Vec<String> = serde_json::from_str(columns[0]).unwrap();
        let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        let told = told(&lines).await;
        match columns[1] {
            "invalid" => assert_eq!(told, Err("CACHING_VALIDATION_001".to_owned()), "{row}"),
            "absent" => assert_eq!(told.unwrap().0, None, "{row}"),
            key => {
                let key: String = serde_json::from_str(key).unwrap();
                assert_eq!(told.unwrap().0, Some(key), "{row}");
            }
        }
        rows += 1;
    }
    assert_eq!(rows, 34);
}

#[tokio::test]
async fn h1_header_bytes_need_not_be_utf_8() {
    let (key, others) = told(&[b"x=\xff\xfe, user=7", b"xihan.idempotency-key=a"])
        .await
        .unwrap();
    assert_eq!(
        (key.as_deref(), others),
        (Some("a"), vec!["user=7".to_owned()])
    );
    let refused = told(&[b"xihan.idempotency-key=\xe8\xae\xa2"]).await;
    assert_eq!(refused, Err("CACHING_VALIDATION_001".to_owned()));
}

#[tokio::test]
async fn h1_more_than_16_kib_of_baggage_in_all_is_refused() {
    let line = format!("x={}", "v".repeat(8 * 1024 - 2));
    let (line, one_more) = (line.as_bytes(), &b"y"[..]);
    assert!(told(&[line, line]).await.is_ok());
    let refused = told(&[line, line, one_more]).await;
    assert_eq!(refused, Err("CACHING_VALIDATION_001".to_owned()));
}

#[tokio::test]
async fn h1_the_idempotency_key_header_counts_only_where_it_is_accepted() {
    for (accepted, runs) in [(false, 2), (true, 1)] {
        let fixture = Fixture::configured(|settings| {
            settings.accept_idempotency_key_header = accepted;
        });
        let app = fixture.app(&create_order(&fixture.runs));
        for value in [&br#""order-1""#[..], b"order-1"] {
            let answer = send(&app, post_unkeyed(&[("idempotency-key", value)])).await;
            assert_eq!(
                (answer.status.as_u16(), answer.replayed().is_some()),
                (201, accepted)
            );
        }
        assert_eq!(fixture.runs.count(), runs);
    }
}

#[tokio::test]
async fn h1_both_headers_have_to_name_one_key() {
    let fixture = Fixture::configured(|settings| settings.accept_idempotency_key_header = true);
    let app = fixture.app(&create_order(&fixture.runs));
    assert_eq!(
        send(&app, post("a", &[("idempotency-key", "\"a\"")]))
            .await
            .status,
        201
    );
    for headers in [
        &[("idempotency-key", "b")][..],
        &[("idempotency-key", "")],
        &[("idempotency-key", "a"), ("idempotency-key", "a")],
        &[("idempotency-key", "\"a")],
    ] {
        let refused = send(&app, post("a", headers)).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code().as_str()),
            (400, "CACHING_VALIDATION_001")
        );
    }
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test]
async fn h1_an_unusable_idempotency_key_header_that_is_not_accepted_is_not_read() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    let answer = send(&app, post_unkeyed(&[("idempotency-key", b"\xff")])).await;
    assert_eq!(answer.status, 201);
}

#[tokio::test]
async fn p13_baggage_handed_on_has_no_key() {
    let fixture = Fixture::new();
    let create = operation(
        "orders.create",
        &fixture.runs,
        |id, context, _| async move {
            let downstream = context.baggage().without_idempotency_key();
            let name = downstream
                .to_header_value()
                .map(|value| value.into_owned())
                .unwrap_or_default();
            Ok(Order { id, name })
        },
    );
    let request = Request::post("/orders")
        .header("content-type", "application/json")
        .header("baggage", "user=7,xihan.idempotency-key=a,plan=gold;x=1")
        .body(Body::from(ORDER))
        .unwrap();
    let answer = send(&fixture.app(&create), request).await;
    let order: Order = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(order.name, "user=7,plan=gold;x=1");
}
