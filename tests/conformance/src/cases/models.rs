//! Random operations, compared with the [`ReferenceStore`] as the model (S1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use caching_abstractions::{ManualClock, TimeToLive, hours};
use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};
use tokio::runtime::Handle;
use tokio::sync::Barrier;

use crate::harness::{Gap, Setup, StoreHarness};
use crate::history::{Moments, is_linearizable};
use crate::operation::{KEYS, Life, Operation, Outcome, rank_fencing_numbers};
use crate::reference::ReferenceStore;
use crate::scene::{Client, Scene};

/// What is written: numbers, texts that look like numbers, and nothing.
const VALUES: [&str; 6] = ["", "0", "5", "007", "-9223372036854775808", "x"];
/// Tokens are never written by anything but leases.
const TOKENS: [&str; 2] = ["token-1", "token-2"];

/// What is listed.
const PREFIXES: [&str; 5] = ["", "a", "a*", "ab", "b"];

/// The lifetimes that a run works with.
#[derive(Clone)]
struct Lives {
    times: Vec<Duration>,
    /// None where the store's clock cannot be moved.
    passing: Option<Vec<Duration>>,
}

impl Lives {
    fn of(harness: &dyn StoreHarness, scene: &Scene) -> Self {
        if harness.gaps().contains(&Gap::Clock) {
            let times = vec![hours(1), hours(20)];
            return Self {
                times,
                passing: None,
            };
        }
        let ticks = |counts: &[u32]| counts.iter().map(|&count| scene.ticks(count)).collect();
        Self {
            times: ticks(&[1, 3, 10]),
            passing: Some(ticks(&[1, 2, 5])),
        }
    }

    fn time(&self) -> BoxedStrategy<Duration> {
        prop::sample::select(self.times.clone()).boxed()
    }

    fn life(&self) -> BoxedStrategy<Life> {
        prop_oneof![
            Just(Life::Default),
            self.time().prop_map(Life::Lasting),
            self.time().prop_map(Life::Sliding),
        ]
        .boxed()
    }
}

/// Something that is compared with what stands there.
fn expected() -> BoxedStrategy<&'static str> {
    prop_oneof![
        prop::sample::select(&VALUES[..]),
        prop::sample::select(&TOKENS[..])
    ]
    .boxed()
}

/// Operations on one key, from those below `keys`, that take no account of time.
fn on_one_key(keys: u8, lives: &Lives) -> BoxedStrategy<Operation> {
    let k = || 0..keys;
    let value = || prop::sample::select(&VALUES[..]);
    let own = || prop::sample::select(&TOKENS[..]);
    let delta = prop_oneof![-3_i64..=3, Just(i64::MAX), Just(i64::MIN)];
    let (time, life) = (|| lives.time(), || lives.life());
    prop_oneof![
        4 => k().prop_map(Operation::Get),
        2 => (k(), value(), life()).prop_map(|(k, v, l)| Operation::Set(k, v, l)),
        3 => (k(), value(), life()).prop_map(|(k, v, l)| Operation::TryAdd(k, v, l)),
        2 => (k(), value(), life()).prop_map(|(k, v, l)| Operation::GetOrAdd(k, v, l)),
        2 => (k(), expected(), value(), life())
            .prop_map(|(k, e, v, l)| Operation::TryReplace(k, e, v, l)),
        2 => (k(), expected()).prop_map(|(k, e)| Operation::TryRemove(k, e)),
        2 => (k(), expected(), time()).prop_map(|(k, e, t)| Operation::TryExtend(k, e, t)),
        4 => (k(), own(), time()).prop_map(|(k, o, t)| Operation::TryLease(k, o, t)),
        3 => (k(), own(), own(), time())
            .prop_map(|(k, o, n, t)| Operation::TryRelay(k, o, n, t)),
        3 => (k(), own()).prop_map(|(k, o)| Operation::Release(k, o)),
        2 => k().prop_map(Operation::Remove),
        3 => (k(), delta, life()).prop_map(|(k, d, l)| Operation::Increment(k, d, l)),
    ]
    .boxed()
}

/// Every operation on every key, and time that passes.
fn anything(lives: &Lives) -> BoxedStrategy<Operation> {
    let keys = u8::try_from(KEYS.len()).unwrap_or(u8::MAX);
    let some = move || prop::collection::vec(0..keys, 0..4);
    let item = (0..keys, prop::sample::select(&VALUES[..]), lives.life());
    let pass = match &lives.passing {
        Some(times) => prop::sample::select(times.clone())
            .prop_map(Operation::Pass)
            .boxed(),
        None => Just(Operation::Pass(Duration::ZERO)).boxed(),
    };
    prop_oneof![
        30 => on_one_key(keys, lives),
        2 => some().prop_map(Operation::GetMany),
        2 => prop::collection::vec(item, 0..4).prop_map(Operation::SetMany),
        2 => some().prop_map(Operation::RemoveMany),
        3 => (0..keys).prop_map(Operation::TimeToLive),
        2 => prop::sample::select(&PREFIXES[..]).prop_map(Operation::Keys),
        6 => pass,
    ]
    .boxed()
}

