//! Whose idempotency key it is.

use crate::support::{ALICE, BOB, CAROL, ROOT, Request, Service, order};

#[tokio::test]
async fn p4_one_key_of_four_callers_is_four_orders() {
    let service = Service::start().await;
    let mut ids = Vec::new();
    for caller in [ALICE, BOB, CAROL, ROOT] {
        let first = service.send(&order().by(caller).key("order-1")).await;
        assert_eq!(first.replayed(), Some(false), "{caller}");
        let again = service.send(&order().by(caller).key("order-1")).await;
        assert_eq!(
            (again.replayed(), &again.body),
            (Some(true), &first.body),
            "{caller}"
        );
        let id = first.placed();
        assert!(!ids.contains(&id), "{caller} got the order of another");
        ids.push(id);
    }
    // Alice and Bob share a tenant, and with it the orders.
    for (caller, count) in [(ALICE, 2), (BOB, 2), (CAROL, 1), (ROOT, 1)] {
        assert_eq!(service.orders(caller).await.len(), count, "{caller}");
    }
}

#[tokio::test]
async fn p4_a_key_that_looks_like_another_scope_stays_in_its_own() {
    let service = Service::start().await;
    // Without a tenant the record of root is `idem:-:root:<key>`, that of Alice
    // `idem:acme:alice:<key>`.
    let keys = [
        "k",
        ":k",
        "a:b",
        "alice:k",
        "acme:alice:k",
        "-:root:k",
        "..:alice:k",
        "%3Ak",
    ];
    for caller in [ALICE, BOB, CAROL, ROOT] {
        for key in keys {
            let answer = service.send(&order().by(caller).key(key)).await;
            assert_eq!(answer.replayed(), Some(false), "{caller}: {key}");
        }
    }
    assert_eq!(
        service.metrics().await.idempotency("executed"),
        4.0 * keys.len() as f64
    );
}

#[tokio::test]
async fn p11_a_key_of_an_order_is_no_key_of_a_report() {
    let service = Service::start().await;
    service.send(&order().key("order-1")).await.placed();
    let report = Request::post("/reports/daily").by(ALICE).key("order-1");
    let problem = service
        .send(&report)
        .await
        .problem(409, "CACHING_CONFLICT_003");
    assert_eq!(problem["messageKey"], "caching.idempotency.key_reused");
    assert_eq!(problem["parameters"]["operation"], "reports.daily");
    assert_eq!(problem["parameters"]["recorded"], "orders.create");
}
