//! P6 with a transaction: what is recorded is what was committed.

use std::sync::Arc;

use caching_abstractions::{milliseconds, seconds};
use idempotency_pipeline::{IdempotencyRecord, InvocationContext, Operation, Stage, was_replayed};
use serde::{Serialize, Serializer};

use crate::support::{
    Counts, Create, End, Fixture, IN_PROGRESS, INTERNAL, Ledger, Log, Op, Order, Step, Then,
    create_order, operation, refuse_order, settle,
};

struct Scene {
    fixture: Fixture,
    ledger: Ledger,
    log: Log,
}

fn scene() -> Scene {
    let log = Log::default();
    let ledger = Ledger::new("ledger", &log);
    let fixture = Fixture::built(|builder| builder.transaction(ledger.clone()));
    Scene {
        fixture,
        ledger,
        log,
    }
}

#[tokio::test]
async fn p6_a_success_commits_and_a_replay_begins_nothing() {
    let Scene { fixture, log, .. } = scene();
    let create = create_order(&fixture.runs);
    fixture.call(&create, "a").await.unwrap();
    assert_eq!(log.take(), ["ledger begin", "ledger commit Committed"]);
    fixture.call(&create, "a").await.unwrap();
    assert!(log.take().is_empty());
}

#[tokio::test]
async fn p6_a_business_failure_rolls_back_and_is_recorded() {
    let Scene { fixture, log, .. } = scene();
    let refuse = refuse_order(&fixture.runs);
    let first = fixture.refusal(&refuse, "a").await;
    assert_eq!(log.take(), ["ledger begin", "ledger rollback"]);
    assert_eq!(fixture.refusal(&refuse, "a").await, first);
    assert!(log.take().is_empty());
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test]
async fn p6_an_error_and_a_panic_roll_back_and_a_retry_runs() {
    for panics in [false, true] {
        let Scene { fixture, log, .. } = scene();
        let fail = operation("orders.create", &fixture.runs, move |_, _, _| async move {
            assert!(!panics, "panicked on purpose");
            Err(std::io::Error::other("broken").into())
        });
        for _ in 0..2 {
            assert_eq!(fixture.refusal(&fail, "a").await, INTERNAL);
            assert_eq!(log.take(), ["ledger begin", "ledger rollback"]);
            assert_eq!(fixture.stored("a"), None);
        }
        assert_eq!(fixture.runs.count(), 2);
    }
}

#[tokio::test]
async fn p6_a_commit_that_was_rolled_back_lets_a_retry_run() {
    let Scene {
        fixture, ledger, ..
    } = scene();
    let create = create_order(&fixture.runs);
    ledger.next(End::RolledBack);
    assert_eq!(fixture.refusal(&create, "a").await, INTERNAL);
    assert_eq!(fixture.stored("a"), None);
    let (order, context) = fixture.call(&create, "a").await.unwrap();
    assert_eq!((order.id, was_replayed(&context)), (2, false));
}