/// The model of a store, and the clock that goes with the store's own.
fn model(harness: &dyn StoreHarness) -> (ReferenceStore, ManualClock) {
    let setup = Setup {
        default_time_to_live: TimeToLive::new(harness.default_time_to_live()).ok(),
        ..Setup::default()
    };
    let clock = ManualClock::new();
    (
        ReferenceStore::with_setup(Arc::new(clock.clone()), &setup),
        clock,
    )
}

/// Runs `operations` on the store and on the model, and looks at everything in the end.
async fn both(
    scene: &Scene,
    store: &Client,
    model: (ReferenceStore, ManualClock),
    area: &str,
    operations: &[Operation],
) -> Vec<(Operation, Outcome, Outcome)> {
    let (model, clock) = model;
    let keys = u8::try_from(KEYS.len()).unwrap_or(u8::MAX);
    let in_the_end = [Operation::Keys("")]
        .into_iter()
        .chain((0..keys).map(Operation::TimeToLive))
        .chain((0..keys).map(Operation::Get));
    let mut outcomes = Vec::new();
    for operation in operations.iter().cloned().chain(in_the_end) {
        if let Operation::Pass(time) = operation {
            scene.pass_time(time).await;
            clock.advance(time);
            continue;
        }
        let found = operation.run(&**store, area).await;
        let right = operation.run(&model, area).await;
        outcomes.push((operation, found, right));
    }
    rank_fencing_numbers(outcomes.iter_mut().map(|(_, found, _)| found));
    rank_fencing_numbers(outcomes.iter_mut().map(|(_, _, right)| right));
    outcomes
}

/// Two answers are alike if they are equal, but for how long a call takes.
fn alike(found: &Outcome, right: &Outcome, tolerance: Duration) -> bool {
    match (found, right) {
        (Outcome::Left(Some(found)), Outcome::Left(Some(right))) => {
            found.abs_diff(*right) <= tolerance
        }
        _ => found == right,
    }
}

pub async fn s1_random_operations_are_answered_as_by_the_model(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    let lives = Lives::of(harness, &scene);
    // In real time each call takes its time.
    let (runs, tolerance) = match lives.passing {
        Some(_) => (256, Duration::from_millis(1)),
        None => (64, scene.ticks(20)),
    };
    let run = AtomicU64::new(0);
    explore(
        runs,
        prop::collection::vec(anything(&lives), 1..40),
        async |operations: Vec<Operation>| {
            let area = format!("{}:", run.fetch_add(1, Ordering::Relaxed));
            let outcomes = both(&scene, &store, model(harness), &area, &operations).await;
            for (operation, found, right) in outcomes {
                prop_assert!(
                    alike(&found, &right, tolerance),
                    "{operation:?} answers {found:?} where {right:?} is right"
                );
            }
            Ok(())
        },
    );
}

/// Calls `test` with `cases` random values, and shows the smallest that fails.
#[expect(
    clippy::disallowed_methods,
    reason = "a case runs on a runtime with several threads and has one of them to itself"
)]
fn explore<S: Strategy>(cases: u32, strategy: S, test: impl AsyncFn(S::Value) -> TestCaseResult) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new(config);
    let wait = |value| Handle::current().block_on(test(value));
    let explored = tokio::task::block_in_place(|| runner.run(&strategy, wait));
    if let Err(failure) = explored {
        panic!("{failure}");
    }
}

pub async fn s1_concurrent_operations_are_linearizable(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = [
        scene.client().await,
        scene.client().await,
        scene.client().await,
    ];
    let lives = Lives {
        times: vec![hours(1)],
        passing: None,
    };
    let run = AtomicU64::new(0);
    let one = prop::collection::vec(on_one_key(1, &lives), 1..5);
    let each = [one.clone(), one.clone(), one];
    explore(256, each, async |operations: [Vec<Operation>; 3]| {
        let area = format!("{}:", run.fetch_add(1, Ordering::Relaxed));
        let history = together(&clients, &area, operations).await;
        prop_assert!(is_linearizable(&history), "no order explains {history:#?}");
        Ok(())
    });
}

/// Lets each client run its operations, all at the same time, and gives what they saw.
async fn together(
    clients: &[Client; 3],
    area: &str,
    operations: [Vec<Operation>; 3],
) -> Vec<crate::history::Call> {
    let (moments, barrier) = (Arc::new(Moments::default()), Arc::new(Barrier::new(3)));
    let tasks = clients.iter().zip(operations).map(|(client, operations)| {
        let (client, area) = (client.clone(), area.to_owned());
        let (moments, barrier) = (moments.clone(), barrier.clone());
        tokio::spawn(async move {
            barrier.wait().await;
            let mut calls = Vec::new();
            for operation in &operations {
                calls.push(moments.call(&*client, &area, operation).await);
            }
            calls
        })
    });
    let seen = join_all(tasks).await.into_iter();
    seen.flat_map(|calls| calls.unwrap()).collect()
}
