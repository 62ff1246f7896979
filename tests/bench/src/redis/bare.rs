//! The baseline: the same commands and scripts through one client of fred, nothing around it.

use std::sync::Arc;

use bytes::Bytes;
use fred::clients::Client;
use fred::interfaces::ClientLike;
use fred::types::config::{Config, ConnectionConfig, ServerConfig, TcpConfig};
use fred::types::{Builder, ClusterHash, CustomCommand, Resp3Frame, Value};

use super::measure::{
    COMPARE_AND_DELETE, ENTRY_MILLISECONDS, KEYS, LEASE_MILLISECONDS, Operation, TOKEN, VALUE,
    entry, resource,
};
use crate::Result;

const LEASE: &str = concat!(
    include_str!("../../../../crates/caching-redis/src/scripts/value.lua"),
    include_str!("../../../../crates/caching-redis/src/scripts/fence.lua"),
    include_str!("../../../../crates/caching-redis/src/scripts/take.lua"),
    include_str!("../../../../crates/caching-redis/src/scripts/lease.lua"),
);
const RELEASE: &str = concat!(
    include_str!("../../../../crates/caching-redis/src/scripts/value.lua"),
    include_str!("../../../../crates/caching-redis/src/scripts/release.lua"),
);
/// How long a fencing number is kept: a day longer than its lease.
const RETENTION_MILLISECONDS: u32 = LEASE_MILLISECONDS + 24 * 60 * 60 * 1000;

/// Everything that can be made before it is needed is.
pub(crate) struct Bare {
    client: Client,
    entries: Vec<Value>,
    locks: Vec<Lock>,
    value: Value,
    token: Value,
    lease: Value,
    release: Value,
    compare_and_delete: Value,
}

/// What is sent about one lock.
struct Lock {
    key: Value,
    fence: Value,
    channel: Value,
}

impl Lock {
    fn new(index: usize) -> Self {
        let key = format!("lock:{}", resource(index));
        Self {
            fence: bytes(format!("{{{key}}} F")),
            channel: bytes(format!("xihan:wake:0:{key}")),
            key: bytes(key),
        }
    }
}

fn bytes(text: impl Into<Bytes>) -> Value {
    Value::Bytes(text.into())
}

fn milliseconds(number: u32) -> Value {
    Value::Integer(number.into())
}

impl Bare {
    pub(crate) async fn connect(port: u16) -> Result<Arc<Self>> {
        let config = Config {
            server: ServerConfig::new_centralized("127.0.0.1", port),
            ..Config::default()
        };
        let mut builder = Builder::from_config(config);
        builder.set_connection_config(ConnectionConfig {
            tcp: TcpConfig {
                nodelay: Some(true),
                ..TcpConfig::default()
            },
            ..ConnectionConfig::default()
        });
        let client = builder.build()?;
        client.init().await?;
        Ok(Arc::new(Self {
            lease: load(&client, LEASE).await?,
            release: load(&client, RELEASE).await?,
            compare_and_delete: load(&client, COMPARE_AND_DELETE).await?,
            client,
            entries: (0..KEYS).map(|index| bytes(entry(index))).collect(),
            locks: (0..KEYS).map(Lock::new).collect(),
            value: bytes(VALUE.to_vec()),
            token: bytes(TOKEN),
        }))
    }

    pub(crate) async fn apply(&self, operation: Operation, index: usize) -> bool {
        match operation {
            Operation::Set => is_ok(&self.set(index, &[]).await),
            Operation::Get => is_bytes(&self.call("GET", vec![self.entries[index].clone()]).await),
            Operation::GetStanding => is_bytes(&self.set(index, &["NX", "GET"]).await),
            Operation::Add => matches!(self.set(index, &["NX", "GET"]).await, Resp3Frame::Null),
            Operation::PlainLock => self.plain_lock(&self.locks[index]).await,
            Operation::Lease | Operation::Lock => self.fenced_lock(&self.locks[index]).await,
        }
    }

    async fn set(&self, index: usize, options: &[&'static str]) -> Resp3Frame {
        let mut arguments = Vec::with_capacity(4 + options.len());
        arguments.extend([
            self.entries[index].clone(),
            self.value.clone(),
            Value::from_static_str("PX"),
            milliseconds(ENTRY_MILLISECONDS),
        ]);
        arguments.extend(options.iter().map(|text| Value::from_static_str(text)));
        self.call("SET", arguments).await
    }

    async fn plain_lock(&self, lock: &Lock) -> bool {
        let arguments = vec![
            lock.key.clone(),
            self.token.clone(),
            Value::from_static_str("PX"),
            milliseconds(LEASE_MILLISECONDS),
            Value::from_static_str("NX"),
        ];
        let taken = self.call("SET", arguments).await;
        let script = self.compare_and_delete.clone();
        let arguments = vec![script, 1.into(), lock.key.clone(), self.token.clone()];
        is_ok(&taken) && is_one(&self.call("EVALSHA", arguments).await)
    }

    async fn fenced_lock(&self, lock: &Lock) -> bool {
        let arguments = vec![
            self.lease.clone(),
            2.into(),
            lock.key.clone(),
            lock.fence.clone(),
            self.token.clone(),
            milliseconds(LEASE_MILLISECONDS),
            milliseconds(RETENTION_MILLISECONDS),
        ];
        let number = self.call("EVALSHA", arguments).await;
        let arguments = vec![
            self.release.clone(),
            1.into(),
            lock.key.clone(),
            self.token.clone(),
            lock.channel.clone(),
        ];
        is_bytes(&number) && is_one(&self.call("EVALSHA", arguments).await)
    }

    /// The answer; an error that fred gives as one that no operation expects.
    async fn call(&self, name: &'static str, arguments: Vec<Value>) -> Resp3Frame {
        let answer = self.client.custom_raw(command(name), arguments).await;
        answer.unwrap_or_else(|error| Resp3Frame::SimpleError {
            data: error.details().into(),
            attributes: None,
        })
    }
}

async fn load(client: &Client, script: &'static str) -> Result<Value> {
    let arguments = vec!["LOAD", script];
    Ok(client.custom(command("SCRIPT"), arguments).await?)
}

fn command(name: &'static str) -> CustomCommand {
    CustomCommand::new_static(name, ClusterHash::Random, false)
}

fn is_ok(answer: &Resp3Frame) -> bool {
    matches!(answer, Resp3Frame::SimpleString { data, .. } if data == "OK")
}

fn is_bytes(answer: &Resp3Frame) -> bool {
    matches!(answer, Resp3Frame::BlobString { data, .. } if !data.is_empty())
}

fn is_one(answer: &Resp3Frame) -> bool {
    matches!(answer, Resp3Frame::Number { data: 1, .. })
}
