//! P5: how the first call takes its key and leaves its record.

use std::sync::Arc;

use caching_abstractions::{CacheKey, CacheStore, minutes, seconds};
use idempotency_pipeline::{IdempotencyRecord, was_replayed};

use crate::support::{
    Counts, Fault, FaultyStore, Fixture, Gate, Op, Order, create_order, gated_order, operation,
    refuse_order, settle,
};

#[tokio::test(start_paused = true)]
async fn p5_a_first_call_takes_one_get_or_add_and_one_try_replace() {
    let fixture = Fixture::new();
    fixture
        .call(&create_order(&fixture.runs), "a")
        .await
        .unwrap();
    fixture
        .call(&refuse_order(&fixture.runs), "b")
        .await
        .unwrap_err();
    let store = &fixture.store;
    assert_eq!(
        (store.count(Op::GetOrAdd), store.count(Op::TryReplace)),
        (2, 2)
    );
    assert_eq!(store.round_trips(), 4);
    assert_eq!(fixture.pipeline.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn p5_marker_and_record_have_the_times_to_live_of_the_settings() {
    let fixture = Fixture::new();
    let gate = Gate::new();
    let create = gated_order(&fixture.runs, &gate);
    let call = tokio::spawn({
        let (fixture, create) = (fixture.clone(), create.clone());
        async move { fixture.call(&create, "a").await }
    });
    gate.reached().await;
    let marker = fixture.stored("a").unwrap();
    assert!(matches!(
        IdempotencyRecord::decode(&marker),
        IdempotencyRecord::InProgress(_)
    ));
    assert_eq!(fixture.left("a"), Some(seconds(60)));
    gate.open();
    call.await.unwrap().unwrap();
    let record = fixture.stored("a").unwrap();
    assert!(matches!(
        IdempotencyRecord::decode(&record),
        IdempotencyRecord::Completed(_)
    ));
    assert_eq!(fixture.left("a"), Some(seconds(86_400)));
}

#[tokio::test]
async fn p5_every_execution_has_a_marker_of_its_own() {
    let fixture = Fixture::new();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let store = Arc::clone(&fixture.store);
    let collect = Arc::clone(&seen);
    let fail = operation("orders.fail", &fixture.runs, move |_, _, _| {
        let (store, collect) = (Arc::clone(&store), Arc::clone(&collect));
        async move {
            let marker = store.inner().get(&key("a")).await?.unwrap();
            collect.lock().unwrap().push(marker);
            Err(std::io::Error::other("fails").into())
        }
    });
    for _ in 0..3 {
        fixture.call(&fail, "a").await.unwrap_err();
    }
    let mut markers = std::mem::take(&mut *seen.lock().unwrap());
    markers.sort_unstable();
    markers.dedup();
    assert_eq!(markers.len(), 3);
    assert!(
        markers
            .iter()
            .all(|marker| marker.len() == markers[0].len())
    );
}

#[tokio::test(start_paused = true)]
async fn p5_a_start_that_meets_its_own_marker_has_the_key() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    fixture.store.next(Op::GetOrAdd, Fault::AskedTwice);
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(!was_replayed(&context));
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn p5_a_record_whose_reply_was_lost_is_recorded() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    for fault in [Fault::ReplyLost, Fault::AskedTwice] {
        let fixture = Fixture::new();
        let create = create_order(&fixture.runs);
        fixture.store.next(Op::TryReplace, fault);
        let (first, _) = fixture.call(&create, "a").await.unwrap();
        assert!(fixture.pipeline.shutdown().await);
        let (again, context) = fixture.call(&create, "a").await.unwrap();
        assert!(was_replayed(&context));
        assert_eq!((first, fixture.runs.count()), (again, 1));
    }
    assert_eq!(counts.of("record_lost"), 0);
}

#[tokio::test(start_paused = true)]
async fn p5_its_own_record_is_recognised_even_where_the_store_has_become_full() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    fixture.store.next(Op::TryReplace, Fault::ReplyLost);
    fixture.store.next(Op::TryReplace, Fault::Full);
    fixture.call(&create, "a").await.unwrap();
    assert!(fixture.pipeline.shutdown().await);
    assert_eq!(counts.of("record_lost"), 0);
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
}

/// An operation during which `meanwhile` happens to the store.
fn with_incident(
    fixture: &Fixture,
    meanwhile: fn(&FaultyStore),
) -> idempotency_pipeline::Operation<crate::support::Create, Order> {
    let store = Arc::clone(&fixture.store);
    operation("orders.create", &fixture.runs, move |id, _, request| {
        meanwhile(&store);
        async move {
            Ok(Order {
                id,
                name: request.name,
            })
        }
    })
}

#[tokio::test(start_paused = true)]
async fn p5_a_store_that_came_back_empty_gets_the_record_all_the_same() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let fixture = Fixture::new();
    let create = with_incident(&fixture, |store| store.inner().restart_empty());
    fixture.call(&create, "a").await.unwrap();
    assert_eq!(
        fixture.store.round_trips(),
        3,
        "one more than usual, to write into the gap"
    );
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!(fixture.left("a"), Some(seconds(86_400)));
    assert_eq!((fixture.runs.count(), counts.of("record_lost")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn p5_what_another_call_left_under_the_key_is_counted_and_left_alone() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    // The marker and the record of another execution, as another instance would write them.
    let other = Fixture::new();
    other.call(&create_order(&other.runs), "a").await.unwrap();
    let record = other.stored("a").unwrap();
    let marker = marker_of_a_running_call(&other).await;
    for theirs in [record, marker] {
        let fixture = Fixture::new();
        let gate = Gate::new();
        let create = gated_order(&fixture.runs, &gate);
        let call = tokio::spawn({
            let (fixture, create) = (fixture.clone(), create.clone());
            async move { fixture.call(&create, "a").await }
        });
        gate.reached().await;
        fixture.put("a", theirs.clone());
        let lost = counts.of("record_lost");
        gate.open();
        let (order, _) = call.await.unwrap().unwrap();
        assert_eq!(
            (order.id, order.name.as_str()),
            (1, "Keyboard"),
            "the caller's own answer"
        );
        tokio::time::sleep(minutes(2)).await;
        assert_eq!(fixture.stored("a"), Some(theirs));
        assert_eq!(counts.of("record_lost"), lost + 1);
        assert_eq!(fixture.pipeline.running(), 0);
    }
}

async fn marker_of_a_running_call(fixture: &Fixture) -> bytes::Bytes {
    let gate = Gate::new();
    let create = gated_order(&fixture.runs, &gate);
    let call = fixture.call(&create, "b");
    let (marker, _) = tokio::join!(
        async {
            gate.reached().await;
            let marker = fixture.stored("b").unwrap();
            gate.open();
            marker
        },
        call
    );
    settle().await;
    marker
}

fn key(text: &str) -> CacheKey {
    CacheKey::new(format!("idem:-:-:{text}")).unwrap()
}
