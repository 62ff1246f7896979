//! P15, P16: work that ends in its first poll runs where its caller is; all other is a task of its
//! own from then on.

use std::future::pending;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use caching_abstractions::{TimeToLive, milliseconds, seconds};
use idempotency_pipeline::{InvocationContext, Operation, Stage, was_replayed};
use tokio::runtime::Builder;
use tokio::task::{Id, JoinHandle, yield_now};
use tokio::time::{sleep, timeout};

use crate::support::{
    Create, Fault, Fixture, Gate, IN_PROGRESS, INTERNAL, Op, Order, Runs, Step, Then, create_order,
    gated_order, operation, settle,
};

/// The tasks that a handler found itself on.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<Vec<Option<Id>>>>);

impl Tasks {
    fn note(&self) {
        self.0.lock().unwrap().push(tokio::task::try_id());
    }

    fn take(&self) -> Vec<Option<Id>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// An operation that notes its task, before and after it waited as often as `waits`.
fn noting(runs: &Runs, tasks: &Tasks, waits: usize) -> Operation<Create, Order> {
    let tasks = tasks.clone();
    operation("orders.create", runs, move |id, _, request| {
        let tasks = tasks.clone();
        async move {
            tasks.note();
            for _ in 0..waits {
                yield_now().await;
                tasks.note();
            }
            Ok(Order {
                id,
                name: request.name,
            })
        }
    })
}

/// A call that goes on until `gate` is opened, so that somebody keeps markers meanwhile; gives the
/// task once calls run where their callers are.
pub(crate) async fn keep_busy(fixture: &Fixture, gate: &Gate) -> JoinHandle<()> {
    let (other, held) = (fixture.clone(), gated_order(&Runs::default(), gate));
    let busy = tokio::spawn(async move { drop(other.call(&held, "busy").await.unwrap()) });
    gate.reached().await;
    let tasks = Tasks::default();
    let probe = noting(&Runs::default(), &tasks, 0);
    for number in 0_u32.. {
        let key = format!("probe-{number}");
        fixture.call(&probe, &key).await.unwrap();
        if tasks.take() == [tokio::task::try_id()] {
            break;
        }
        yield_now().await;
    }
    busy
}

/// Runs `test` beside so many workers: on a thread that none of them needs, and as no task.
pub(crate) fn on_workers(workers: usize, test: impl Future<Output = ()>) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(test);
}

/// An operation that blocks its thread until it is told to go on, or `longest`.
fn blocking(
    runs: &Runs,
    longest: std::time::Duration,
) -> (
    Operation<Create, Order>,
    mpsc::Receiver<()>,
    mpsc::Sender<()>,
) {
    let (begun, begins) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let may_go = Arc::new(Mutex::new(may_go));
    let blocks = operation("orders.create", runs, move |id, _, request| {
        let (begun, may_go) = (begun.clone(), Arc::clone(&may_go));
        async move {
            begun.send(()).unwrap();
            let _told_or_not = may_go.lock().unwrap().recv_timeout(longest);
            Ok(Order {
                id,
                name: request.name,
            })
        }
    });
    (blocks, begins, go)
}

fn start(fixture: &Fixture, operation: &Operation<Create, Order>) -> JoinHandle<Order> {
    let (fixture, operation) = (fixture.clone(), operation.clone());
    tokio::spawn(async move { fixture.call(&operation, "a").await.unwrap().0 })
}

#[test]
fn p15_work_that_ends_at_once_runs_where_its_caller_is() {
    on_workers(1, async {
        let (fixture, tasks) = (Fixture::new(), Tasks::default());
        let create = noting(&fixture.runs, &tasks, 0);
        let caller = tokio::task::try_id();
        fixture.call(&create, "first").await.unwrap();
        assert_ne!(tasks.take(), [caller], "nobody keeps markers yet");

        let gate = Gate::new();
        let busy = keep_busy(&fixture, &gate).await;
        fixture.call(&create, "a").await.unwrap();
        assert_eq!(tasks.take(), [caller]);
        let (_, context) = fixture.call(&create, "a").await.unwrap();
        assert!(was_replayed(&context));

        let open = Gate::new();
        open.open();
        // The store answers, but only after a while: another task may have a part in that.
        let slow = Fault::SlowReply(milliseconds(1));
        fixture.store.next(Op::GetOrAdd, slow);
        fixture.call(&create, "b").await.unwrap();
        assert_ne!(tasks.take(), [caller]);
        gate.open();
        busy.await.unwrap();
        assert!(fixture.pipeline.shutdown().await);
    });
}

#[test]
fn p15_work_that_waits_is_a_task_of_its_own() {
    on_workers(1, async {
        let (fixture, tasks, gate) = (Fixture::new(), Tasks::default(), Gate::new());
        let busy = keep_busy(&fixture, &gate).await;
        let caller = tokio::task::try_id();
        let waits = noting(&fixture.runs, &tasks, 2);
        fixture.call(&waits, "a").await.unwrap();
        let noted = tasks.take();
        assert_eq!(noted[0], caller, "the first poll");
        assert_ne!(noted[1], caller, "the others");
        assert_eq!(noted[1], noted[2]);
        assert_eq!(fixture.runs.count(), 1);
        gate.open();
        busy.await.unwrap();
    });
}

