mod instruments;

use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};

use super::{CacheItem, CacheStore, LeaseToken, WakeHints};
use crate::error::Result;
use crate::expiration::{CacheEntryOptions, TimeToLive};
use crate::key::CacheKey;
use instruments::{Instruments, Operation, Outcome, Timing};

/// A store that counts and times what is asked of another one, and changes nothing.
///
/// - `xihan_caching_store_operations_total` and `xihan_caching_store_operation_seconds`, both with
///   the labels `provider`, `operation` (the method's name) and `outcome`.
/// - Outcomes: `ok`; `miss` (none or `false`, and the value of somebody else for `get_or_add`);
///   `unavailable`, `full`, `conflict` and `error` for errors; `cancelled` for a dropped future.
/// - No label holds a key, a token or a value.
/// - `keys` is timed to the end of its stream, `watch` to the registration.
/// - Without a metrics recorder it reads no clock. A recorder that is installed later is found.
#[derive(Clone)]
pub struct MeteredStore {
    inner: Arc<dyn CacheStore>,
    instruments: Arc<Instruments>,
}

impl MeteredStore {
    /// Measures `inner` under the name of its provider.
    pub fn new(inner: Arc<dyn CacheStore>, provider: &'static str) -> Self {
        Self {
            inner,
            instruments: Arc::new(Instruments::new(provider)),
        }
    }

    /// The store that is measured.
    pub fn inner(&self) -> &Arc<dyn CacheStore> {
        &self.inner
    }

    async fn measure<T>(
        &self,
        operation: Operation,
        call: impl Future<Output = Result<T>>,
        is_hit: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        let timing = Timing::start(&*self.instruments, operation);
        let result = call.await;
        timing.finish(match &result {
            Ok(answer) if is_hit(answer) => Outcome::Ok,
            Ok(_) => Outcome::Miss,
            Err(error) => Outcome::of(error),
        });
        result
    }
}

impl fmt::Debug for MeteredStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MeteredStore").field(&self.inner).finish()
    }
}

/// An answer that is neither a hit nor a miss.
fn always<T>(_: &T) -> bool {
    true
}

#[async_trait]
impl CacheStore for MeteredStore {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        let call = self.inner.get(key);
        self.measure(Operation::Get, call, Option::is_some).await
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        let call = self.inner.get_many(keys);
        self.measure(Operation::GetMany, call, always).await
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        let call = self.inner.set(key, value, options);
        self.measure(Operation::Set, call, always).await
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        let call = self.inner.set_many(items);
        self.measure(Operation::SetMany, call, always).await
    }

    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let call = self.inner.try_add(key, value, options);
        self.measure(Operation::TryAdd, call, bool::clone).await
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        let call = self.inner.get_or_add(key, value, options);
        self.measure(Operation::GetOrAdd, call, Option::is_none)
            .await
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let call = self.inner.try_replace(key, expected, value, options);
        self.measure(Operation::TryReplace, call, bool::clone).await
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        let call = self.inner.try_remove(key, expected);
        self.measure(Operation::TryRemove, call, bool::clone).await
    }

    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        let call = self.inner.try_extend(key, expected, time_to_live);
        self.measure(Operation::TryExtend, call, bool::clone).await
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let call = self.inner.try_lease(key, token, time_to_live);
        self.measure(Operation::TryLease, call, Option::is_some)
            .await
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let call = self.inner.try_relay(key, token, new_token, time_to_live);
        self.measure(Operation::TryRelay, call, Option::is_some)
            .await
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        let call = self.inner.release(key, token);
        self.measure(Operation::Release, call, bool::clone).await
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        let call = self.inner.watch(key);
        self.measure(Operation::Watch, call, always).await
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        let call = self.inner.remove(key);
        self.measure(Operation::Remove, call, bool::clone).await
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        let call = self.inner.remove_many(keys);
        self.measure(Operation::RemoveMany, call, always).await
    }

    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        let call = self.inner.increment(key, delta, options);
        self.measure(Operation::Increment, call, always).await
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        let call = self.inner.time_to_live(key);
        self.measure(Operation::TimeToLive, call, Option::is_some)
            .await
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        MeteredKeys {
            timing: Some(Timing::start(
                Arc::clone(&self.instruments),
                Operation::Keys,
            )),
            inner: self.inner.keys(prefix),
        }
        .boxed()
    }

    async fn ping(&self) -> Result<()> {
        self.measure(Operation::Ping, self.inner.ping(), always)
            .await
    }
}

/// A listing whose time ends with its last key, or with its first error.
struct MeteredKeys<I: Deref<Target = Instruments>> {
    inner: BoxStream<'static, Result<CacheKey>>,
    timing: Option<Timing<I>>,
}

impl<I: Deref<Target = Instruments> + Unpin> Stream for MeteredKeys<I> {
    type Item = Result<CacheKey>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.inner.poll_next_unpin(context);
        let outcome = match &next {
            Poll::Ready(None) => Outcome::Ok,
            Poll::Ready(Some(Err(error))) => Outcome::of(error),
            Poll::Ready(Some(Ok(_))) | Poll::Pending => return next,
        };
        if let Some(timing) = self.timing.take() {
            timing.finish(outcome);
        }
        next
    }
}

#[cfg(test)]
mod tests;
