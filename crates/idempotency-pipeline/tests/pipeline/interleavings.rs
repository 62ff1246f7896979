//! Random callers, faults, cancellations and a crash: what holds in every interleaving.
//!
//! The store's clock stands still, so no marker and no record ever runs out. Then
//! - at most one execution per key is committed (P5, P6, P14, P15, P16, P20);
//! - every replay is the one outcome that was recorded (P8, P9).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{ManualClock, milliseconds};
use conformance::ReferenceStore;
use idempotency_pipeline::{
    BoxError, Commit, InvocationContext, InvocationError, Operation, Transaction,
    TransactionManager, was_replayed,
};
use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use crate::support::{Create, Fault, Fixture, Op, Order, out_of_stock};

/// How one execution goes.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Success,
    Failure,
    Error,
    Panic,
    RolledBack,
    /// Committed, and nobody learns it.
    UnknownDone,
    /// Not committed, and nobody learns it.
    UnknownUndone,
    /// Committed, and the driver panics.
    PanicInCommit,
}

/// One caller.
#[derive(Clone, Debug)]
struct Client {
    key: u8,
    starts: u64,
    gives_up: Option<u64>,
    works: u64,
    plan: Plan,
}

/// A whole story.
#[derive(Clone, Debug)]
struct Story {
    clients: Vec<Client>,
    faults: Vec<(Op, Fault)>,
    away: Option<(u64, u64)>,
    crashes: Option<u64>,
}

fn plan() -> impl Strategy<Value = Plan> {
    prop_oneof![
        4 => Just(Plan::Success),
        2 => Just(Plan::Failure),
        1 => Just(Plan::Error),
        1 => Just(Plan::Panic),
        1 => Just(Plan::RolledBack),
        1 => Just(Plan::UnknownDone),
        1 => Just(Plan::UnknownUndone),
        1 => Just(Plan::PanicInCommit),
    ]
}

fn client() -> impl Strategy<Value = Client> {
    let gives_up = prop_oneof![3 => Just(None), 1 => (0_u64..60).prop_map(Some)];
    (0_u8..2, 0_u64..60, gives_up, 0_u64..40, plan()).prop_map(
        |(key, starts, gives_up, works, plan)| Client {
            key,
            starts,
            gives_up,
            works,
            plan,
        },
    )
}

fn fault() -> impl Strategy<Value = (Op, Fault)> {
    let operation = prop_oneof![
        Just(Op::GetOrAdd),
        Just(Op::TryReplace),
        Just(Op::TryRemove),
        Just(Op::TryExtend),
    ];
    let fault = prop_oneof![
        Just(Fault::Lost),
        Just(Fault::NotSent),
        Just(Fault::ReplyLost),
        Just(Fault::AskedTwice),
        Just(Fault::Full),
        (1_u64..30).prop_map(|delay| Fault::SlowReply(milliseconds(delay))),
    ];
    (operation, fault)
}

fn story() -> impl Strategy<Value = Story> {
    let away = prop_oneof![2 => Just(None), 1 => (0_u64..80, 1_u64..80).prop_map(Some)];
    let crashes = prop_oneof![1 => Just(None), 1 => (0_u64..120).prop_map(Some)];
    let clients = prop::collection::vec(client(), 2..9);
    (
        clients,
        prop::collection::vec(fault(), 0..10),
        away,
        crashes,
    )
        .prop_map(|(clients, faults, away, crashes)| Story {
            clients,
            faults,
            away,
            crashes,
        })
}

/// What really happened, across crashes.
#[derive(Clone, Default)]
struct World(Arc<Mutex<Facts>>);

#[derive(Default)]
struct Facts {
    executions: usize,
    /// The executions that were committed, by key.
    committed: HashMap<u8, Vec<usize>>,
    /// What replays said, by key: the execution and whether it had succeeded.
    replayed: HashMap<u8, Vec<(usize, bool)>>,
}

impl World {
    fn commit(&self, key: u8, execution: usize) {
        self.0
            .lock()
            .unwrap()
            .committed
            .entry(key)
            .or_default()
            .push(execution);
    }

    fn assert_consistent(&self) {
        let facts = self.0.lock().unwrap();
        for (key, executions) in &facts.committed {
            assert!(
                executions.len() <= 1,
                "key {key}: {executions:?} are all committed"
            );
        }
        for (key, replays) in &facts.replayed {
            assert!(
                replays.windows(2).all(|two| two[0] == two[1]),
                "key {key}: {replays:?}"
            );
            let (execution, succeeded) = replays[0];
            let committed = facts
                .committed
                .get(key)
                .map(Vec::as_slice)
                .unwrap_or_default();
            match succeeded {
                true => assert_eq!(committed, [execution], "key {key}: replayed {replays:?}"),
                false => assert!(
                    committed.is_empty(),
                    "key {key}: {committed:?}, and {replays:?}"
                ),
            }
        }
    }
}