/// After the first call nobody runs for as long as the marker lives, and then somebody does.
async fn assert_the_marker_runs_out(fixture: &Fixture, create: &Operation<Create, Order>) {
    assert_eq!(fixture.refusal(create, "a").await, INTERNAL);
    let marker = fixture.stored("a").unwrap();
    assert!(matches!(
        IdempotencyRecord::decode(&marker),
        IdempotencyRecord::InProgress(_)
    ));
    for _ in 0..59 {
        assert_eq!(fixture.refusal(create, "a").await, IN_PROGRESS);
        tokio::time::sleep(seconds(1)).await;
    }
    assert_eq!(fixture.stored("a"), Some(marker));
    assert_eq!(
        (fixture.runs.count(), fixture.store.count(Op::TryRemove)),
        (1, 0)
    );
    assert_eq!(fixture.pipeline.running(), 0);
    tokio::time::sleep(seconds(1)).await;
    fixture.call(create, "a").await.unwrap();
    assert_eq!(fixture.runs.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn p6_an_unknown_commit_leaves_the_marker_to_run_out() {
    let counts = Counts::default();
    let _recording = metrics::set_default_local_recorder(&counts);
    let Scene {
        fixture, ledger, ..
    } = scene();
    ledger.next(End::Unknown);
    assert_the_marker_runs_out(&fixture, &create_order(&fixture.runs)).await;
    assert_eq!((counts.of("unknown"), counts.of("exception")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn p6_a_panic_inside_commit_counts_as_unknown() {
    let Scene {
        fixture, ledger, ..
    } = scene();
    ledger.next(End::Panic);
    assert_the_marker_runs_out(&fixture, &create_order(&fixture.runs)).await;
}

#[tokio::test(start_paused = true)]
async fn p6_a_panic_after_the_commit_leaves_the_marker_to_run_out() {
    let log = Log::default();
    let calls = crate::support::Runs::default();
    let panics_first = Step(move |_: &InvocationContext| match calls.begin() {
        1 => Then::PanicAfterwards,
        _ => Then::Continue,
    });
    let fixture = Fixture::built(|builder| {
        builder
            .middleware(Stage::Transaction, panics_first)
            .transaction(Ledger::new("ledger", &log))
    });
    assert_the_marker_runs_out(&fixture, &create_order(&fixture.runs)).await;
}

#[tokio::test(start_paused = true)]
async fn p6_an_outer_rollback_does_not_undo_an_inner_commit() {
    let log = Log::default();
    let (outer, inner) = (Ledger::new("outer", &log), Ledger::new("inner", &log));
    outer.next(End::RolledBack);
    let fixture = Fixture::built(|builder| {
        builder
            .transaction(outer.clone())
            .transaction(inner.clone())
    });
    assert_the_marker_runs_out(&fixture, &create_order(&fixture.runs)).await;
    assert_eq!(
        log.take()[2..4],
        ["inner commit Committed", "outer commit RolledBack"]
    );
}

#[tokio::test(start_paused = true)]
async fn p6_the_marker_stays_while_the_store_is_away_at_an_unknown_commit() {
    let Scene {
        fixture, ledger, ..
    } = scene();
    ledger.next(End::Unknown);
    let store = Arc::clone(&fixture.store);
    let create = create_order(&fixture.runs).created(move |_| {
        store.set_away(true);
        String::new()
    });
    fixture.refusal(&create, "a").await;
    fixture.store.set_away(false);
    tokio::time::sleep(seconds(60) - milliseconds(1)).await;
    settle().await;
    assert!(fixture.stored("a").is_some());
}

/// A response that says when it is encoded.
struct Loud(Log);

impl Serialize for Loud {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.add("encoded");
        serializer.serialize_unit()
    }
}

#[tokio::test]
async fn p6_the_response_is_encoded_before_the_commit() {
    let Scene { fixture, log, .. } = scene();
    let (response, location) = (log.clone(), log.clone());
    let create = Operation::new("orders.create")
        .handler(move |_, ()| {
            let response = response.clone();
            async move { Ok(Loud(response)) }
        })
        .created(move |_: &Loud| {
            location.add("located");
            "/orders/1".to_owned()
        });
    let context = crate::support::keyed(idempotency_pipeline::EntryKind::Raw, "a");
    fixture
        .invoker
        .invoke(&create, context, bytes::Bytes::new())
        .await
        .unwrap();
    assert_eq!(
        log.take(),
        [
            "ledger begin",
            "encoded",
            "located",
            "ledger commit Committed"
        ]
    );
}

#[tokio::test]
async fn p6_a_transaction_that_cannot_begin_runs_nothing_and_leaves_nothing() {
    let fixture = Fixture::built(|builder| builder.transaction(Closed));
    let create = create_order(&fixture.runs);
    assert_eq!(fixture.refusal(&create, "a").await, INTERNAL);
    assert_eq!((fixture.runs.count(), fixture.stored("a")), (0, None));
}

struct Closed;

#[async_trait::async_trait]
impl idempotency_pipeline::TransactionManager for Closed {
    async fn begin(
        &self,
        _: &InvocationContext,
    ) -> Result<Box<dyn idempotency_pipeline::Transaction>, idempotency_pipeline::InvocationError>
    {
        Err(std::io::Error::other("the pool is closed").into())
    }
}
