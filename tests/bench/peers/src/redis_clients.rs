//! The crates `redis` (one multiplexed connection) and `rslock` on a real Redis.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Script};
use rslock::LockManager;

use crate::measure::{
    COMPARE_AND_DELETE, Contender, ENTRY_MILLISECONDS, Figure, KEYS, LEASE_MILLISECONDS, Operation,
    Result, TASKS, TOKEN, VALUE, entry, measure, resource,
};

/// Measures everything once and prints the figures as one line of JSON.
pub(crate) async fn run(port: u16) -> Result<()> {
    // All in the worker, as our own client has it.
    let figures = tokio::spawn(figures(port)).await??;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

async fn figures(port: u16) -> Result<Vec<Figure>> {
    let url = format!("redis://127.0.0.1:{port}");
    let redis = Client::Redis(Arc::new(Redis::connect(&url).await?));
    let rslock = Client::Rslock(Arc::new(Rslock::new(&url)));
    let mut figures = Vec::new();
    for tasks in TASKS {
        for operation in Operation::ON_ENTRIES {
            figures.extend(measure(port, &[(redis.clone(), operation)], tasks).await?);
        }
        let locks = [&redis, &rslock].map(|client| (client.clone(), Operation::PlainLock));
        figures.extend(measure(port, &locks, tasks).await?);
    }
    Ok(figures)
}

#[derive(Clone)]
enum Client {
    Redis(Arc<Redis>),
    Rslock(Arc<Rslock>),
}

impl Contender for Client {
    fn name(&self) -> &'static str {
        match self {
            Self::Redis(_) => "redis crate",
            Self::Rslock(_) => "rslock",
        }
    }

    async fn apply(&self, operation: Operation, index: usize) -> bool {
        match self {
            Self::Redis(redis) => redis.apply(operation, index).await,
            Self::Rslock(rslock) => operation == Operation::PlainLock && rslock.cycle(index).await,
        }
    }
}

struct Redis {
    connection: MultiplexedConnection,
    entries: Vec<String>,
    locks: Vec<String>,
    compare_and_delete: Script,
}

impl Redis {
    async fn connect(url: &str) -> Result<Self> {
        let client = redis::Client::open(url)?;
        Ok(Self {
            connection: client.get_multiplexed_async_connection().await?,
            entries: (0..KEYS).map(entry).collect(),
            locks: (0..KEYS)
                .map(|index| format!("lock:{}", resource(index)))
                .collect(),
            compare_and_delete: Script::new(COMPARE_AND_DELETE),
        })
    }

    async fn apply(&self, operation: Operation, index: usize) -> bool {
        match operation {
            Operation::Set => self.set::<String>(index, &[]).await == Some("OK".to_owned()),
            Operation::Get => self.get(index).await,
            Operation::GetStanding => {
                let found = self.set::<Option<Vec<u8>>>(index, &["NX", "GET"]).await;
                matches!(found, Some(Some(_)))
            }
            Operation::Add => {
                let found = self.set::<Option<Vec<u8>>>(index, &["NX", "GET"]).await;
                found == Some(None)
            }
            Operation::PlainLock => self.lock(&self.locks[index]).await,
            // It has no fencing numbers.
            Operation::Lease | Operation::Lock => false,
        }
    }

    async fn get(&self, index: usize) -> bool {
        let mut command = redis::cmd("GET");
        command.arg(&self.entries[index]);
        let found = command.query_async(&mut self.connection.clone()).await;
        matches!(found, Ok(Some::<Vec<u8>>(_)))
    }

    /// What was answered, if it was no error.
    async fn set<T: FromRedisValue>(&self, index: usize, options: &[&str]) -> Option<T> {
        let mut command = redis::cmd("SET");
        command.arg(&self.entries[index]).arg(&VALUE[..]);
        command.arg("PX").arg(ENTRY_MILLISECONDS).arg(options);
        let answer = command.query_async(&mut self.connection.clone()).await;
        answer.ok()
    }

    async fn lock(&self, key: &str) -> bool {
        let mut connection = self.connection.clone();
        let mut set = redis::cmd("SET");
        set.arg(key).arg(TOKEN).arg("PX").arg(LEASE_MILLISECONDS);
        set.arg("NX");
        let taken: redis::RedisResult<Option<String>> = set.query_async(&mut connection).await;
        let mut release = self.compare_and_delete.key(key);
        release.arg(TOKEN);
        let released: redis::RedisResult<i64> = release.invoke_async(&mut connection).await;
        matches!(taken, Ok(Some(_))) && matches!(released, Ok(1))
    }
}

/// With its defaults, on one server.
struct Rslock {
    manager: LockManager,
    resources: Vec<String>,
}

impl Rslock {
    fn new(url: &str) -> Self {
        Self {
            manager: LockManager::new(vec![url]),
            resources: (0..KEYS).map(resource).collect(),
        }
    }

    /// Its unlocking does not say whether there was anything to unlock.
    async fn cycle(&self, index: usize) -> bool {
        let life = Duration::from_millis(LEASE_MILLISECONDS.into());
        let resource = self.resources[index].as_str();
        let Ok(lock) = self.manager.lock(resource, life).await else {
            return false;
        };
        self.manager.unlock(&lock).await;
        true
    }
}
