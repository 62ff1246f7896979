//! The baseline: the same commands and scripts through one client of fred, nothing around it.
//!
//! Plain commands go through the functions that fred has for them, as its users write it.

use std::sync::Arc;

use bytes::Bytes;
use fred::clients::Client;
use fred::error::Error;
use fred::interfaces::{ClientLike, KeysInterface};
use fred::types::config::{Config, ConnectionConfig, ServerConfig, TcpConfig};
use fred::types::{
    Builder, ClusterHash, CustomCommand, Expiration, Key, Resp3Frame, SetOptions, Value,
};

use super::measure::{
    COMPARE_AND_DELETE, ENTRY_MILLISECONDS, KEYS, LEASE_MILLISECONDS, Operation, TOKEN, VALUE,
    entry, resource,
};

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
    entries: Vec<Key>,
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
    pub(crate) async fn connect(port: u16) -> crate::Result<Arc<Self>> {
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
            entries: (0..KEYS).map(|index| entry(index).into()).collect(),
            locks: (0..KEYS).map(Lock::new).collect(),
            value: bytes(VALUE.to_vec()),
            token: bytes(TOKEN),
        }))
    }

    pub(crate) async fn apply(&self, operation: Operation, index: usize) -> bool {
        match operation {
            Operation::Set => self
                .set(index, None)
                .await
                .is_ok_and(|answer| answer == ok()),
            Operation::Get => {
                let found: Result<Value, _> = self.client.get(self.entries[index].clone()).await;
                found.is_ok_and(|found| is_value(&found))
            }
            Operation::GetStanding => {
                let stands = self.set(index, Some(SetOptions::NX)).await;
                stands.is_ok_and(|stands| is_value(&stands))
            }
            Operation::Add => {
                let stands = self.set(index, Some(SetOptions::NX)).await;
                stands.is_ok_and(|stands| stands == Value::Null)
            }
            Operation::PlainLock => self.plain_lock(&self.locks[index]).await,
            Operation::Lease | Operation::Lock => self.fenced_lock(&self.locks[index]).await,
        }
    }

    /// `SET`; with an option it also asks for what stands there.
    async fn set(&self, index: usize, when: Option<SetOptions>) -> Result<Value, Error> {
        let (key, value) = (self.entries[index].clone(), self.value.clone());
        let px = Some(Expiration::PX(ENTRY_MILLISECONDS.into()));
        let get = when.is_some();
        self.client.set(key, value, px, when, get).await
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

async fn load(client: &Client, script: &'static str) -> crate::Result<Value> {
    let arguments = vec!["LOAD", script];
    Ok(client.custom(command("SCRIPT"), arguments).await?)
}

fn command(name: &'static str) -> CustomCommand {
    CustomCommand::new_static(name, ClusterHash::Random, false)
}

fn is_ok(answer: &Resp3Frame) -> bool {
    matches!(answer, Resp3Frame::SimpleString { data, .. } if data == "OK")
}

fn ok() -> Value {
    Value::from_static_str("OK")
}

fn is_value(answer: &Value) -> bool {
    answer.as_bytes().is_some_and(|value| !value.is_empty())
}

fn is_bytes(answer: &Resp3Frame) -> bool {
    matches!(answer, Resp3Frame::BlobString { data, .. } if !data.is_empty())
}

fn is_one(answer: &Resp3Frame) -> bool {
    matches!(answer, Resp3Frame::Number { data: 1, .. })
}
