//! P4: whose key it is.

use idempotency_pipeline::EntryKind;

use crate::support::{
    ByMetadata, Counts, Create, Fixture, INVALID, caller, code, create_order, keyed,
};

#[tokio::test]
async fn p4_the_same_key_of_another_tenant_or_principal_is_another_call() {
    let fixture = Fixture::built(|builder| builder.authenticate(ByMetadata));
    let create = create_order(&fixture.runs);
    let callers = [
        caller("alice", Some("acme")),
        caller("bob", Some("acme")),
        caller("alice", Some("globex")),
        caller("alice", None),
        caller("-", Some("-")),
        caller("b:c", Some("a")),
        caller("c", Some("a:b")),
        Default::default(),
    ];
    for _round in 0..2 {
        for (number, caller) in callers.iter().enumerate() {
            let context = keyed(EntryKind::Typed, "k").metadata(caller.clone());
            let request = Create::new("Keyboard");
            let (order, _) = fixture
                .invoker
                .invoke_typed(&create, context, &request)
                .await
                .unwrap();
            assert_eq!(order.id, number + 1, "{caller:?}");
        }
    }
    let mut keys = [
        "idem:acme:alice:k",
        "idem:acme:bob:k",
        "idem:globex:alice:k",
        "idem:-:alice:k",
        "idem:%2D:%2D:k",
        "idem:a:b%3Ac:k",
        "idem:a%3Ab:c:k",
        "idem:-:-:k",
    ];
    keys.sort_unstable();
    assert_eq!(fixture.stored_keys().await, keys);
}

#[tokio::test]
async fn p4_a_key_that_is_too_long_in_its_scope_is_refused_before_anything_happens() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    let longest = "k".repeat(512 - "idem:-:-:".len());
    fixture.call(&create, &longest).await.unwrap();
    let error = fixture
        .call(&create, &format!("{longest}k"))
        .await
        .unwrap_err();
    assert_eq!(code(&error), INVALID);
    assert_eq!((fixture.runs.count(), fixture.store.round_trips()), (1, 2));
    assert_eq!(counts.of("invalid"), 1);
}
