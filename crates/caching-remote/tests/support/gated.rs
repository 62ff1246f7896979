//! A store whose operations wait until the test lets them go on, or panic.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "test code, of which each file uses a part"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, CachingError, LeaseToken, Result,
    TimeToLive, WakeHints,
};
use futures_util::stream::BoxStream;
use tokio::sync::Semaphore;

/// What a test knows of the store, and tells it.
#[derive(Debug)]
pub(crate) struct Gate {
    permits: Semaphore,
    begun: AtomicUsize,
    ended: AtomicUsize,
    is_away: AtomicBool,
}

impl Gate {
    /// Lets `count` operations go on.
    pub(crate) fn open(&self, count: usize) {
        self.permits.add_permits(count);
    }

    /// How many operations have begun, and how many have ended.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (
            self.begun.load(Ordering::SeqCst),
            self.ended.load(Ordering::SeqCst),
        )
    }

    /// Whether the store cannot be reached.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    /// Waits until that many operations have begun and ended.
    pub(crate) async fn reaches(&self, begun: usize, ended: usize) {
        let reached = async {
            while self.counts() != (begun, ended) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let reached = tokio::time::timeout(Duration::from_secs(20), reached).await;
        assert!(
            reached.is_ok(),
            "{:?}, not {:?}",
            self.counts(),
            (begun, ended)
        );
    }
}

/// A store behind a [`Gate`]: what changes something, and `get_many`, waits at it. The key `panic`
/// makes `get` and `set` panic.
#[derive(Debug)]
pub(crate) struct Gated {
    inner: Arc<dyn CacheStore>,
    gate: Arc<Gate>,
}

impl Gated {
    pub(crate) fn new(inner: Arc<dyn CacheStore>) -> (Arc<Self>, Arc<Gate>) {
        let gate = Arc::new(Gate {
            permits: Semaphore::new(0),
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            is_away: AtomicBool::new(false),
        });
        let store = Self {
            inner,
            gate: Arc::clone(&gate),
        };
        (Arc::new(store), gate)
    }

    async fn at_gate<T>(&self, operation: impl Future<Output = Result<T>>) -> Result<T> {
        self.gate.begun.fetch_add(1, Ordering::SeqCst);
        self.gate.permits.acquire().await.unwrap().forget();
        let answer = operation.await;
        self.gate.ended.fetch_add(1, Ordering::SeqCst);
        answer
    }
}

fn no_panic(key: &CacheKey) {
    assert_ne!(key.as_str(), "panic", "as the test wants it");
}

#[async_trait]
impl CacheStore for Gated {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        no_panic(key);
        self.inner.get(key).await
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        self.at_gate(self.inner.get_many(keys)).await
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        no_panic(key);
        self.at_gate(self.inner.set(key, value, options)).await
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        self.at_gate(self.inner.set_many(items)).await
    }

    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        self.at_gate(self.inner.try_add(key, value, options)).await
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        self.at_gate(self.inner.get_or_add(key, value, options))
            .await
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        self.at_gate(self.inner.try_replace(key, expected, value, options))
            .await
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        self.at_gate(self.inner.try_remove(key, expected)).await
    }

    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        self.at_gate(self.inner.try_extend(key, expected, time_to_live))
            .await
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        self.at_gate(self.inner.try_lease(key, token, time_to_live))
            .await
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let relay = self.inner.try_relay(key, token, new_token, time_to_live);
        self.at_gate(relay).await
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        self.inner.release(key, token).await
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        self.inner.watch(key).await
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        self.at_gate(self.inner.remove(key)).await
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        self.at_gate(self.inner.remove_many(keys)).await
    }

    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        self.at_gate(self.inner.increment(key, delta, options))
            .await
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        self.inner.time_to_live(key).await
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        self.inner.keys(prefix)
    }

    async fn ping(&self) -> Result<()> {
        if self.gate.is_away.load(Ordering::SeqCst) {
            return Err(CachingError::unavailable("away, as the test wants it"));
        }
        Ok(())
    }
}
