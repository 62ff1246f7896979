//! The client process: the store and bare fred in turns, each with one connection for commands.

use std::sync::Arc;

use super::bare::Bare;
use super::measure::{Contender, Figure, Operation, TASKS, measure};
use super::ours::Ours;
use crate::Result;

/// One of the two, behind one face.
#[derive(Clone)]
pub(crate) enum Client {
    Bare(Arc<Bare>),
    Ours(Arc<Ours>),
}

pub(crate) const BARE: &str = "bare fred";
pub(crate) const OURS: &str = "RedisStore";

impl Contender for Client {
    fn name(&self) -> &'static str {
        match self {
            Self::Bare(_) => BARE,
            Self::Ours(_) => OURS,
        }
    }

    async fn apply(&self, operation: Operation, index: usize) -> bool {
        match self {
            Self::Bare(bare) => bare.apply(operation, index).await,
            Self::Ours(ours) => ours.apply(operation, index).await,
        }
    }
}

/// Measures everything once and prints the figures as one line of JSON.
pub(crate) fn run(port: u16) -> Result {
    // As a service has it: on one core, one worker.
    let runtime = tokio::runtime::Runtime::new()?;
    let figures = runtime.block_on(runtime.spawn(figures(port)))??;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

async fn figures(port: u16) -> Result<Vec<Figure>> {
    let bare = Client::Bare(Bare::connect(port).await?);
    let ours = Client::Ours(Ours::connect(port).await?);
    let mut figures = Vec::new();
    for tasks in TASKS {
        for operation in Operation::ON_ENTRIES {
            let both = [(bare.clone(), operation), (ours.clone(), operation)];
            figures.extend(measure(port, &both, tasks).await?);
        }
        let locks = [
            (bare.clone(), Operation::PlainLock),
            (bare.clone(), Operation::Lease),
            (ours.clone(), Operation::Lease),
            (ours.clone(), Operation::Lock),
        ];
        figures.extend(measure(port, &locks, tasks).await?);
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis_support::Server;

    const COMMANDS: [&str; 8] = [
        "get", "set", "evalsha", "eval", "del", "publish", "pexpire", "incr",
    ];

    /// What the server has executed, inside scripts as well.
    fn calls(server: &Server) -> [u64; COMMANDS.len()] {
        COMMANDS.map(|command| server.calls(command))
    }

    /// Does `operation` once, and gives what the server executed for it.
    async fn executed(
        server: &Server,
        client: &Client,
        operation: Operation,
    ) -> [u64; COMMANDS.len()] {
        let before = calls(server);
        assert!(
            client.apply(operation, 0).await,
            "{} {operation:?}",
            client.name()
        );
        let after = calls(server);
        std::array::from_fn(|index| after[index] - before[index])
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn both_have_the_server_do_the_same() {
        let server = Server::start();
        let bare = Client::Bare(Bare::connect(server.port()).await.unwrap());
        let ours = Client::Ours(Ours::connect(server.port()).await.unwrap());
        let locks = [Operation::Lease, Operation::Lock];
        for operation in Operation::ON_ENTRIES.into_iter().chain(locks) {
            let mut done = Vec::new();
            for client in [&bare, &ours] {
                if operation == Operation::Add || locks.contains(&operation) {
                    crate::redis::measure::flush(server.port()).unwrap();
                }
                done.push(executed(&server, client, operation).await);
            }
            assert_eq!(done[0], done[1], "{operation:?}: {COMMANDS:?}");
            assert!(done[0].iter().sum::<u64>() > 0, "{operation:?}");
        }
        assert!(bare.apply(Operation::PlainLock, 0).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_answer_that_is_not_the_expected_one_does_not_count() {
        let server = Server::start();
        let bare = Client::Bare(Bare::connect(server.port()).await.unwrap());
        let ours = Client::Ours(Ours::connect(server.port()).await.unwrap());
        for client in [&bare, &ours] {
            assert!(!client.apply(Operation::Get, 0).await);
            server
                .raw()
                .command(&["SET", "lock:orders:00000000", "another"]);
            assert!(!client.apply(Operation::Lease, 0).await);
            assert!(!client.apply(Operation::PlainLock, 0).await);
            let alone = [(client.clone(), Operation::Get)];
            assert!(measure(server.port(), &alone, 1).await.is_err());
        }
    }
}
