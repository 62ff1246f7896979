//! P7 repeats of a call in progress, P8 replays, P10 fingerprints, P11 what cannot be replayed.

use bytes::Bytes;
use idempotency_pipeline::{
    EntryKind, InvocationContext, InvocationError, Operation, Stage, was_replayed,
};

use crate::support::{
    Counts, Create, Fixture, Gate, IN_PROGRESS, Ledger, Log, NOT_REPLAYABLE, Op, Order, Traced,
    code, create_order, gated_order, keyed, message_key, operation, refuse_order,
};

/// Calls a closure with the key `key`.
async fn call_plainly(fixture: &Fixture, key: &str) -> Result<InvocationContext, InvocationError> {
    let runs = fixture.runs.clone();
    let work = move |_: InvocationContext| async move {
        runs.begin();
        Ok(())
    };
    fixture
        .pipeline
        .invoke(keyed(EntryKind::Plain, key), work)
        .await
}

#[tokio::test(start_paused = true)]
async fn p7_a_repeat_meanwhile_is_in_progress_whatever_its_operation() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let fixture = Fixture::new();
    let gate = Gate::new();
    let create = gated_order(&fixture.runs, &gate);
    let repeats = async {
        gate.reached().await;
        let marker = fixture.stored("a");
        let before = fixture.store.round_trips();
        let same = fixture.call(&create, "a").await.unwrap_err();
        let other = fixture
            .call(&refuse_order(&fixture.runs), "a")
            .await
            .unwrap_err();
        let plain = call_plainly(&fixture, "a").await.unwrap_err();
        for error in [same, other, plain] {
            assert_eq!(code(&error), IN_PROGRESS);
            assert_eq!(message_key(&error), "caching.idempotency.in_progress");
            let InvocationError::Exception(exception) = error else {
                panic!("{error:?}")
            };
            assert!(exception.error().retry_after().is_some());
        }
        assert_eq!(fixture.store.round_trips(), before + 3, "one each");
        assert_eq!(fixture.stored("a"), marker);
        gate.open();
    };
    let (first, ()) = tokio::join!(fixture.call(&create, "a"), repeats);
    first.unwrap();
    assert_eq!((fixture.runs.count(), counts.of("in_progress")), (1, 3));
}

