//! The idempotency key in the `baggage` header, case by case (H1).

use crate::support::{ALICE, Request, Service, order};

/// Header lines (JSON array), decoded key (JSON) or `absent` or `invalid`, why.
const CASES: &str = include_str!("../../../idempotency-pipeline/tests/data/baggage.tsv");

#[derive(Debug)]
struct Case {
    lines: Vec<String>,
    expected: String,
    why: String,
}

fn cases() -> Vec<Case> {
    let rows = CASES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let cases: Vec<_> = rows
        .map(|row| {
            let [lines, expected, why] = *row.split('\t').collect::<Vec<_>>() else {
                panic!("three columns: {row}")
            };
            let lines = serde_json::from_str(lines).unwrap();
            Case {
                lines,
                expected: expected.to_owned(),
                why: why.to_owned(),
            }
        })
        .collect();
    assert!(cases.len() > 30);
    cases
}

fn order_with(lines: &[String]) -> Request {
    lines
        .iter()
        .fold(order(), |order, line| order.header("baggage", line))
}

#[tokio::test]
async fn h1_every_case_of_the_baggage_table() {
    let service = Service::start().await;
    for case in cases() {
        let before = service.orders(ALICE).await.len();
        let operations = service.metrics().await.stage_operations();
        let answer = service.send(&order_with(&case.lines)).await;
        match case.expected.as_str() {
            "invalid" => {
                let problem = answer.problem(400, "CACHING_VALIDATION_001");
                assert_eq!(problem["messageKey"], "caching.key.invalid", "{case:?}");
                assert_eq!(service.orders(ALICE).await.len(), before, "{case:?}");
            }
            "absent" => {
                answer.placed();
                assert_eq!(answer.replayed(), None, "{case:?}");
                assert_eq!(service.orders(ALICE).await.len(), before + 1, "{case:?}");
            }
            key => {
                let key: String = serde_json::from_str(key).unwrap();
                let id = answer.placed();
                // Its plain form is the same key.
                let again = service.send(&order().key(&key)).await;
                assert_eq!(
                    (again.replayed(), again.placed()),
                    (Some(true), id),
                    "{case:?}"
                );
                continue;
            }
        }
        let after = service.metrics().await.stage_operations();
        assert_eq!(after, operations, "the store was asked: {}", case.why);
    }
}

#[tokio::test]
async fn h1_header_bytes_need_not_be_utf_8() {
    let service = Service::start().await;
    let member = "xihan.idempotency-key=order-1".as_bytes();
    for foreign in [&b"name=\xff\xfe,"[..], b"\xe9t\xe9=1,", b"\x80,"] {
        let line = [foreign, member].concat();
        service
            .send(&order().header("baggage", line))
            .await
            .placed();
    }
    assert_eq!(service.orders(ALICE).await.len(), 1);
    for own in [
        &b"xihan.idempotency-key=\xff"[..],
        b"xihan.idempotency-key=a\xc3\xa9",
    ] {
        let answer = service.send(&order().header("baggage", own)).await;
        answer.problem(400, "CACHING_VALIDATION_001");
    }
}

#[tokio::test]
async fn h1_more_than_16_kib_of_baggage_is_refused_unread() {
    let service = Service::start().await;
    let member = "xihan.idempotency-key=order-1";
    let line = |length: usize| format!("{member},a={}", "x".repeat(length - member.len() - 3));
    let halves = |length: usize| {
        order()
            .header("baggage", line(length / 2))
            .header("baggage", "x".repeat(length / 2))
    };
    service
        .send(&order().header("baggage", line(16 * 1024)))
        .await
        .placed();
    for request in [
        order().header("baggage", line(17 * 1024)),
        halves(18 * 1024),
    ] {
        let problem = service
            .send(&request)
            .await
            .problem(400, "CACHING_VALIDATION_001");
        assert!(
            problem["detail"].as_str().unwrap().contains("16"),
            "{problem}"
        );
    }
    assert_eq!(service.orders(ALICE).await.len(), 1);
}

#[tokio::test]
async fn p4_a_key_is_as_long_as_its_record_allows() {
    let service = Service::start().await;
    let room = 512 - "idem:acme:alice:".len();
    // Characters count, not bytes.
    for character in ["k", "订", "\u{1F600}"] {
        let key = character.repeat(room);
        service.send(&order().key(&key)).await.placed();
        assert_eq!(
            service.send(&order().key(&key)).await.replayed(),
            Some(true)
        );
        for length in [room + 1, 512] {
            let answer = service.send(&order().key(&character.repeat(length))).await;
            answer.problem(400, "CACHING_VALIDATION_001");
        }
    }
    assert_eq!(service.orders(ALICE).await.len(), 3);
}
