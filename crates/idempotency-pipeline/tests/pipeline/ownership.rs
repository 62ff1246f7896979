//! P20: only the call that wrote a marker settles it, and nothing a handler does changes which.

use std::collections::HashMap;

use caching_abstractions::CacheKey;
use idempotency_pipeline::{EntryKind, InvocationContext, Principal, Stage, was_replayed};

use crate::support::{
    Create, Fixture, Gate, IN_PROGRESS, NOT_REPLAYABLE, Op, Order, Step, Then, gated_order, keyed,
    operation, refuse_order,
};

#[tokio::test(start_paused = true)]
async fn p20_a_refused_repeat_never_touches_the_owner() {
    let fixture = Fixture::new();
    let gate = Gate::new();
    let create = gated_order(&fixture.runs, &gate);
    let repeats = async {
        gate.reached().await;
        let (marker, left) = (fixture.stored("a"), fixture.left("a"));
        for _ in 0..10 {
            assert_eq!(fixture.refusal(&create, "a").await, IN_PROGRESS);
        }
        assert_eq!((fixture.stored("a"), fixture.left("a")), (marker, left));
        gate.open();
    };
    let (first, ()) = tokio::join!(fixture.call(&create, "a"), repeats);
    first.unwrap();
    let (record, left) = (fixture.stored("a"), fixture.left("a"));
    let other = refuse_order(&fixture.runs);
    assert_eq!(fixture.refusal(&other, "a").await, NOT_REPLAYABLE);
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!((fixture.stored("a"), fixture.left("a")), (record, left));
    assert_eq!(
        (
            fixture.store.count(Op::TryRemove),
            fixture.store.count(Op::TryReplace)
        ),
        (0, 1)
    );
}

#[tokio::test]
async fn p20_what_a_handler_does_to_its_context_changes_nothing_of_its_record() {
    let fixture = Fixture::new();
    let create = operation(
        "orders.create",
        &fixture.runs,
        |id, context, request| async move {
            // Nobody was authenticated, so these are the first to say who it is.
            context.set_principal(Principal::new("mallory").with_tenant("evil"));
            context.set_tenant("evil");
            let other = context
                .baggage()
                .clone()
                .with_idempotency_key(CacheKey::new("other")?);
            context.extensions().insert(other);
            context
                .extensions()
                .insert(HashMap::<String, String>::new());
            Ok(Order {
                id,
                name: request.name,
            })
        },
    );
    fixture.call(&create, "a").await.unwrap();
    assert_eq!(fixture.stored_keys().await, ["idem:-:-:a"]);
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
}

#[tokio::test]
async fn p20_a_stage_that_says_who_is_calling_too_late_changes_nothing_of_its_record() {
    let renames = Step(|context: &InvocationContext| {
        context.set_principal(Principal::new("late"));
        Then::Continue
    });
    let fixture = Fixture::built(|builder| builder.middleware(Stage::Idempotency, renames));
    let create = crate::support::create_order(&fixture.runs);
    fixture.call(&create, "a").await.unwrap();
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!(fixture.stored_keys().await, ["idem:-:-:a"]);
}

#[tokio::test]
async fn p20_a_principal_is_set_once() {
    let renames = Step(|context: &InvocationContext| {
        assert!(!context.set_principal(Principal::new("mallory")));
        assert!(!context.set_tenant("evil"));
        Then::Continue
    });
    let fixture = Fixture::built(|builder| {
        builder
            .authenticate(crate::support::ByMetadata)
            .middleware(Stage::Validate, renames)
    });
    let create = crate::support::create_order(&fixture.runs);
    let alice = crate::support::caller("alice", Some("acme"));
    let context = keyed(EntryKind::Typed, "a").metadata(alice);
    fixture
        .invoker
        .invoke_typed(&create, context, &Create::new("Keyboard"))
        .await
        .unwrap();
    assert_eq!(fixture.stored_keys().await, ["idem:acme:alice:a"]);
}

#[tokio::test]
async fn p20_a_nested_call_has_a_record_of_its_own() {
    let fixture = Fixture::new();
    let (invoker, inner) = (
        fixture.invoker.clone(),
        crate::support::create_order(&fixture.runs),
    );
    let outer = operation("orders.outer", &fixture.runs, move |id, _, request| {
        let (invoker, inner) = (invoker.clone(), inner.clone());
        async move {
            let context = keyed(EntryKind::Typed, "inner");
            let (order, _) = invoker.invoke_typed(&inner, context, &request).await?;
            Ok(Order {
                id,
                name: format!("{} ({})", order.name, order.id),
            })
        }
    });
    let (first, _) = fixture.call(&outer, "outer").await.unwrap();
    let (again, _) = fixture.call(&outer, "outer").await.unwrap();
    assert_eq!((first, fixture.runs.count()), (again, 2));
    assert_eq!(
        fixture.stored_keys().await,
        ["idem:-:-:inner", "idem:-:-:outer"]
    );
}
