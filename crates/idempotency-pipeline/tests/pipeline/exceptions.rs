//! P6: an exception leaves nothing behind, and a retry runs.

use caching_abstractions::{milliseconds, seconds};
use idempotency_pipeline::{
    Failure, InvocationContext, InvocationError, Operation, Stage, was_replayed,
};
use serde::{Serialize, Serializer};

use crate::support::{
    Counts, Create, Fault, Fixture, INTERNAL, Op, Order, Runs, Step, Then, code, operation,
};

/// How a run ends.
type End = fn() -> Result<Order, InvocationError>;

/// An operation whose first run ends as `first` says and whose others succeed.
fn fails_first(runs: &Runs, first: End) -> Operation<Create, Order> {
    operation("orders.create", runs, move |id, _, request| async move {
        match id {
            1 => first(),
            _ => Ok(Order {
                id,
                name: request.name,
            }),
        }
    })
}

/// The first call is an internal error, its marker is gone, and the second one is recorded.
async fn assert_a_retry_runs(fixture: &Fixture, create: &Operation<Create, Order>, what: &str) {
    let error = fixture.call(create, "a").await.unwrap_err();
    assert_eq!(code(&error), INTERNAL, "{what}");
    assert!(
        !error.to_string().contains("panicked on purpose"),
        "{what}: {error}"
    );
    assert_eq!(fixture.stored("a"), None, "{what}");
    let (order, context) = fixture.call(create, "a").await.unwrap();
    assert!(!was_replayed(&context), "{what}");
    let (again, context) = fixture.call(create, "a").await.unwrap();
    assert!(was_replayed(&context), "{what}");
    assert_eq!(order, again, "{what}");
}

#[tokio::test]
async fn p6_after_an_error_or_a_panic_of_the_handler_a_retry_runs() {
    let ends: [(&str, End); 2] = [
        ("error", || {
            Err(std::io::Error::other("the disk is gone").into())
        }),
        ("panic", || panic!("panicked on purpose")),
    ];
    for (what, first) in ends {
        let fixture = Fixture::new();
        let create = fails_first(&fixture.runs, first);
        assert_a_retry_runs(&fixture, &create, what).await;
        assert_eq!(fixture.runs.count(), 2);
        assert_eq!(fixture.store.count(Op::TryRemove), 1);
    }
}

#[tokio::test]
async fn p6_a_panic_before_the_handler_returns_its_future_is_an_exception() {
    let fixture = Fixture::new();
    let create = operation("orders.create", &fixture.runs, |id, _, request: Create| {
        assert!(id > 1, "panicked on purpose");
        async move {
            Ok(Order {
                id,
                name: request.name,
            })
        }
    });
    assert_a_retry_runs(&fixture, &create, "handler closure").await;
}

#[tokio::test]
async fn p6_after_a_panic_of_middleware_behind_the_stage_a_retry_runs() {
    for stage in [Stage::Idempotency, Stage::Transaction] {
        for end in [|| Then::PanicNow, || Then::PanicAfterwards] {
            let calls = Runs::default();
            let count = calls.clone();
            let panics_first = Step(move |_: &InvocationContext| match count.begin() {
                1 => end(),
                _ => Then::Continue,
            });
            let fixture = Fixture::built(|builder| builder.middleware(stage, panics_first));
            let create = crate::support::create_order(&fixture.runs);
            assert_a_retry_runs(&fixture, &create, &format!("{stage:?}")).await;
            assert_eq!(calls.count(), 2, "the replay does not reach it");
        }
    }
}

#[tokio::test]
async fn p6_after_a_panic_while_the_location_is_made_a_retry_runs() {
    let fixture = Fixture::new();
    let create = crate::support::create_order(&fixture.runs).created(|order| {
        assert!(order.id > 1, "panicked on purpose");
        format!("/orders/{}", order.id)
    });
    assert_a_retry_runs(&fixture, &create, "created").await;
}

/// A response that cannot be encoded, either way.
enum Unencodable {
    Error,
    Panic,
}

impl Serialize for Unencodable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Error => Err(serde::ser::Error::custom("no such thing in JSON")),
            Self::Panic => panic!("panicked on purpose"),
        }
    }
}

