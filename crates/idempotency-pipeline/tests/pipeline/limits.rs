//! P17 responses too large to keep, P19 required keys and queries.

use idempotency_pipeline::{EntryKind, IdempotencyRecord, was_replayed};

use crate::support::{
    Create, Fixture, INVALID, NOT_REPLAYABLE, code, create_order, keyed, message_key,
};

#[tokio::test]
async fn p17_a_response_over_the_limit_passes_and_is_recorded_without_itself() {
    let response = r#"{"id":1,"name":"Keyboard"}"#.len() as u64;
    for (limit, kept) in [(response, true), (response - 1, false)] {
        let fixture = Fixture::configured(|settings| settings.max_recorded_response_bytes = limit);
        let create = create_order(&fixture.runs);
        let (order, _) = fixture.call(&create, "a").await.unwrap();
        assert_eq!(order.name, "Keyboard");
        let IdempotencyRecord::Completed(call) =
            IdempotencyRecord::decode(&fixture.stored("a").unwrap())
        else {
            panic!("not completed");
        };
        assert_eq!(call.operation.as_deref(), Some("orders.create"));
        assert_eq!(call.result.is_some(), kept);
        if !kept {
            let error = fixture.call(&create, "a").await.unwrap_err();
            assert_eq!(code(&error), NOT_REPLAYABLE);
            assert_eq!(
                message_key(&error),
                "caching.idempotency.response_unavailable"
            );
        }
        assert_eq!(fixture.runs.count(), 1);
    }
}

#[tokio::test]
async fn p17_whose_key_it_was_is_known_even_without_the_response() {
    let fixture = Fixture::configured(|settings| settings.max_recorded_response_bytes = 1);
    fixture
        .call(&create_order(&fixture.runs), "a")
        .await
        .unwrap();
    let other = crate::support::refuse_order(&fixture.runs);
    let error = fixture.call(&other, "a").await.unwrap_err();
    assert_eq!(message_key(&error), "caching.idempotency.key_reused");
}

#[tokio::test]
async fn p19_an_operation_can_require_a_key() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs).require_key();
    let context = EntryKind::Typed.context();
    let request = Create::new("Keyboard");
    let error = fixture
        .invoker
        .invoke_typed(&create, context, &request)
        .await
        .unwrap_err();
    assert_eq!(code(&error), INVALID);
    assert_eq!(message_key(&error), "caching.idempotency.key_required");
    assert_eq!((fixture.runs.count(), fixture.store.round_trips()), (0, 0));
    fixture.call(&create, "a").await.unwrap();
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test]
async fn p19_a_query_is_let_through_with_and_without_a_key() {
    let fixture = Fixture::new();
    let list = create_order(&fixture.runs).query();
    for run in 1..=2 {
        let request = Create::new("Keyboard");
        let context = keyed(EntryKind::Typed, "a");
        let (order, context) = fixture
            .invoker
            .invoke_typed(&list, context, &request)
            .await
            .unwrap();
        assert_eq!(order.id, run);
        assert!(!was_replayed(&context));
    }
    assert_eq!(fixture.store.round_trips(), 0);
}
