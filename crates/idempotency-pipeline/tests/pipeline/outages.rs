//! P14: the store is away or full, at the start or at the end.

use std::sync::Arc;

use caching_abstractions::{milliseconds, seconds};
use idempotency_pipeline::{IdempotencyRecord, Operation, was_replayed};
use tokio::time::sleep;

use crate::support::{
    AWAY, Counts, Create, FULL, Fault, Fixture, Gate, IN_PROGRESS, NOT_REPLAYABLE, Op, Order,
    create_order, operation, settle,
};

/// An operation during which the store goes away.
fn goes_away(fixture: &Fixture) -> Operation<Create, Order> {
    let store = Arc::clone(&fixture.store);
    operation("orders.create", &fixture.runs, move |id, _, request| {
        store.set_away(true);
        async move {
            Ok(Order {
                id,
                name: request.name,
            })
        }
    })
}

#[tokio::test(start_paused = true)]
async fn p14_without_a_store_at_the_start_nothing_runs() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    fixture.store.set_away(true);
    assert_eq!(fixture.refusal(&create, "a").await, AWAY);
    fixture.store.set_away(false);
    sleep(seconds(10)).await;
    fixture.call(&create, "a").await.unwrap();
    assert_eq!((fixture.runs.count(), counts.of("unavailable")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn p14_a_marker_of_unknown_fate_is_removed_in_the_background() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    fixture.store.next(Op::GetOrAdd, Fault::ReplyLost);
    fixture.store.next(Op::TryRemove, Fault::Lost);
    fixture.store.next(Op::TryRemove, Fault::Lost);
    assert_eq!(fixture.refusal(&create, "a").await, AWAY);
    settle().await;
    assert!(
        fixture.stored("a").is_some(),
        "the request had reached the store"
    );
    sleep(seconds(2)).await;
    assert_eq!(fixture.stored("a"), None);
    fixture.call(&create, "a").await.unwrap();
    assert_eq!(fixture.runs.count(), 1);
    sleep(seconds(60)).await;
    assert!(
        fixture.stored("a").is_some(),
        "only the marker was removed, by its own value"
    );
}

#[tokio::test(start_paused = true)]
async fn p14_a_request_that_was_never_sent_leaves_nothing_to_remove() {
    let fixture = Fixture::new();
    fixture.store.next(Op::GetOrAdd, Fault::NotSent);
    assert_eq!(
        fixture.refusal(&create_order(&fixture.runs), "a").await,
        AWAY
    );
    sleep(seconds(70)).await;
    assert_eq!((fixture.store.round_trips(), fixture.runs.count()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn p14_an_unknown_start_that_found_another_call_never_touches_it() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    fixture.call(&create, "a").await.unwrap();
    let record = fixture.stored("a");
    fixture.store.next(Op::GetOrAdd, Fault::ReplyLost);
    assert_eq!(fixture.refusal(&create, "a").await, AWAY);
    sleep(seconds(70)).await;
    assert_eq!(fixture.stored("a"), record);
    assert_eq!(fixture.pipeline.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn p14_a_marker_that_ran_out_before_its_answer_came_starts_nothing() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    let slow_reply = Fault::SlowReply(seconds(61));
    fixture.store.next(Op::GetOrAdd, slow_reply);
    let late = tokio::spawn({
        let (fixture, create) = (fixture.clone(), create.clone());
        async move { fixture.refusal(&create, "a").await }
    });
    sleep(milliseconds(60_500)).await;
    fixture.call(&create, "a").await.unwrap();
    let record = fixture.stored("a");
    assert_eq!(late.await.unwrap(), AWAY);
    assert_eq!(
        fixture.runs.count(),
        1,
        "the retry ran, the late one must not"
    );
    sleep(seconds(120)).await;
    assert_eq!(fixture.stored("a"), record, "the record of the retry");
}

#[tokio::test(start_paused = true)]
async fn p14_a_store_away_at_the_end_gets_the_record_when_it_is_back() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let fixture = Fixture::new();
    let create = goes_away(&fixture);
    let (first, context) = fixture.call(&create, "a").await.unwrap();
    assert!(!was_replayed(&context), "the real answer, now");
    sleep(seconds(20)).await;
    fixture.store.set_away(false);
    assert_eq!(fixture.refusal(&create, "a").await, IN_PROGRESS);
    sleep(seconds(6)).await;
    let (again, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!((first, fixture.runs.count()), (again, 1));
    assert_eq!((counts.of("executed"), counts.of("record_lost")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn p14_a_store_back_at_the_last_moment_still_gets_the_record() {
    let fixture = Fixture::new();
    let create = goes_away(&fixture);
    fixture.call(&create, "a").await.unwrap();
    sleep(seconds(60) - milliseconds(10)).await;
    fixture.store.set_away(false);
    sleep(milliseconds(20)).await;
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
}

#[tokio::test(start_paused = true)]
async fn p14_recording_is_given_up_when_the_marker_has_run_out() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let fixture = Fixture::new();
    let create = goes_away(&fixture);
    fixture.call(&create, "a").await.unwrap();
    sleep(seconds(50)).await;
    assert_eq!(
        (fixture.pipeline.running(), counts.of("record_lost")),
        (1, 0)
    );
    sleep(seconds(11)).await;
    assert_eq!(
        (fixture.pipeline.running(), counts.of("record_lost")),
        (0, 1)
    );
    assert_eq!(fixture.stored("a"), None);
}

#[tokio::test(start_paused = true)]
async fn p14_a_full_store_at_the_start_refuses_and_nothing_runs() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    fixture.store.set_full(true);
    assert_eq!(fixture.refusal(&create, "a").await, FULL);
    sleep(seconds(70)).await;
    assert_eq!((fixture.runs.count(), fixture.store.round_trips()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn p14_a_full_store_at_the_end_takes_the_record_without_its_response() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let fixture = Fixture::new();
    let store = Arc::clone(&fixture.store);
    let create = operation("orders.create", &fixture.runs, move |id, _, request| {
        store.set_full(true);
        async move {
            Ok(Order {
                id,
                name: request.name,
            })
        }
    });
    let (order, _) = fixture.call(&create, "a").await.unwrap();
    assert_eq!(order.id, 1, "the caller's real answer");
    let record = fixture.stored("a").unwrap();
    assert!(matches!(
        IdempotencyRecord::decode(&record),
        IdempotencyRecord::Opaque
    ));
    assert_eq!(fixture.left("a"), Some(seconds(86_400)));
    for _ in 0..2 {
        let error = fixture.call(&create, "a").await.unwrap_err();
        assert_eq!(crate::support::code(&error), NOT_REPLAYABLE);
        let key = crate::support::message_key(&error);
        assert_eq!(key, "caching.idempotency.response_unavailable");
    }
    assert_eq!((fixture.runs.count(), counts.of("record_lost")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn p14_away_and_then_full_ends_in_a_record_without_its_response() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    for fault in [Fault::Lost, Fault::Full, Fault::ReplyLost] {
        fixture.store.next(Op::TryReplace, fault);
    }
    fixture.call(&create, "a").await.unwrap();
    assert!(fixture.pipeline.shutdown().await);
    let record = fixture.stored("a").unwrap();
    assert!(matches!(
        IdempotencyRecord::decode(&record),
        IdempotencyRecord::Opaque
    ));
    assert_eq!(fixture.refusal(&create, "a").await, NOT_REPLAYABLE);
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn p14_a_caller_that_leaves_while_the_start_hangs_leaves_no_marker() {
    for applied in [false, true] {
        let fixture = Fixture::new();
        let create = create_order(&fixture.runs);
        let gate = Gate::new();
        let fault = match applied {
            true => Fault::HeldAfter(gate.clone()),
            false => Fault::HeldBefore(gate.clone()),
        };
        fixture.store.next(Op::GetOrAdd, fault);
        let call = tokio::spawn({
            let (fixture, create) = (fixture.clone(), create.clone());
            async move { fixture.call(&create, "a").await.map(drop) }
        });
        gate.reached().await;
        assert_eq!(fixture.stored("a").is_some(), applied);
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        settle().await;
        assert_eq!((fixture.stored("a"), fixture.runs.count()), (None, 0));
        fixture.call(&create, "a").await.unwrap();
        assert_eq!(fixture.runs.count(), 1);
    }
}