/// Which execution a call has become; the handler leaves it for the transaction.
#[derive(Clone, Copy)]
struct Execution(u8, usize, Plan);

struct Database(World);

#[async_trait]
impl TransactionManager for Database {
    async fn begin(
        &self,
        context: &InvocationContext,
    ) -> Result<Box<dyn Transaction>, InvocationError> {
        Ok(Box::new(Begun(self.0.clone(), context.clone())))
    }
}

struct Begun(World, InvocationContext);

#[async_trait]
impl Transaction for Begun {
    async fn commit(self: Box<Self>) -> Commit {
        let Execution(key, execution, plan) = self.1.extensions().take().unwrap();
        sleep(milliseconds(3)).await;
        match plan {
            Plan::RolledBack => return Commit::RolledBack("conflict".into()),
            Plan::UnknownUndone => return Commit::Unknown("reset".into()),
            _ => self.0.commit(key, execution),
        }
        sleep(milliseconds(3)).await;
        match plan {
            Plan::UnknownDone => Commit::Unknown("reset".into()),
            Plan::PanicInCommit => panic!("the driver panicked"),
            _ => Commit::Committed,
        }
    }

    async fn rollback(self: Box<Self>) -> Result<(), BoxError> {
        Ok(())
    }
}

fn order(world: &World, client: &Client) -> Operation<Create, Order> {
    let (world, client) = (world.clone(), client.clone());
    Operation::new("orders.create").handler(move |context: InvocationContext, request: Create| {
        let execution = {
            let mut facts = world.0.lock().unwrap();
            facts.executions += 1;
            facts.executions
        };
        let client = client.clone();
        context
            .extensions()
            .insert(Execution(client.key, execution, client.plan));
        async move {
            sleep(milliseconds(client.works)).await;
            match client.plan {
                Plan::Failure => Err(out_of_stock()
                    .with_parameter("run", execution.to_string())
                    .into()),
                Plan::Error => Err(std::io::Error::other("broken").into()),
                Plan::Panic => panic!("broken"),
                _ => Ok(Order {
                    id: execution,
                    name: request.name,
                }),
            }
        }
    })
}

/// Calls as `client` and notes what a replay says.
async fn act(fixture: &Fixture, world: &World, client: &Client) {
    let operation = order(world, client);
    sleep(milliseconds(client.starts)).await;
    let key = format!("key-{}", client.key);
    let context = crate::support::keyed(idempotency_pipeline::EntryKind::Typed, &key);
    let request = Create::new("Keyboard");
    let call = fixture.invoker.invoke_typed(&operation, context, &request);
    let patience = client
        .gives_up
        .map_or(Duration::from_secs(3600), milliseconds);
    let said = match timeout(patience, call).await {
        Ok(Ok((order, context))) if was_replayed(&context) => (order.id, true),
        // A failure that this call did not produce itself was recorded by another.
        Ok(Err(InvocationError::Failure(failure))) => {
            let run = failure.parameters().find(|(name, _)| *name == "run");
            (run.unwrap().1.parse().unwrap(), false)
        }
        _ => return,
    };
    world
        .0
        .lock()
        .unwrap()
        .replayed
        .entry(client.key)
        .or_default()
        .push(said);
}

/// One process: the clients act, and it ends by shutting down or by a crash.
fn process(store: &ReferenceStore, world: &World, story: &Story) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let database = Database(world.clone());
        let fixture = Fixture::on(
            store.clone(),
            |builder| builder.transaction(database),
            |_| {},
        );
        for (operation, fault) in &story.faults {
            fixture.store.next(*operation, fault.clone());
        }
        if let Some((from, length)) = story.away {
            let store = Arc::clone(&fixture.store);
            tokio::spawn(async move {
                sleep(milliseconds(from)).await;
                store.set_away(true);
                sleep(milliseconds(length)).await;
                store.set_away(false);
            });
        }
        let clients = futures_util::future::join_all(
            story
                .clients
                .iter()
                .map(|client| act(&fixture, world, client)),
        );
        match story.crashes {
            Some(moment) => drop(timeout(milliseconds(moment), clients).await),
            None => {
                clients.await;
                assert!(fixture.pipeline.shutdown().await);
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn p20_in_every_interleaving_one_execution_at_most_is_committed(
        before in story(),
        mut after in story(),
    ) {
        let store = ReferenceStore::with_clock(ManualClock::new());
        let world = World::default();
        process(&store, &world, &before);
        // Another process, started after the first has shut down or crashed; all is well in it.
        after.faults.clear();
        after.away = None;
        after.crashes = None;
        process(&store, &world, &after);
        world.assert_consistent();
    }
}
