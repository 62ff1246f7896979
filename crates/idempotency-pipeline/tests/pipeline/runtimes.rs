//! P16: a pipeline that is used on several runtimes keeps the markers of each, whatever becomes of
//! the others.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use caching_abstractions::{TimeToLive, milliseconds, seconds};
use futures_util::FutureExt;
use idempotency_pipeline::{Operation, was_replayed};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use crate::support::{
    Create, Fixture, Gate, IN_PROGRESS, INTERNAL, Op, Order, Runs, create_order, gated_order,
    operation,
};

/// How long a marker lives by itself, and how often it is looked at.
const LIFE: Duration = milliseconds(1500);
const LOOKS: usize = 10;
const BETWEEN: Duration = milliseconds(300);

fn fixture() -> Fixture {
    Fixture::configured(|settings| {
        settings.in_progress_time_to_live = TimeToLive::new(LIFE).unwrap();
    })
}

fn single() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn workers(count: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(count)
        .enable_time()
        .build()
        .unwrap()
}

/// Begins a call that waits at `gate`, and repeats it for longer than its marker lives by itself.
async fn outlives_its_marker(fixture: &Fixture, gate: &Gate) {
    let gated = gated_order(&fixture.runs, gate);
    let (other, create) = (fixture.clone(), gated.clone());
    let before = fixture.runs.count();
    let first = tokio::spawn(async move { other.call(&create, "long").await.unwrap().0 });
    gate.reached().await;
    for _ in 0..LOOKS {
        sleep(BETWEEN).await;
        // A second execution would wait at the gate.
        let refused = timeout(seconds(30), fixture.refusal(&gated, "long")).await;
        assert_eq!(refused.unwrap(), IN_PROGRESS);
    }
    gate.open();
    let order = first.await.unwrap();
    assert_eq!(fixture.runs.count(), before + 1);
    let (again, context) = fixture.call(&gated, "long").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!(again, order);
}

#[test]
fn p16_a_runtime_that_nobody_drives_on_starves_no_marker() {
    let (fixture, idle) = (fixture(), single());
    // What keeps markers on the first runtime gets no further turn.
    idle.block_on(fixture.call(&create_order(&Runs::default()), "short"))
        .unwrap();
    workers(1).block_on(outlives_its_marker(&fixture, &Gate::new()));
    drop(idle);
}

#[test]
fn p16_a_runtime_that_ends_takes_nobody_elses_keeper_with_it() {
    let (fixture, ends, goes_on) = (fixture(), workers(1), workers(1));
    let (other, gate) = (fixture.clone(), Gate::new());
    let cut = gated_order(&Runs::default(), &gate);
    ends.spawn(async move { other.call(&cut, "cut").await.map(drop) });
    ends.block_on(gate.reached());
    goes_on.block_on(async {
        let ending = async {
            sleep(milliseconds(100)).await;
            ends.shutdown_background();
        };
        let gate = Gate::new();
        tokio::join!(outlives_its_marker(&fixture, &gate), ending);
    });
    assert!(fixture.stored("cut").is_none(), "what was cut has run out");
}

/// An operation that blocks its thread until it is told to go on, or has waited for long.
fn blocking(
    runs: &Runs,
) -> (
    Operation<Create, Order>,
    mpsc::Receiver<()>,
    mpsc::Sender<()>,
) {
    let (begun, begins) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let may_go = Arc::new(std::sync::Mutex::new(may_go));
    let blocks = operation("orders.create", runs, move |id, _, request| {
        let (begun, may_go) = (begun.clone(), Arc::clone(&may_go));
        async move {
            begun.send(()).unwrap();
            let _told_or_not = may_go.lock().unwrap().recv_timeout(seconds(60));
            Ok(Order {
                id,
                name: request.name,
            })
        }
    });
    (blocks, begins, go)
}

/// Starts a call that blocks on `runtime`, does `then`, and looks at its marker for longer than
/// that lives by itself, from a thread of no runtime.
fn blocks_and_is_kept(runtime: Runtime, then: impl FnOnce(Runtime) -> Option<Runtime>) {
    let fixture = fixture();
    let (blocks, begins, go) = blocking(&fixture.runs);
    let (other, ended) = (fixture.clone(), mpsc::channel());
    let called = blocks.clone();
    runtime.spawn(async move {
        let end = other.call(&called, "a").await.map(drop);
        let _nobody_may_listen = ended.0.send(end);
    });
    begins.recv_timeout(seconds(30)).unwrap();
    let runtime = then(runtime);
    let before = fixture.store.count(Op::TryExtend);
    for _ in 0..LOOKS {
        #[expect(clippy::disallowed_methods, reason = "no runtime is here to wait with")]
        std::thread::sleep(BETWEEN);
        let refused = single().block_on(fixture.refusal(&blocks, "a"));
        assert_eq!(refused, IN_PROGRESS);
    }
    assert!(fixture.store.count(Op::TryExtend) > before);
    go.send(()).unwrap();
    if runtime.is_some() {
        ended.1.recv_timeout(seconds(30)).unwrap().unwrap();
        let (_, context) = single().block_on(fixture.call(&blocks, "a")).unwrap();
        assert!(was_replayed(&context));
    }
    assert_eq!(fixture.runs.count(), 1);
}

#[test]
fn p16_a_handler_that_blocks_the_only_worker_keeps_its_marker() {
    blocks_and_is_kept(workers(1), Some);
}

#[test]
fn p16_a_handler_that_blocks_on_while_its_runtime_ends_keeps_its_marker() {
    blocks_and_is_kept(workers(2), |runtime| {
        runtime.shutdown_background();
        None
    });
}

#[test]
fn p16_a_call_outside_a_runtime_is_refused_and_leaves_nothing_to_keep() {
    let fixture = fixture();
    let create = create_order(&fixture.runs);
    let refused = fixture.refusal(&create, "a").now_or_never();
    assert_eq!(refused.unwrap(), INTERNAL);
    workers(1).block_on(outlives_its_marker(&fixture, &Gate::new()));
    assert_eq!(fixture.stored("a"), None, "its marker has run out");
    assert_eq!((fixture.runs.count(), fixture.pipeline.running()), (1, 0));
}
