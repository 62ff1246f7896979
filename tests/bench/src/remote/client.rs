//! The client process: both transports of the store and the echo in turns, each with one
//! connection.

use std::sync::Arc;

use caching_remote::Transport;
use clap::Args;

use super::echo::Echo;
use super::measure::{Contender, Figure, Operation, TASKS, measure};
use super::ours::Ours;
use super::redis::Redis;
use super::server::Ports;
use crate::Result;

pub(crate) const ECHO: &str = "echo";
pub(crate) const SESSION: &str = "session";
pub(crate) const UNARY: &str = "unary";
pub(crate) const REDIS: &str = "Redis GET";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    ports: Ports,
    #[arg(long)]
    redis_port: Option<u16>,
}

/// Whoever is measured, behind one face.
#[derive(Clone)]
enum Client {
    Echo(Echo),
    Session(Arc<Ours>),
    Unary(Arc<Ours>),
    Redis(Arc<Redis>),
}

impl Contender for Client {
    fn name(&self) -> &'static str {
        match self {
            Self::Echo(_) => ECHO,
            Self::Session(_) => SESSION,
            Self::Unary(_) => UNARY,
            Self::Redis(_) => REDIS,
        }
    }

    async fn prepare(&mut self, operation: Operation) -> Result {
        match self {
            Self::Echo(_) | Self::Redis(_) => Ok(()),
            Self::Session(ours) | Self::Unary(ours) => ours.prepare(operation).await,
        }
    }

    async fn apply(&mut self, operation: Operation, index: usize) -> bool {
        match self {
            Self::Echo(echo) => echo.apply(operation).await,
            Self::Session(ours) | Self::Unary(ours) => ours.apply(operation, index).await,
            Self::Redis(redis) => operation == Operation::Get && redis.get(index).await,
        }
    }
}

/// Measures everything once and prints the figures as one line of JSON.
pub(crate) fn run(arguments: Arguments) -> Result {
    // As a service has it: on one core, one worker.
    let runtime = tokio::runtime::Runtime::new()?;
    let figures = runtime.block_on(runtime.spawn(figures(arguments)))??;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

async fn figures(arguments: Arguments) -> Result<Vec<Figure>> {
    let Ports {
        store_port,
        echo_port,
    } = arguments.ports;
    let echo = Client::Echo(Echo::connect(echo_port).await?);
    let session = Client::Session(Ours::connect(store_port, Transport::Session).await?);
    let unary = Client::Unary(Ours::connect(store_port, Transport::Unary).await?);
    let redis = match arguments.redis_port {
        Some(port) => Some(Client::Redis(Redis::connect(port).await?)),
        None => None,
    };
    let mut figures = Vec::new();
    for tasks in TASKS {
        for operation in [Operation::Get, Operation::GetStanding, Operation::Add] {
            let clients = [&echo, &session, &unary].into_iter();
            let redis = redis.iter().filter(|_| operation == Operation::Get);
            let all: Vec<_> = clients
                .chain(redis)
                .map(|client| (client.clone(), operation))
                .collect();
            figures.extend(measure(&all, tasks).await?);
        }
        let locks = [
            (echo.clone(), Operation::Lease),
            (session.clone(), Operation::Lease),
            (unary.clone(), Operation::Lease),
            (session.clone(), Operation::Lock),
            (unary.clone(), Operation::Lock),
        ];
        figures.extend(measure(&locks, tasks).await?);
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use caching_inmemory::InMemoryStore;
    use caching_remote::server::StoreServer;

    use super::*;
    use crate::process::free_port;
    use crate::remote::echo;

    /// All who can be measured, with servers that end with the test.
    async fn clients() -> [Client; 3] {
        let server = StoreServer::builder(Arc::new(InMemoryStore::new())).build();
        let server = server.unwrap().bind("127.0.0.1:0").await.unwrap();
        let store = server.local_address().port();
        tokio::spawn(server.run_until(std::future::pending()));
        let port = free_port().unwrap();
        tokio::spawn(async move { echo::serve(port).await });
        let mut echo = Echo::connect(port).await;
        while echo.is_err() {
            tokio::task::yield_now().await;
            echo = Echo::connect(port).await;
        }
        [
            Client::Echo(echo.unwrap()),
            Client::Session(Ours::connect(store, Transport::Session).await.unwrap()),
            Client::Unary(Ours::connect(store, Transport::Unary).await.unwrap()),
        ]
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn everybody_does_every_operation() {
        for mut client in clients().await {
            for operation in Operation::ALL {
                client.prepare(operation).await.unwrap();
                let done = client.apply(operation, 1).await;
                assert!(done, "{} {operation:?}", client.name());
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_answer_that_is_not_the_expected_one_does_not_count() {
        let [_, session, unary] = clients().await;
        for mut client in [session, unary] {
            client.prepare(Operation::Add).await.unwrap();
            assert!(!client.apply(Operation::Get, 0).await);
            assert!(!client.apply(Operation::GetStanding, 0).await);
            client.prepare(Operation::Get).await.unwrap();
            assert!(!client.apply(Operation::Add, 0).await);
        }
    }
}
