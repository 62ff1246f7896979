//! P15: a graceful shutdown waits for the work, as long as it may.

use std::sync::Arc;
use std::time::Duration;

use caching_abstractions::{ManualClock, seconds};
use conformance::ReferenceStore;
use idempotency_pipeline::{IdempotencyRecord, InvocationContext, Stage, was_replayed};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use crate::support::{
    Fault, Fixture, Gate, Op, Order, Step, Then, create_order, gated_order, operation,
};

/// Begins a call of nobody in particular and leaves at once.
async fn abandon(fixture: &Fixture, gate: &Gate) {
    let create = gated_order(&fixture.runs, gate);
    let call = tokio::spawn({
        let (fixture, create) = (fixture.clone(), create.clone());
        async move { fixture.call(&create, "a").await.map(drop) }
    });
    gate.reached().await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!(fixture.pipeline.running(), 1, "the work goes on");
}

#[tokio::test(start_paused = true)]
async fn p15_a_caller_that_leaves_does_not_stop_the_work() {
    let fixture = Fixture::new();
    let gate = Gate::new();
    abandon(&fixture, &gate).await;
    gate.open();
    assert!(fixture.pipeline.shutdown().await);
    let (order, context) = fixture
        .call(&create_order(&fixture.runs), "a")
        .await
        .unwrap();
    assert!(was_replayed(&context));
    assert_eq!((order.id, fixture.runs.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn p15_a_shutdown_with_nothing_to_wait_for_is_at_once() {
    let fixture = Fixture::new();
    fixture
        .call(&create_order(&fixture.runs), "a")
        .await
        .unwrap();
    let start = Instant::now();
    assert!(fixture.pipeline.shutdown().await);
    assert!(fixture.pipeline.shutdown().await, "and again");
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn p15_a_shutdown_waits_as_long_as_it_may_and_says_so() {
    let fixture = Fixture::configured(|settings| settings.shutdown = seconds(5));
    let gate = Gate::new();
    abandon(&fixture, &gate).await;
    let start = Instant::now();
    assert!(!fixture.pipeline.shutdown().await);
    assert_eq!(start.elapsed(), seconds(5));
    let marker = fixture.stored("a").unwrap();
    assert!(matches!(
        IdempotencyRecord::decode(&marker),
        IdempotencyRecord::InProgress(_)
    ));
    gate.open();
    assert!(
        fixture.pipeline.shutdown().await,
        "what was too slow may still end"
    );
}

#[tokio::test(start_paused = true)]
async fn p15_a_shutdown_tells_the_work_only_after_waiting() {
    let fixture = Fixture::configured(|settings| settings.shutdown = seconds(5));
    let create = operation(
        "orders.create",
        &fixture.runs,
        |id, context, request| async move {
            let start = Instant::now();
            context.cancellation().cancelled().await;
            assert_eq!(start.elapsed(), seconds(6));
            Ok(Order {
                id,
                name: request.name,
            })
        },
    );
    let call = tokio::spawn({
        let (fixture, create) = (fixture.clone(), create.clone());
        async move { fixture.call(&create, "a").await }
    });
    sleep(seconds(1)).await;
    assert!(!fixture.pipeline.shutdown().await);
    call.await.unwrap().unwrap();
    assert!(fixture.stored("a").is_some());
}

#[tokio::test(start_paused = true)]
async fn p15_a_call_that_arrives_during_the_shutdown_is_waited_for() {
    let fixture = Fixture::new();
    let gate = Gate::new();
    abandon(&fixture, &gate).await;
    let (pipeline, other) = (fixture.pipeline.clone(), fixture.clone());
    let shutdown = tokio::spawn(async move { pipeline.shutdown().await });
    sleep(seconds(1)).await;
    let slow = operation("orders.slow", &fixture.runs, |id, _, request| async move {
        sleep(seconds(10)).await;
        Ok(Order {
            id,
            name: request.name,
        })
    });
    let late = tokio::spawn(async move { other.call(&slow, "late").await.map(drop) });
    sleep(seconds(1)).await;
    gate.open();
    sleep(seconds(1)).await;
    assert!(!shutdown.is_finished());
    assert!(shutdown.await.unwrap());
    late.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn p15_a_shutdown_waits_for_records_still_to_be_written() {
    let fixture = Fixture::new();
    for _ in 0..4 {
        fixture.store.next(Op::TryReplace, Fault::Lost);
    }
    let create = create_order(&fixture.runs);
    fixture.call(&create, "a").await.unwrap();
    assert!(fixture.pipeline.shutdown().await);
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
}

#[test]
fn p15_work_that_is_cut_leaves_its_marker_to_run_out() {
    let clock = ManualClock::new();
    let store = ReferenceStore::with_clock(clock.clone());
    let paused = || {
        Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    paused().block_on(async {
        let fixture = Fixture::on(
            store.clone(),
            |builder| builder,
            |settings| {
                settings.shutdown = seconds(1);
            },
        );
        abandon(&fixture, &Gate::new()).await;
        assert!(!fixture.pipeline.shutdown().await);
    });
    paused().block_on(async {
        let fixture = Fixture::on(store.clone(), |builder| builder, |_| {});
        let create = create_order(&fixture.runs);
        assert_eq!(
            fixture.refusal(&create, "a").await,
            crate::support::IN_PROGRESS
        );
        clock.advance(seconds(60));
        fixture.call(&create, "a").await.unwrap();
    });
}

#[tokio::test(start_paused = true)]
async fn p15_what_a_stage_left_for_the_work_lives_as_long_as_the_work() {
    let permit = Arc::new(());
    let taken = Arc::clone(&permit);
    let takes = Step(move |context: &InvocationContext| {
        context.extensions().insert(Arc::clone(&taken));
        Then::Continue
    });
    let fixture = Fixture::built(|builder| builder.middleware(Stage::Authorize, takes));
    let gate = Gate::new();
    let held = Arc::strong_count(&permit);
    abandon(&fixture, &gate).await;
    assert_eq!(
        Arc::strong_count(&permit),
        held + 1,
        "the caller has left, the permit has not"
    );
    gate.open();
    assert!(fixture.pipeline.shutdown().await);
    assert_eq!(Arc::strong_count(&permit), held);
}

#[tokio::test(start_paused = true)]
async fn p15_a_provider_that_panics_at_the_end_is_an_internal_error_and_runs_nothing_twice() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    fixture.store.next(Op::TryReplace, Fault::Panics);
    assert_eq!(
        fixture.refusal(&create, "a").await,
        crate::support::INTERNAL
    );
    assert!(fixture.pipeline.shutdown().await);
    assert_eq!(
        fixture.refusal(&create, "a").await,
        crate::support::IN_PROGRESS
    );
    assert_eq!(fixture.runs.count(), 1);
}

#[test]
fn p15_a_call_that_begins_while_its_runtime_goes_down_is_refused_and_hangs_nowhere() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let fixture = Fixture::new();
    let (begun, begins) = std::sync::mpsc::channel();
    let (ended, ends) = std::sync::mpsc::channel();
    let (other, create) = (fixture.clone(), create_order(&fixture.runs));
    runtime.spawn(async move {
        begun.send(()).unwrap();
        // The other worker closes the runtime; from then on each task is cancelled at its start.
        while !tokio::spawn(std::future::pending::<()>()).is_finished() {}
        ended.send(other.refusal(&create, "a").await).unwrap();
    });
    begins.recv_timeout(seconds(30)).unwrap();
    runtime.shutdown_background();
    let code = ends.recv_timeout(seconds(30)).unwrap();
    assert_eq!(code, crate::support::AWAY);
    assert_eq!(fixture.runs.count(), 0);
}