#[tokio::test]
async fn p6_a_response_that_cannot_be_encoded_is_an_exception() {
    for make in [|| Unencodable::Error, || Unencodable::Panic] {
        let fixture = Fixture::new();
        let create =
            Operation::new("orders.create").handler(move |_, _: Create| async move { Ok(make()) });
        let context = crate::support::keyed(idempotency_pipeline::EntryKind::Raw, "a");
        let request = bytes::Bytes::from(r#"{"name":"Keyboard"}"#);
        let error = fixture
            .invoker
            .invoke(&create, context, request)
            .await
            .unwrap_err();
        assert_eq!(code(&error), INTERNAL);
        assert_eq!(fixture.stored("a"), None);
    }
}

#[tokio::test]
async fn p6_a_panic_of_a_stage_before_the_marker_is_an_internal_error_and_nothing_is_stored() {
    for stage in [
        Stage::Authenticate,
        Stage::Tenant,
        Stage::Authorize,
        Stage::Validate,
    ] {
        let panics = Step(|_: &InvocationContext| Then::PanicNow);
        let fixture = Fixture::built(|builder| builder.middleware(stage, panics));
        let create = crate::support::create_order(&fixture.runs);
        assert_eq!(fixture.refusal(&create, "a").await, INTERNAL, "{stage:?}");
        assert_eq!((fixture.runs.count(), fixture.store.round_trips()), (0, 0));
    }
    let fixture = Fixture::new();
    let create =
        crate::support::create_order(&fixture.runs).validate(|_| panic!("panicked on purpose"));
    assert_eq!(fixture.refusal(&create, "a").await, INTERNAL);
    assert_eq!((fixture.runs.count(), fixture.store.round_trips()), (0, 0));
}

#[tokio::test]
async fn p6_a_panic_of_a_call_without_a_key_is_an_internal_error_too() {
    let fixture = Fixture::new();
    let create = fails_first(&fixture.runs, || panic!("panicked on purpose"));
    let context = idempotency_pipeline::EntryKind::Typed.context();
    let request = Create::new("Keyboard");
    let error = fixture
        .invoker
        .invoke_typed(&create, context, &request)
        .await
        .unwrap_err();
    assert_eq!(code(&error), INTERNAL);
}

#[tokio::test(start_paused = true)]
async fn p6_a_marker_is_removed_once_the_store_is_back() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let fixture = Fixture::new();
    let create = fails_first(&fixture.runs, || panic!("panicked on purpose"));
    fixture.store.next(Op::TryRemove, Fault::Lost);
    fixture.store.next(Op::TryRemove, Fault::NotSent);
    fixture.store.next(Op::TryRemove, Fault::Lost);
    assert_eq!(
        fixture.refusal(&create, "a").await,
        INTERNAL,
        "not the store's error"
    );
    assert!(fixture.stored("a").is_some());
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(fixture.stored("a"), None);
    assert_eq!(fixture.store.count(Op::TryRemove), 4);
    fixture.call(&create, "a").await.unwrap();
    assert_eq!((counts.of("exception"), counts.of("executed")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn p6_removal_is_given_up_when_the_marker_has_run_out() {
    let fixture = Fixture::new();
    let store = std::sync::Arc::clone(&fixture.store);
    let create = operation("orders.create", &fixture.runs, move |_, _, _| {
        store.set_away(true);
        async { Err(std::io::Error::other("the disk is gone").into()) }
    });
    fixture.refusal(&create, "a").await;
    assert_eq!(
        fixture.pipeline.running(),
        0,
        "a shutdown does not wait for it"
    );
    tokio::time::sleep(seconds(50)).await;
    let attempts = fixture.store.count(Op::TryRemove);
    assert!(attempts > 5, "{attempts}");
    tokio::time::sleep(seconds(10) + milliseconds(1)).await;
    let attempts = fixture.store.count(Op::TryRemove);
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(fixture.store.count(Op::TryRemove), attempts);
    assert_eq!(fixture.stored("a"), None);
}

#[tokio::test]
async fn p6_a_failure_that_passes_is_answered_and_not_recorded() {
    for code in [
        "ORDERS_EXHAUSTED_001",
        "ORDERS_UNAVAILABLE_001",
        "ORDERS_INTERNAL_001",
    ] {
        let fixture = Fixture::new();
        let create = operation(
            "orders.create",
            &fixture.runs,
            move |id, _, request| async move {
                let Create { name } = request;
                match id {
                    1 => Err(Failure::new(code).into()),
                    _ => Ok(Order { id, name }),
                }
            },
        );
        assert_eq!(fixture.refusal(&create, "a").await, code);
        assert_eq!(fixture.stored("a"), None);
        fixture.call(&create, "a").await.unwrap();
        assert_eq!(fixture.runs.count(), 2);
    }
}
