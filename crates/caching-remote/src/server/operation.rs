//! What each operation of the contract does to the store, however it arrived.

use std::sync::Arc;

use caching_abstractions::{CacheItem, CacheStore, CachingError, Result};
use prost::Message;

use crate::proto::{self, call, reply};
use crate::wire;

/// A request that one answer ends.
pub(super) trait Operation: Send + 'static {
    /// What it is answered with.
    type Answer: Message + Send + 'static;

    /// What errors call it.
    const NAME: &'static str;

    /// Whether it has to run to its end once it has begun.
    const MUTATES: bool = true;

    /// Does it.
    fn perform(
        self,
        store: Arc<dyn CacheStore>,
    ) -> impl Future<Output = Result<Self::Answer>> + Send + 'static;
}

/// The same with an error that names the operation.
pub(super) async fn perform<O: Operation>(
    operation: O,
    store: Arc<dyn CacheStore>,
) -> Result<O::Answer> {
    operation.perform(store).await.map_err(named::<O>)
}

fn named<O: Operation>(error: CachingError) -> CachingError {
    match error.operation() {
        Some(_) => error,
        None => error.with_operation(O::NAME),
    }
}

/// `Request => Answer, "name": |request, store| …` for each operation, and `read` before those
/// that change nothing.
macro_rules! operations {
    ($($request:ident => $answer:ident, $name:literal $(($mutates:literal))?:
        |$self:ident, $store:ident| $body:expr;)*) => {$(
        impl Operation for proto::$request {
            type Answer = proto::$answer;
            const NAME: &'static str = $name;
            $(const MUTATES: bool = $mutates;)?

            async fn perform($self, $store: Arc<dyn CacheStore>) -> Result<proto::$answer> {
                $body
            }
        }
    )*};
}

