//! The store: each operation as one call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, LeaseToken, Result, TimeToLive, WakeHints,
};
use futures_util::stream::BoxStream;

use crate::client::calls::Calls;
use crate::client::error::Attempt;
use crate::client::reply::{self, Answer};
use crate::client::request::{Kind, Request};
use crate::client::{batch, listing, wake};

/// A [`CacheStore`] behind a gRPC server.
///
/// - Made by [`RemoteStore::connect`], or by an assembly through
///   [`RemoteProvider`](crate::RemoteProvider).
/// - Clones share their connection.
/// - It belongs to the runtime it was made in.
#[derive(Clone)]
pub struct RemoteStore(Arc<Calls>);

impl RemoteStore {
    pub(crate) fn new(calls: Calls) -> Self {
        Self(Arc::new(calls))
    }

    /// Makes one call, and reads what was answered.
    async fn call<T>(
        &self,
        request: Request<'_>,
        read: impl FnOnce(Answer) -> Attempt<T>,
    ) -> Result<T> {
        let answer = self.0.call(&request).await;
        answer
            .and_then(read)
            .map_err(|fault| fault.at(request.kind.name()))
    }
}

impl fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl CacheStore for RemoteStore {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        self.call(Request::on(Kind::Get, key), reply::value).await
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        let values = batch::get_many(&self.0, keys).await;
        values.map_err(|fault| fault.at("get_many"))
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        let request = Request::write(Kind::Set, key, &value, options);
        self.call(request, reply::done).await
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        let written = batch::set_many(&self.0, items).await;
        written.map_err(|fault| fault.at("set_many"))
    }

    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let request = Request::write(Kind::TryAdd, key, &value, options);
        self.call(request, reply::flag).await
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        let request = Request::write(Kind::GetOrAdd, key, &value, options);
        self.call(request, reply::value).await
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let request = Request::try_replace(key, expected, &value, options);
        self.call(request, reply::flag).await
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        self.call(Request::try_remove(key, expected), reply::flag)
            .await
    }

    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        let request = Request::try_extend(key, expected, time_to_live);
        self.call(request, reply::flag).await
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let request = Request::try_lease(key, token, time_to_live);
        self.call(request, reply::fencing).await
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let request = Request::try_relay(key, token, new_token, time_to_live);
        self.call(request, reply::fencing).await
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        self.call(Request::release(key, token), reply::flag).await
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        let hints = wake::watch(Arc::clone(&self.0), key).await;
        hints.map_err(|fault| fault.at("watch"))
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        self.call(Request::on(Kind::Remove, key), reply::flag).await
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        let removed = batch::remove_many(&self.0, keys).await;
        removed.map_err(|fault| fault.at("remove_many"))
    }

    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        let request = Request::increment(key, delta, options);
        self.call(request, reply::number).await
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        let request = Request::on(Kind::TimeToLive, key);
        self.call(request, reply::remaining).await
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        listing::keys(Arc::clone(&self.0), prefix)
    }

    async fn ping(&self) -> Result<()> {
        self.call(Request::ping(), reply::done).await
    }
}