#[tokio::test(start_paused = true)]
async fn p15_a_caller_that_leaves_after_the_first_poll_cuts_nothing() {
    let permit = Arc::new(());
    let taken = Arc::clone(&permit);
    let takes = Step(move |context: &InvocationContext| {
        context.extensions().insert(Arc::clone(&taken));
        Then::Continue
    });
    let fixture = Fixture::built(|builder| builder.middleware(Stage::Authorize, takes));
    let (others, gate) = (Gate::new(), Gate::new());
    let busy = keep_busy(&fixture, &others).await;
    let held = Arc::strong_count(&permit);

    let gated = gated_order(&fixture.runs, &gate);
    let mut call = Box::pin(fixture.call(&gated, "a"));
    assert!(futures_util::poll!(&mut call).is_pending());
    gate.reached().await;
    drop(call);
    assert_eq!(fixture.pipeline.running(), 2, "it goes on");
    assert_eq!(Arc::strong_count(&permit), held + 1, "with its permit");
    sleep(seconds(200)).await;
    assert_eq!(fixture.refusal(&gated, "a").await, IN_PROGRESS);
    gate.open();
    others.open();
    busy.await.unwrap();
    assert!(fixture.pipeline.shutdown().await);
    assert_eq!(
        Arc::strong_count(&permit),
        held - 1,
        "both permits are back"
    );
    let (order, context) = fixture.call(&gated, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!((order.id, fixture.runs.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn p15_work_that_never_ends_is_kept_until_it_may_run_no_longer() {
    let fixture = Fixture::configured(|settings| {
        settings.max_execution = seconds(600);
        settings.shutdown = seconds(1);
    });
    let gate = Gate::new();
    let busy = keep_busy(&fixture, &gate).await;
    let endless = operation("orders.create", &fixture.runs, |_, _, _| pending());
    let call = timeout(seconds(1), fixture.call(&endless, "a")).await;
    assert!(call.is_err(), "the caller gives up");
    sleep(seconds(590)).await;
    assert_eq!(fixture.refusal(&endless, "a").await, IN_PROGRESS);
    assert_eq!(fixture.runs.count(), 1);
    gate.open();
    busy.await.unwrap();
    assert!(!fixture.pipeline.shutdown().await);
    sleep(seconds(100)).await;
    assert_eq!(fixture.stored("a"), None, "its marker has run out");
}

#[tokio::test(start_paused = true)]
async fn p15_a_caller_that_leaves_while_the_outcome_is_recorded_loses_no_record() {
    let (fixture, gate, reply) = (Fixture::new(), Gate::new(), Gate::new());
    let busy = keep_busy(&fixture, &gate).await;
    let create = create_order(&fixture.runs);
    let held = Fault::HeldBefore(reply.clone());
    fixture.store.next(Op::TryReplace, held);
    let mut call = Box::pin(fixture.call(&create, "a"));
    assert!(futures_util::poll!(&mut call).is_pending());
    reply.reached().await;
    drop(call);
    reply.open();
    gate.open();
    busy.await.unwrap();
    assert!(fixture.pipeline.shutdown().await);
    let (_, context) = fixture.call(&create, "a").await.unwrap();
    assert!(was_replayed(&context));
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn p6_a_panic_in_the_first_poll_or_in_a_later_one_is_an_exception() {
    let (fixture, gate) = (Fixture::new(), Gate::new());
    let busy = keep_busy(&fixture, &gate).await;
    for waits in [0, 1] {
        let panics = operation("orders.create", &fixture.runs, move |_, _, _| async move {
            for _ in 0..waits {
                yield_now().await;
            }
            panic!("a handler panicked on purpose")
        });
        assert_eq!(fixture.refusal(&panics, "a").await, INTERNAL);
        settle().await;
        assert_eq!(fixture.stored("a"), None, "the marker is gone");
        assert_eq!(fixture.pipeline.running(), 1, "the other one");
    }
    fixture
        .call(&create_order(&fixture.runs), "a")
        .await
        .unwrap();
    assert_eq!(fixture.runs.count(), 3);

    // What settles may panic as well; then the work is done, and nothing runs twice.
    fixture.store.next(Op::TryReplace, Fault::Panics);
    let create = create_order(&fixture.runs);
    assert_eq!(fixture.refusal(&create, "b").await, INTERNAL);
    assert_eq!(fixture.refusal(&create, "b").await, IN_PROGRESS);
    gate.open();
    busy.await.unwrap();
    assert!(fixture.pipeline.shutdown().await);
}

/// Looked at from outside for four times as long as the marker lives by itself.
#[test]
fn p16_a_first_poll_that_blocks_its_thread_keeps_its_marker() {
    on_workers(2, async {
        let fixture = Fixture::configured(|settings| {
            settings.in_progress_time_to_live = TimeToLive::new(milliseconds(600)).unwrap();
        });
        let gate = Gate::new();
        let busy = keep_busy(&fixture, &gate).await;
        let (blocks, begins, go) = blocking(&fixture.runs, seconds(60));
        // Woken by its timer, on the worker that sees to all timers, while the other one sleeps.
        let (other, call) = (fixture.clone(), blocks.clone());
        let first = tokio::spawn(async move {
            sleep(milliseconds(50)).await;
            other.call(&call, "a").await.unwrap().0
        });
        // From a thread that wakes no worker: the one that is not blocked may have gone to sleep.
        let (store, key) = (Arc::clone(&fixture.store), "a");
        let watch = std::thread::spawn(move || {
            begins.recv_timeout(seconds(30)).unwrap();
            let before = store.count(Op::TryExtend);
            let mut is_kept = true;
            for _ in 0..8 {
                #[expect(clippy::disallowed_methods, reason = "no runtime is here to wait with")]
                std::thread::sleep(milliseconds(300));
                is_kept &= stored(&store, key);
            }
            go.send(()).unwrap();
            (is_kept, store.count(Op::TryExtend) - before)
        });
        let order = first.await.unwrap();
        let (is_kept, extended) = watch.join().unwrap();
        assert!(is_kept, "the marker stands there all the time");
        assert!(extended >= 8, "two markers, each at a third: {extended}");
        let (again, context) = fixture.call(&blocks, "a").await.unwrap();
        assert!(was_replayed(&context));
        assert_eq!((again.id, fixture.runs.count()), (order.id, 1));
        gate.open();
        busy.await.unwrap();
    });
}

fn stored(store: &crate::support::FaultyStore, key: &str) -> bool {
    use caching_abstractions::{CacheKey, CacheStore};
    use futures_util::FutureExt;
    let key = CacheKey::new(format!("idem:-:-:{key}")).unwrap();
    let found = store.inner().get(&key).now_or_never().unwrap();
    found.unwrap().is_some()
}

#[test]
fn p16_repeats_that_reach_another_worker_are_in_progress() {
    on_workers(2, async {
        let fixture = Fixture::configured(|settings| {
            settings.in_progress_time_to_live = TimeToLive::new(milliseconds(600)).unwrap();
        });
        let gate = Gate::new();
        let busy = keep_busy(&fixture, &gate).await;
        let (blocks, begins, go) = blocking(&fixture.runs, seconds(60));
        let first = start(&fixture, &blocks);
        begins.recv_timeout(seconds(30)).unwrap();
        for _ in 0..8 {
            sleep(milliseconds(200)).await;
            assert_eq!(fixture.refusal(&blocks, "a").await, IN_PROGRESS);
        }
        go.send(()).unwrap();
        first.await.unwrap();
        assert_eq!(fixture.runs.count(), 1);
        gate.open();
        busy.await.unwrap();
    });
}

/// With one worker nobody extends the marker, and nobody else runs either: the work is recorded in
/// the same poll.
#[test]
fn p16_a_repeat_that_waited_for_the_only_worker_is_replayed() {
    on_workers(1, async {
        let fixture = Fixture::configured(|settings| {
            settings.in_progress_time_to_live = TimeToLive::new(milliseconds(100)).unwrap();
        });
        let gate = Gate::new();
        let busy = keep_busy(&fixture, &gate).await;
        let (blocks, _begins, _go) = blocking(&fixture.runs, milliseconds(400));
        let (first, repeat) = (start(&fixture, &blocks), start(&fixture, &blocks));
        let (first, repeat) = (first.await.unwrap(), repeat.await.unwrap());
        assert_eq!((first.id, repeat.id, fixture.runs.count()), (1, 1, 1));
        gate.open();
        busy.await.unwrap();
    });
}

#[test]
fn p15_a_shutdown_waits_for_a_first_poll_and_for_what_came_after_one() {
    on_workers(2, async {
        let (fixture, gate) = (Fixture::new(), Gate::new());
        let busy = keep_busy(&fixture, &gate).await;
        let (blocks, begins, go) = blocking(&fixture.runs, seconds(60));
        let first = start(&fixture, &blocks);
        begins.recv_timeout(seconds(30)).unwrap();
        assert_eq!(fixture.pipeline.running(), 2);
        let pipeline = fixture.pipeline.clone();
        let shutdown = tokio::spawn(async move { pipeline.shutdown().await });
        gate.open();
        busy.await.unwrap();
        settle().await;
        assert!(!shutdown.is_finished(), "the first poll goes on");
        go.send(()).unwrap();
        assert!(shutdown.await.unwrap());
        first.await.unwrap();
        assert_eq!(fixture.pipeline.running(), 0);
    });
}