operations! {
    GetRequest => GetResponse, "get" (false): |self, store| {
        let key = wire::key(self.key)?;
        let value = store.get(&key).await?;
        Ok(proto::GetResponse { value })
    };
    GetManyRequest => GetManyResponse, "get_many" (false): |self, store| {
        let keys = wire::keys(self.keys)?;
        let values = store.get_many(&keys).await?;
        let entries = values.into_iter().map(|value| proto::GetResponse { value }).collect();
        Ok(proto::GetManyResponse { entries })
    };
    SetRequest => SetResponse, "set": |self, store| {
        let (key, options) = (wire::key(self.key)?, wire::options(self.expiration)?);
        store.set(&key, self.value, options).await?;
        Ok(proto::SetResponse {})
    };
    SetManyRequest => SetManyResponse, "set_many": |self, store| {
        let items: Result<Vec<CacheItem>> = self.items.into_iter().map(item).collect();
        store.set_many(&items?).await?;
        Ok(proto::SetManyResponse {})
    };
    TryAddRequest => TryAddResponse, "try_add": |self, store| {
        let (key, options) = (wire::key(self.key)?, wire::options(self.expiration)?);
        let added = store.try_add(&key, self.value, options).await?;
        Ok(proto::TryAddResponse { added })
    };
    GetOrAddRequest => GetOrAddResponse, "get_or_add": |self, store| {
        let (key, options) = (wire::key(self.key)?, wire::options(self.expiration)?);
        let value = store.get_or_add(&key, self.value, options).await?;
        Ok(proto::GetOrAddResponse { value })
    };
    TryReplaceRequest => TryReplaceResponse, "try_replace": |self, store| {
        let (key, options) = (wire::key(self.key)?, wire::options(self.expiration)?);
        let replaced = store.try_replace(&key, &self.expected, self.value, options).await?;
        Ok(proto::TryReplaceResponse { replaced })
    };
    TryRemoveRequest => TryRemoveResponse, "try_remove": |self, store| {
        let key = wire::key(self.key)?;
        let removed = store.try_remove(&key, &self.expected).await?;
        Ok(proto::TryRemoveResponse { removed })
    };
    TryExtendRequest => TryExtendResponse, "try_extend": |self, store| {
        let key = wire::key(self.key)?;
        let time_to_live = wire::time_to_live(self.time_to_live_milliseconds)?;
        let extended = store.try_extend(&key, &self.expected, time_to_live).await?;
        Ok(proto::TryExtendResponse { extended })
    };
    TryLeaseRequest => TryLeaseResponse, "try_lease": |self, store| {
        let (key, token) = (wire::key(self.key)?, wire::token(self.token)?);
        let time_to_live = wire::time_to_live(self.time_to_live_milliseconds)?;
        let fencing = store.try_lease(&key, &token, time_to_live).await?;
        Ok(proto::TryLeaseResponse { fencing })
    };
    TryRelayRequest => TryRelayResponse, "try_relay": |self, store| {
        let (key, token) = (wire::key(self.key)?, wire::token(self.token)?);
        let new_token = wire::token(self.new_token)?;
        let time_to_live = wire::time_to_live(self.time_to_live_milliseconds)?;
        let fencing = store.try_relay(&key, &token, &new_token, time_to_live).await?;
        Ok(proto::TryRelayResponse { fencing })
    };
    ReleaseRequest => ReleaseResponse, "release": |self, store| {
        let (key, token) = (wire::key(self.key)?, wire::token(self.token)?);
        let released = store.release(&key, &token).await?;
        Ok(proto::ReleaseResponse { released })
    };
    RemoveRequest => RemoveResponse, "remove": |self, store| {
        let key = wire::key(self.key)?;
        let removed = store.remove(&key).await?;
        Ok(proto::RemoveResponse { removed })
    };
    RemoveManyRequest => RemoveManyResponse, "remove_many": |self, store| {
        let keys = wire::keys(self.keys)?;
        let removed = store.remove_many(&keys).await?;
        Ok(proto::RemoveManyResponse { removed })
    };
    IncrementRequest => IncrementResponse, "increment": |self, store| {
        let (key, options) = (wire::key(self.key)?, wire::options(self.expiration)?);
        let number = store.increment(&key, self.delta, options).await?;
        Ok(proto::IncrementResponse { number })
    };
    TimeToLiveRequest => TimeToLiveResponse, "time_to_live" (false): |self, store| {
        let key = wire::key(self.key)?;
        let remaining = store.time_to_live(&key).await?;
        let microseconds = |left: std::time::Duration| {
            u64::try_from(left.as_micros()).unwrap_or(u64::MAX)
        };
        Ok(proto::TimeToLiveResponse { remaining_microseconds: remaining.map(microseconds) })
    };
    PingRequest => PingResponse, "ping" (false): |self, store| {
        let proto::PingRequest {} = self;
        store.ping().await?;
        Ok(proto::PingResponse {})
    };
}

fn item(item: proto::SetRequest) -> Result<CacheItem> {
    let (key, options) = (wire::key(item.key)?, wire::options(item.expiration)?);
    Ok(CacheItem::new(key, item.value, options))
}

/// What an operation of a session comes to: its result, whatever the kind.
pub(super) type Outcome = reply::Result;

/// Hands the request in `operation` to `with`, together with what makes a session's answer of its
/// own.
macro_rules! each_operation {
    ($operation:expr, $with:expr) => {
        each_operation!(@ $operation, $with, Get GetMany Set SetMany TryAdd GetOrAdd TryReplace
            TryRemove TryExtend TryLease TryRelay Release Remove RemoveMany Increment TimeToLive
            Ping)
    };
    (@ $operation:expr, $with:expr, $($kind:ident)*) => {
        match $operation {
            $(call::Operation::$kind(request) => $with(request, reply::Result::$kind),)*
        }
    };
}

/// An operation of a session as one kind of future.
pub(super) type Performing =
    std::pin::Pin<Box<dyn Future<Output = Result<Outcome>> + Send + 'static>>;

/// Does an operation of a session once it is polled.
pub(super) fn performing(operation: call::Operation, store: Arc<dyn CacheStore>) -> Performing {
    fn of<O: Operation>(
        request: O,
        outcome: fn(O::Answer) -> Outcome,
        store: Arc<dyn CacheStore>,
    ) -> Performing {
        Box::pin(async move { perform(request, store).await.map(outcome) })
    }
    each_operation!(operation, |request, outcome| of(request, outcome, store))
}
