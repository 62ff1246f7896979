//! The store: each operation as one command, script or pipeline.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, CachingError, LeaseToken, Result,
    TimeToLive, WakeHints, hours,
};
use futures_util::stream::BoxStream;

use crate::error::{Attempt, Fault, Place};
use crate::inner::{Inner, place};
use crate::keyspace::Keyspace;
use crate::reply::{Reply, unexpected};
use crate::request::{Repeat, Request, Write};
use crate::scan;
use crate::script::Script;
use crate::wire::Wire;

/// A [`CacheStore`] on Redis or Valkey: one server, a Cluster, or a primary behind sentinels.
///
/// - Made by [`RedisStore::connect`], or by an assembly through
///   [`RedisProvider`](crate::RedisProvider).
/// - Clones share their connections.
/// - It belongs to the runtime it was made in.
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

/// A fencing number is kept for at least this long after its lease (S6).
const LEAST_RETENTION: Duration = hours(24);

impl RedisStore {
    pub(crate) fn new(wire: Wire, keyspace: Keyspace, default_time_to_live: TimeToLive) -> Self {
        Self(Arc::new(Inner::new(wire, keyspace, default_time_to_live)))
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("keyspace", &self.0.keyspace)
            .finish_non_exhaustive()
    }
}

/// For how long the number of a lease is kept from now, in milliseconds.
fn retention(life: TimeToLive) -> u64 {
    let after = life.as_duration().saturating_mul(2).max(LEAST_RETENTION);
    let whole = life.as_duration().saturating_add(after);
    u64::try_from(whole.as_millis()).unwrap_or(u64::MAX)
}

fn fencing_number(reply: Reply) -> Attempt<Option<u64>> {
    let Some(text) = reply.value()? else {
        return Ok(None);
    };
    let number = std::str::from_utf8(&text)
        .ok()
        .and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(unexpected)
}

/// Names where a fault happened.
fn at<'a>(operation: &'static str, key: &'a CacheKey) -> impl Fn(Fault) -> CachingError + 'a {
    move |fault| fault.at(place(operation, key))
}

#[async_trait]
impl CacheStore for RedisStore {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        let request = || Request::get(self.0.keyspace.stored(key));
        let reply = self.0.call(request, Repeat::Safely).await;
        let stored = reply.and_then(Reply::value).map_err(at("get", key))?;
        Ok(stored.map(|stored| self.0.read(key, stored)))
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        let request = |key| (key, Request::get(self.0.keyspace.stored(key)));
        let requests = keys.iter().map(request).collect();
        let replies = self
            .0
            .call_all("get_many", requests, Repeat::Safely)
            .await?;
        let read = |(reply, key): (Reply, &CacheKey)| {
            let stored = reply.value().map_err(at("get_many", key))?;
            Ok(stored.map(|stored| self.0.read(key, stored)))
        };
        replies.into_iter().zip(keys).map(read).collect()
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        let entry = self.0.entry(value, options);
        let request = || {
            let stored = self.0.keyspace.stored(key);
            Request::set(stored, entry.stored.clone(), entry.life, Write::Always)
        };
        let reply = self.0.write(request, Repeat::Never).await;
        reply.map(drop).map_err(at("set", key))
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        let request = |item: &'_ CacheItem| {
            self.0
                .set_request(&item.key, item.value.clone(), item.options, Write::Always)
        };
        let requests = items
            .iter()
            .map(|item| (&item.key, request(item)))
            .collect();
        let replies = self.0.call_all("set_many", requests, Repeat::Never).await;
        replies.map(drop)
    }

    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let added = self.0.try_add(key, value, options).await;
        added.map_err(at("try_add", key))
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        let stands = self.0.get_or_add(key, value, options).await;
        stands.map_err(at("get_or_add", key))
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let entry = self.0.entry(value, options);
        let request = || {
            Request::script(Script::Replace, [self.0.keyspace.stored(key)])
                .with(expected)
                .with(entry.stored.clone())
                .with_millis(entry.life)
        };
        let reply = self.0.call(request, Repeat::Never).await;
        reply
            .and_then(Reply::into_flag)
            .map_err(at("try_replace", key))
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        let request =
            || Request::script(Script::Remove, [self.0.keyspace.stored(key)]).with(expected);
        let reply = self.0.call(request, Repeat::Never).await;
        reply
            .and_then(Reply::into_flag)
            .map_err(at("try_remove", key))
    }

    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        let request = || {
            Request::script(Script::Extend, self.0.keyspace.fenced(key))
                .with(expected)
                .with_millis(time_to_live.as_millis())
                .with_millis(retention(time_to_live))
        };
        let reply = self.0.call(request, Repeat::Never).await;
        reply
            .and_then(Reply::into_flag)
            .map_err(at("try_extend", key))
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let request = || {
            let [stored, fence, token] = self.0.keyspace.lease(key, token);
            Request::script(Script::Lease, [stored, fence])
                .with(token)
                .with_millis(time_to_live.as_millis())
                .with_millis(retention(time_to_live))
        };
        let reply = self.0.write(request, Repeat::Safely).await;
        reply.and_then(fencing_number).map_err(at("try_lease", key))
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let request = || {
            let [stored, fence, token] = self.0.keyspace.lease(key, token);
            Request::script(Script::Relay, [stored, fence])
                .with(token)
                .with(new_token.as_bytes())
                .with_millis(time_to_live.as_millis())
                .with_millis(retention(time_to_live))
        };
        let reply = self.0.call(request, Repeat::Never).await;
        reply.and_then(fencing_number).map_err(at("try_relay", key))
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        let request = || {
            let [stored, token, channel] = self.0.keyspace.release(key, token);
            Request::script(Script::Release, [stored])
                .with(token)
                .with(channel)
        };
        let reply = self.0.call(request, Repeat::Never).await;
        reply.and_then(Reply::into_flag).map_err(at("release", key))
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        self.0.watch(key).await.map_err(at("watch", key))
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        let request = || Request::command("DEL", self.0.keyspace.stored(key));
        let reply = self.0.call(request, Repeat::Never).await;
        reply.and_then(Reply::into_flag).map_err(at("remove", key))
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        let request = |key| (key, Request::command("DEL", self.0.keyspace.stored(key)));
        let requests = keys.iter().map(request).collect();
        let replies = self
            .0
            .call_all("remove_many", requests, Repeat::Never)
            .await?;
        let done =
            |(reply, key): (Reply, &CacheKey)| reply.into_flag().map_err(at("remove_many", key));
        replies.into_iter().zip(keys).map(done).collect()
    }

    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        let entry = self.0.entry(delta.to_string().into(), options);
        let request = || {
            Request::script(Script::Increment, [self.0.keyspace.stored(key)])
                .with(delta)
                .with_millis(entry.life)
                .with(entry.stored.clone())
        };
        let reply = self.0.write(request, Repeat::Never).await;
        reply.and_then(Reply::number).map_err(at("increment", key))
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        self.0
            .time_to_live(key)
            .await
            .map_err(at("time_to_live", key))
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        scan::keys(Arc::clone(&self.0.wire), self.0.keyspace.clone(), prefix)
    }

    async fn ping(&self) -> Result<()> {
        let place = Place {
            operation: "ping",
            key: None,
        };
        self.0.ping().await.map_err(|fault| fault.at(place))
    }
}
