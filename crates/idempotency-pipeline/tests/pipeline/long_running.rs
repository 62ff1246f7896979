//! P16: handlers that run longer than their marker lives.

use std::time::Duration;

use caching_abstractions::{ManualClock, TimeToLive, milliseconds, seconds};
use conformance::ReferenceStore;
use idempotency_pipeline::{Operation, was_replayed};
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::support::{
    Counts, Create, Fault, Fixture, IN_PROGRESS, Op, Order, create_order, operation,
};

/// An operation that takes this long.
fn slow(fixture: &Fixture, time: Duration) -> Operation<Create, Order> {
    operation(
        "orders.create",
        &fixture.runs,
        move |id, _, request| async move {
            sleep(time).await;
            Ok(Order {
                id,
                name: request.name,
            })
        },
    )
}

fn start(
    fixture: &Fixture,
    operation: &Operation<Create, Order>,
) -> tokio::task::JoinHandle<Order> {
    let (fixture, operation) = (fixture.clone(), operation.clone());
    tokio::spawn(async move { fixture.call(&operation, "a").await.unwrap().0 })
}

#[tokio::test(start_paused = true)]
async fn p16_a_handler_four_times_as_long_as_the_marker_runs_once() {
    let fixture = Fixture::new();
    let create = slow(&fixture, seconds(240));
    let first = start(&fixture, &create);
    for second in 0..239 {
        sleep(seconds(1)).await;
        assert_eq!(
            fixture.refusal(&create, "a").await,
            IN_PROGRESS,
            "after {second} s"
        );
    }
    let first = first.await.unwrap();
    let (again, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!((first, fixture.runs.count()), (again, 1));
    let asked = fixture.store.count(Op::TryExtend);
    assert!(
        (11..=12).contains(&asked),
        "a third of the time to live each: {asked}"
    );
}

#[tokio::test(start_paused = true)]
async fn p16_a_handler_that_is_done_extends_nothing() {
    let fixture = Fixture::new();
    fixture
        .call(&slow(&fixture, seconds(19)), "a")
        .await
        .unwrap();
    sleep(seconds(600)).await;
    assert_eq!(
        (
            fixture.store.count(Op::TryExtend),
            fixture.store.round_trips()
        ),
        (0, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn p16_an_outage_shorter_than_the_marker_does_not_lose_it() {
    let fixture = Fixture::new();
    let create = slow(&fixture, seconds(240));
    let first = start(&fixture, &create);
    // Just after an extension, and ends shortly before the marker would.
    sleep(seconds(21)).await;
    fixture.store.set_away(true);
    sleep(seconds(52)).await;
    fixture.store.set_away(false);
    sleep(seconds(20)).await;
    assert_eq!(fixture.refusal(&create, "a").await, IN_PROGRESS);
    first.await.unwrap();
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn p16_an_extension_whose_reply_is_lost_or_late_does_no_harm() {
    let fixture = Fixture::new();
    let create = slow(&fixture, seconds(240));
    fixture.store.next(Op::TryExtend, Fault::ReplyLost);
    fixture
        .store
        .next(Op::TryExtend, Fault::SlowReply(seconds(15)));
    let first = start(&fixture, &create);
    sleep(seconds(200)).await;
    assert_eq!(fixture.refusal(&create, "a").await, IN_PROGRESS);
    first.await.unwrap();
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
}

#[tokio::test(start_paused = true)]
async fn p16_extension_ends_at_the_longest_execution_time() {
    let fixture = Fixture::configured(|settings| settings.max_execution = seconds(120));
    let create = slow(&fixture, seconds(600));
    let first = start(&fixture, &create);
    sleep(seconds(120)).await;
    assert_eq!(fixture.refusal(&create, "a").await, IN_PROGRESS);
    sleep(seconds(61)).await;
    assert_eq!(fixture.stored("a"), None, "the marker has run out");
    assert!(!first.is_finished());
    let second = start(&fixture, &create);
    sleep(seconds(1)).await;
    assert_eq!(fixture.runs.count(), 2, "the key is free for another call");
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!((first.id, second.id), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn p16_the_late_result_of_a_lost_marker_overwrites_nothing() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let fixture = Fixture::new();
    let first = start(&fixture, &slow(&fixture, seconds(100)));
    sleep(seconds(1)).await;
    // The store forgets the marker, and the retry reaches an instance that knows of nothing.
    fixture.store.inner().restart_empty();
    let second = start(&fixture, &slow(&fixture, seconds(200)));
    sleep(seconds(1)).await;
    let marker = fixture.stored("a").unwrap();
    assert_eq!(
        first.await.unwrap().id,
        1,
        "its caller gets the real answer"
    );
    sleep(seconds(1)).await;
    assert_eq!(
        fixture.stored("a"),
        Some(marker),
        "the marker of the second call"
    );
    assert_eq!(counts.of("record_lost"), 1);
    assert_eq!(counts.of("marker_lost"), 1);
    assert_eq!(second.await.unwrap().id, 2);
    let (again, _) = fixture
        .call(&create_order(&fixture.runs), "a")
        .await
        .unwrap();
    assert_eq!(again.id, 2, "the record of the second call");
}

#[tokio::test(start_paused = true)]
async fn p16_the_late_failure_of_a_lost_marker_removes_nothing() {
    let fixture = Fixture::new();
    let fail = operation("orders.create", &fixture.runs, |_, _, _| async {
        sleep(seconds(100)).await;
        Err(std::io::Error::other("broken").into())
    });
    let late = tokio::spawn({
        let (fixture, fail) = (fixture.clone(), fail.clone());
        async move { fixture.call(&fail, "a").await.map(drop) }
    });
    sleep(seconds(1)).await;
    fixture.store.inner().restart_empty();
    fixture
        .call(&create_order(&fixture.runs), "a")
        .await
        .unwrap();
    let record = fixture.stored("a").unwrap();
    late.await.unwrap().unwrap_err();
    sleep(seconds(100)).await;
    assert_eq!(fixture.stored("a"), Some(record));
}

#[tokio::test(start_paused = true)]
async fn p16_the_marker_of_a_slow_start_is_extended_in_time() {
    let fixture = Fixture::new();
    // Written at once, and answered when ten seconds are left of it.
    let slow_reply = Fault::SlowReply(seconds(50));
    fixture.store.next(Op::GetOrAdd, slow_reply);
    let create = slow(&fixture, seconds(30));
    let first = start(&fixture, &create);
    sleep(seconds(70)).await;
    assert_eq!(fixture.refusal(&create, "a").await, IN_PROGRESS);
    first.await.unwrap();
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!(fixture.runs.count(), 1);
}

#[test]
fn p16_a_crashed_process_frees_the_key_within_the_time_of_its_marker() {
    let clock = ManualClock::new();
    let store = ReferenceStore::with_clock(clock.clone());
    let crash = |store: &ReferenceStore| {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let fixture = Fixture::on(store.clone(), |builder| builder, |_| {});
            let call = start(&fixture, &slow(&fixture, seconds(600)));
            // Long enough for an extension.
            sleep(seconds(30)).await;
            assert_eq!(fixture.store.count(Op::TryExtend), 1);
            assert!(!call.is_finished());
        });
        // The runtime goes down here, with the handler in the middle of its work.
    };
    crash(&store);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let fixture = Fixture::on(store.clone(), |builder| builder, |_| {});
        let create = create_order(&fixture.runs);
        clock.advance(seconds(60) - milliseconds(1));
        assert_eq!(fixture.refusal(&create, "a").await, IN_PROGRESS);
        clock.advance(milliseconds(1));
        fixture.call(&create, "a").await.unwrap();
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn p16_a_handler_that_blocks_its_thread_keeps_its_marker() {
    let fixture = Fixture::configured(|settings| {
        settings.in_progress_time_to_live = TimeToLive::new(milliseconds(600)).unwrap();
    });
    let (begun, mut begins) = tokio::sync::mpsc::channel(1);
    let blocks = operation("orders.create", &fixture.runs, move |id, _, request| {
        let begun = begun.clone();
        async move {
            begun.send(()).await.unwrap();
            #[expect(
                clippy::disallowed_methods,
                reason = "what a handler should not do is what this is about"
            )]
            std::thread::sleep(milliseconds(2400));
            Ok(Order {
                id,
                name: request.name,
            })
        }
    });
    let first = fixture.call(&blocks, "a");
    let repeats = async {
        begins.recv().await.unwrap();
        for _ in 0..8 {
            sleep(milliseconds(200)).await;
            assert_eq!(fixture.refusal(&blocks, "a").await, IN_PROGRESS);
        }
    };
    let (first, ()) = tokio::join!(first, repeats);
    first.unwrap();
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn p16_a_caller_that_stops_polling_delays_neither_work_nor_marker() {
    let fixture = Fixture::new();
    let slow = slow(&fixture, seconds(300));
    let mut first = Box::pin(fixture.call(&slow, "a"));
    assert!(futures_util::poll!(&mut first).is_pending());
    sleep(seconds(200)).await;
    assert_eq!(fixture.refusal(&slow, "a").await, IN_PROGRESS);
    sleep(seconds(200)).await;
    let (_, context) = fixture.call(&slow, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!(fixture.runs.count(), 1);
    first.await.unwrap();
}