#[tokio::test]
async fn p8_a_replay_takes_one_round_trip_and_nothing_behind_the_stage_runs() {
    let log = Log::default();
    let fixture = Fixture::built(|builder| {
        builder
            .middleware(Stage::Validate, Traced("validate", log.clone()))
            .middleware(Stage::Idempotency, Traced("idempotency", log.clone()))
            .middleware(Stage::Transaction, Traced("transaction", log.clone()))
            .transaction(Ledger::new("ledger", &log))
    });
    let create = create_order(&fixture.runs);
    let (first, context) = fixture.call(&create, "a").await.unwrap();
    assert!(!was_replayed(&context));
    log.take();
    let before = fixture.store.round_trips();
    let (again, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!(first, again);
    assert_eq!(log.take(), [">validate", "<validate"]);
    assert_eq!(fixture.store.round_trips(), before + 1);
    assert_eq!(
        (fixture.runs.count(), fixture.store.count(Op::GetOrAdd)),
        (1, 2)
    );
}

#[tokio::test]
async fn p8_a_plain_call_is_executed_once_and_its_outcome_replayed() {
    let fixture = Fixture::new();
    assert!(!was_replayed(&call_plainly(&fixture, "a").await.unwrap()));
    assert!(was_replayed(&call_plainly(&fixture, "a").await.unwrap()));
    assert_eq!(fixture.runs.count(), 1);
    let fails = |_: InvocationContext| async { Err(crate::support::out_of_stock().into()) };
    for _ in 0..2 {
        let context = keyed(EntryKind::Plain, "b");
        let error = fixture.pipeline.invoke(context, fails).await.unwrap_err();
        assert_eq!(code(&error), "ORDERS_CONFLICT_001");
    }
}

/// Calls with the key `a` and this request.
async fn call_with(fixture: &Fixture, request: &'static str) -> Result<Bytes, InvocationError> {
    let create = create_order(&fixture.runs);
    let context = keyed(EntryKind::Raw, "a");
    fixture
        .invoker
        .invoke(&create, context, request.into())
        .await
        .map(|(response, _)| response)
}

#[tokio::test]
async fn p10_a_replay_does_not_compare_requests() {
    let fixture = Fixture::new();
    let first = call_with(&fixture, r#"{"name":"Keyboard"}"#).await.unwrap();
    assert_eq!(
        call_with(&fixture, r#"{"name":"Mouse"}"#).await.unwrap(),
        first
    );
}

#[tokio::test]
async fn p10_with_fingerprints_another_request_is_a_mismatch() {
    let fixture = Fixture::configured(|settings| settings.fingerprint = true);
    let first = call_with(&fixture, r#"{"name":"Keyboard"}"#).await.unwrap();
    let same = " {\"name\" : \"K\\u0065yboard\"} ";
    assert_eq!(call_with(&fixture, same).await.unwrap(), first);
    let error = call_with(&fixture, r#"{"name":"Mouse"}"#)
        .await
        .unwrap_err();
    assert_eq!(code(&error), NOT_REPLAYABLE);
    assert_eq!(message_key(&error), "caching.idempotency.request_mismatch");
    assert_eq!(fixture.runs.count(), 1);
}

/// The refusal of a repeat that cannot be replayed, after checking that nothing ran or changed.
async fn refused(
    fixture: &Fixture,
    operation: &Operation<Create, Order>,
    key: &str,
) -> InvocationError {
    let (runs, stored) = (fixture.runs.count(), fixture.stored(key));
    let error = fixture.call(operation, key).await.unwrap_err();
    assert_eq!(code(&error), NOT_REPLAYABLE, "{error:?}");
    assert_eq!((fixture.runs.count(), fixture.stored(key)), (runs, stored));
    error
}

fn parameter(error: &InvocationError, name: &str) -> Option<String> {
    let InvocationError::Exception(exception) = error else {
        panic!("{error:?}")
    };
    exception.error().parameter(name).map(str::to_owned)
}

#[tokio::test]
async fn p11_a_key_used_by_another_operation_is_key_reused() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let fixture = Fixture::new();
    fixture
        .call(&create_order(&fixture.runs), "a")
        .await
        .unwrap();
    let error = refused(&fixture, &refuse_order(&fixture.runs), "a").await;
    assert_eq!(message_key(&error), "caching.idempotency.key_reused");
    assert_eq!(
        parameter(&error, "operation").as_deref(),
        Some("orders.refuse")
    );
    assert_eq!(
        parameter(&error, "recorded").as_deref(),
        Some("orders.create")
    );
    // The other way round, the recorded outcome being a failure.
    fixture
        .call(&refuse_order(&fixture.runs), "b")
        .await
        .unwrap_err();
    let error = refused(&fixture, &create_order(&fixture.runs), "b").await;
    assert_eq!(
        parameter(&error, "recorded").as_deref(),
        Some("orders.refuse")
    );
    assert_eq!(counts.of("conflict"), 2);
}

#[tokio::test]
async fn p11_plain_calls_and_operations_do_not_replay_each_other() {
    let fixture = Fixture::new();
    call_plainly(&fixture, "plain").await.unwrap();
    let error = refused(&fixture, &create_order(&fixture.runs), "plain").await;
    assert_eq!(message_key(&error), "caching.idempotency.key_reused");
    assert_eq!(parameter(&error, "recorded").as_deref(), Some("-"));
    fixture
        .call(&create_order(&fixture.runs), "operation")
        .await
        .unwrap();
    let error = call_plainly(&fixture, "operation").await.unwrap_err();
    assert_eq!(code(&error), NOT_REPLAYABLE);
    assert_eq!(parameter(&error, "operation").as_deref(), Some("-"));
    assert_eq!(
        parameter(&error, "recorded").as_deref(),
        Some("orders.create")
    );
}

#[tokio::test]
async fn p11_a_response_of_another_type_is_unavailable() {
    let fixture = Fixture::new();
    let text = Operation::new("orders.create")
        .handler(|_, request: Create| async move { Ok(request.name) });
    let context = keyed(EntryKind::Typed, "a");
    fixture
        .invoker
        .invoke_typed(&text, context, &Create::new("Keyboard"))
        .await
        .unwrap();
    let error = refused(&fixture, &create_order(&fixture.runs), "a").await;
    assert_eq!(
        message_key(&error),
        "caching.idempotency.response_unavailable"
    );
}

#[tokio::test]
async fn p11_a_response_that_does_not_decode_at_all_is_a_defect_and_no_conflict() {
    let fixture = Fixture::new();
    let lossy = Operation::new("orders.lossy").handler(|_, _: Create| async { Ok(f64::NAN) });
    for context in [EntryKind::Typed.context(), keyed(EntryKind::Typed, "a")] {
        let request = Create::new("Keyboard");
        let error = fixture
            .invoker
            .invoke_typed(&lossy, context, &request)
            .await
            .unwrap_err();
        assert_eq!(code(&error), crate::support::INTERNAL);
    }
}

#[tokio::test]
async fn p11_what_no_version_here_wrote_is_unavailable_and_never_a_crash() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    fixture.call(&create, "a").await.unwrap();
    let record = fixture.stored("a").unwrap();
    let changed = |position: usize, value: u8| {
        let mut bytes = record.to_vec();
        bytes[position] = value;
        Bytes::from(bytes)
    };
    let strangers = [
        ("a newer version", changed(2, 2)),
        ("the newest version", changed(2, 255)),
        ("an unknown state", changed(3, b'Z')),
        ("a half", record.slice(..record.len() / 2)),
        ("a header", record.slice(..4)),
        ("nothing", Bytes::new()),
        ("text", Bytes::from("done")),
        ("noise", Bytes::from(vec![0xFF; 300])),
        ("a number", Bytes::from("12")),
    ];
    for (what, bytes) in strangers {
        fixture.put("b", bytes);
        let error = refused(&fixture, &create, "b").await;
        assert_eq!(
            message_key(&error),
            "caching.idempotency.response_unavailable",
            "{what}"
        );
        let InvocationError::Exception(exception) = error else {
            panic!("{what}")
        };
        assert_eq!(
            exception.error().retry_after(),
            None,
            "{what}: a retry cannot help"
        );
    }
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test]
async fn p11_a_success_of_an_operation_without_a_response_is_unavailable() {
    // A plain call's record, made to look like the operation's: no response, same operation.
    let fixture = Fixture::configured(|settings| settings.max_recorded_response_bytes = 1);
    let create = operation(
        "orders.create",
        &fixture.runs,
        |id, _, request| async move {
            Ok(Order {
                id,
                name: request.name,
            })
        },
    );
    fixture.call(&create, "a").await.unwrap();
    let error = refused(&fixture, &create, "a").await;
    assert_eq!(
        message_key(&error),
        "caching.idempotency.response_unavailable"
    );
}
