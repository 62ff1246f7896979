//! A store whose answers can be spoilt, operation by operation.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, CachingError, LeaseToken, Result,
    TimeToLive, WakeHints,
};
use conformance::ReferenceStore;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// The operations that can be spoilt and are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    GetOrAdd,
    TryReplace,
    TryRemove,
    TryExtend,
    /// Everything else.
    Other,
}

/// What happens to one operation instead of the usual.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It never reaches the store, and the provider does not know that.
    Lost,
    /// It never reaches the store, and the provider knows.
    NotSent,
    /// It is applied, and its reply is lost.
    ReplyLost,
    /// It is applied, its reply is lost, and the provider asks again.
    AskedTwice,
    /// The store has no room.
    Full,
    /// The provider has a defect.
    Panics,
    /// It waits at the gate, then is applied.
    HeldBefore(Gate),
    /// It is applied, then waits at the gate.
    HeldAfter(Gate),
    /// It is applied, and its reply takes this long.
    SlowReply(Duration),
}

/// Where something waits until it is let through.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<(Semaphore, Semaphore)>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new((Semaphore::new(0), Semaphore::new(0))))
    }

    /// Waits at the gate; whoever comes after it was opened walks through.
    pub(crate) async fn pass(&self) {
        self.0.0.add_permits(1);
        self.0.1.acquire().await.unwrap().forget();
    }

    /// Completes once for each that has come to the gate.
    pub(crate) async fn reached(&self) {
        self.0.0.acquire().await.unwrap().forget();
    }

    /// Lets everybody through, now and later.
    pub(crate) fn open(&self) {
        self.0.1.add_permits(1 << 20);
    }
}

/// The reference store behind a script of faults; an operation without one in the script works.
pub(crate) struct FaultyStore {
    inner: ReferenceStore,
    script: Mutex<HashMap<Op, VecDeque<Fault>>>,
    counts: Mutex<HashMap<Op, usize>>,
    is_away: AtomicBool,
    is_full: AtomicBool,
}

impl FaultyStore {
    pub(crate) fn new(inner: ReferenceStore) -> Self {
        Self {
            inner,
            script: Mutex::default(),
            counts: Mutex::default(),
            is_away: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
        }
    }

    /// The store itself, without faults and without counting.
    pub(crate) fn inner(&self) -> &ReferenceStore {
        &self.inner
    }

    /// Puts `fault` at the end of the script of `operation`.
    pub(crate) fn next(&self, operation: Op, fault: Fault) {
        self.script
            .lock()
            .unwrap()
            .entry(operation)
            .or_default()
            .push_back(fault);
    }

    /// Makes every unscripted operation unavailable, or ends that.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    /// Makes every unscripted write that needs more room full, or ends that.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    /// How often `operation` was asked for.
    pub(crate) fn count(&self, operation: Op) -> usize {
        self.counts
            .lock()
            .unwrap()
            .get(&operation)
            .copied()
            .unwrap_or_default()
    }

    /// How many round trips there were in all.
    pub(crate) fn round_trips(&self) -> usize {
        self.counts.lock().unwrap().values().sum()
    }

    async fn needs_room(&self, room: Room<'_>) -> bool {
        match room {
            Room::More => true,
            Room::NoMore => false,
            Room::IfAbsent(key) => matches!(self.inner.time_to_live(key).await, Ok(None)),
        }
    }

    async fn perform<'a, T>(
        &'a self,
        operation: Op,
        room: Room<'_>,
        apply: impl Fn() -> BoxFuture<'a, Result<T>> + Send,
    ) -> Result<T> {
        *self.counts.lock().unwrap().entry(operation).or_default() += 1;
        let fault = self
            .script
            .lock()
            .unwrap()
            .get_mut(&operation)
            .and_then(VecDeque::pop_front);
        let away = || CachingError::unavailable("the store is away");
        match fault {
            None if self.is_away.load(Ordering::SeqCst) => Err(away()),
            None if self.is_full.load(Ordering::SeqCst) && self.needs_room(room).await => {
                Err(full())
            }
            None => apply().await,
            Some(Fault::Lost) => Err(away()),
            Some(Fault::NotSent) => Err(away().certainly_not_sent()),
            Some(Fault::ReplyLost) => apply().await.and_then(|_| Err(away())),
            Some(Fault::AskedTwice) => {
                apply().await?;
                apply().await
            }
            Some(Fault::Full) => Err(full()),
            Some(Fault::Panics) => panic!("the provider panicked on purpose"),
            Some(Fault::HeldBefore(gate)) => {
                gate.pass().await;
                apply().await
            }
            Some(Fault::HeldAfter(gate)) => {
                let answer = apply().await;
                gate.pass().await;
                answer
            }
            Some(Fault::SlowReply(delay)) => {
                let answer = apply().await;
                sleep(delay).await;
                answer
            }
        }
    }
}

/// Whether an operation takes room that it does not hold yet.
#[derive(Clone, Copy)]
enum Room<'a> {
    More,
    NoMore,
    /// It does if this key is absent.
    IfAbsent(&'a CacheKey),
}

fn full() -> CachingError {
    CachingError::store_full("the store is full")
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStore")
    }
}

#[async_trait]
impl CacheStore for FaultyStore {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        self.perform(Op::Other, Room::NoMore, || self.inner.get(key))
            .await
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        self.perform(Op::Other, Room::NoMore, || self.inner.get_many(keys))
            .await
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        let set = || self.inner.set(key, value.clone(), options);
        self.perform(Op::Other, Room::More, set).await
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        self.perform(Op::Other, Room::More, || self.inner.set_many(items))
            .await
    }

    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let add = || self.inner.try_add(key, value.clone(), options);
        self.perform(Op::Other, Room::IfAbsent(key), add).await
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        let add = || self.inner.get_or_add(key, value.clone(), options);
        self.perform(Op::GetOrAdd, Room::IfAbsent(key), add).await
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let room = if value.len() > expected.len() {
            Room::More
        } else {
            Room::NoMore
        };
        let replace = || {
            self.inner
                .try_replace(key, expected, value.clone(), options)
        };
        self.perform(Op::TryReplace, room, replace).await
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        let remove = || self.inner.try_remove(key, expected);
        self.perform(Op::TryRemove, Room::NoMore, remove).await
    }

    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        let extend = || self.inner.try_extend(key, expected, time_to_live);
        self.perform(Op::TryExtend, Room::NoMore, extend).await
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let lease = || self.inner.try_lease(key, token, time_to_live);
        self.perform(Op::Other, Room::More, lease).await
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let relay = || self.inner.try_relay(key, token, new_token, time_to_live);
        self.perform(Op::Other, Room::NoMore, relay).await
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        self.perform(Op::Other, Room::NoMore, || self.inner.release(key, token))
            .await
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        self.perform(Op::Other, Room::NoMore, || self.inner.watch(key))
            .await
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        self.perform(Op::Other, Room::NoMore, || self.inner.remove(key))
            .await
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        self.perform(Op::Other, Room::NoMore, || self.inner.remove_many(keys))
            .await
    }

    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        let increment = || self.inner.increment(key, delta, options);
        self.perform(Op::Other, Room::More, increment).await
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        self.perform(Op::Other, Room::NoMore, || self.inner.time_to_live(key))
            .await
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        self.inner.keys(prefix)
    }

    async fn ping(&self) -> Result<()> {
        self.perform(Op::Other, Room::NoMore, || self.inner.ping())
            .await
    }
}
