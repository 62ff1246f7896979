//! The suite holds in real time on a store that answers a little later, as one over a socket does.

use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, KeyPrefix, LeaseToken, Result, SystemClock,
    TimeToLive, WakeHints,
};
use conformance::{CASES, Gap, Pace, ReferenceStore, RunningStore, Setup, StoreHarness, run};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;

/// All cases at the same time: they mostly sleep.
#[test]
fn the_suite_passes_in_real_time() {
    let (next, failing) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = CASES.get(next.fetch_add(1, Ordering::SeqCst)) {
            let body = case.body;
            if catch_unwind(|| run(&DistantHarness, body)).is_err() {
                failing.lock().push(case.name);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(work);
        }
    });
    let failing = failing.into_inner();
    assert!(failing.is_empty(), "these fail in real time: {failing:?}");
}

#[derive(Debug)]
struct DistantHarness;

#[async_trait]
impl StoreHarness for DistantHarness {
    fn gaps(&self) -> &'static [Gap] {
        &[Gap::Restart, Gap::ForeignValue, Gap::Outage, Gap::Clock]
    }

    fn pace(&self) -> Pace {
        Pace::networked()
    }

    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        let clock = Arc::new(SystemClock::new());
        let store = ReferenceStore::with_setup(clock, &setup);
        Ok(Box::new(DistantRunning(store)))
    }
}

struct DistantRunning(ReferenceStore);

#[async_trait]
impl RunningStore for DistantRunning {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        Arc::new(Distant(self.0.with_prefix(prefix)))
    }
}

/// A client whose requests travel for a millisecond, and whose answers do.
#[derive(Debug)]
struct Distant(ReferenceStore);

/// The time that a message takes.
async fn travel() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

macro_rules! distant {
    ($self:ident, $call:expr) => {{
        travel().await;
        let answer = $call.await;
        travel().await;
        answer
    }};
}

#[async_trait]
impl CacheStore for Distant {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        distant!(self, self.0.get(key))
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        distant!(self, self.0.get_many(keys))
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        distant!(self, self.0.set(key, value, options))
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        distant!(self, self.0.set_many(items))
    }

    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        distant!(self, self.0.try_add(key, value, options))
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        distant!(self, self.0.get_or_add(key, value, options))
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        distant!(self, self.0.try_replace(key, expected, value, options))
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        distant!(self, self.0.try_remove(key, expected))
    }

    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        distant!(self, self.0.try_extend(key, expected, time_to_live))
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        distant!(self, self.0.try_lease(key, token, time_to_live))
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        distant!(self, self.0.try_relay(key, token, new_token, time_to_live))
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        distant!(self, self.0.release(key, token))
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        let hints = distant!(self, self.0.watch(key))?;
        Ok(hints.then(|()| travel()).boxed())
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        distant!(self, self.0.remove(key))
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        distant!(self, self.0.remove_many(keys))
    }

    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        distant!(self, self.0.increment(key, delta, options))
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        distant!(self, self.0.time_to_live(key))
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        let listing = self.0.keys(prefix);
        stream::once(travel())
            .flat_map(move |()| stream::empty())
            .chain(listing)
            .boxed()
    }

    async fn ping(&self) -> Result<()> {
        distant!(self, self.0.ping())
    }
}
