use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::error::{CachingError, Result};
use crate::expiration::{CacheEntryOptions, TimeToLive};
use crate::key::CacheKey;
use crate::store::{CacheItem, CacheStore, LeaseToken, WakeHints};

/// The operations that the lock uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    Lease,
    Extend,
    Release,
    Watch,
}

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// The request certainly never left.
    NotSent,
    /// It is lost on its way.
    FailBefore,
    /// It is applied, and the reply is lost.
    FailAfter,
    /// It is lost, and nobody says so.
    HangBefore,
    /// It is applied, and the reply never comes.
    HangAfter,
    /// It takes this long to arrive.
    SlowBefore(Duration),
    /// It is applied at once, and the reply takes this long.
    SlowAfter(Duration),
    /// The caller never hears of it, and it is applied this much later.
    Overtaken(Duration),
    /// The store is full.
    Full,
    /// The key holds a value of another kind.
    WrongKind,
}

/// How the stream of hints behaves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Hints {
    #[default]
    Honest,
    /// It ends before its first hint.
    Ended,
    /// It hints without end.
    Flood,
}

/// A small store whose answers follow a script.
#[derive(Debug, Default)]
pub(super) struct FaultyStore {
    pub(super) memory: Arc<Memory>,
    script: Mutex<Script>,
}

#[derive(Debug, Default)]
struct Script {
    next: HashMap<Op, VecDeque<Option<Fault>>>,
    always: HashMap<Op, Fault>,
    asked: Vec<(Op, Instant)>,
    hints: Hints,
}

impl FaultyStore {
    /// The next unscripted request of `op` meets `fault`.
    pub(super) fn next(&self, op: Op, fault: impl Into<Option<Fault>>) {
        let mut script = self.script.lock();
        script.next.entry(op).or_default().push_back(fault.into());
    }

    /// Every further request of `op` meets `fault`, until it is told otherwise.
    pub(super) fn always(&self, op: Op, fault: impl Into<Option<Fault>>) {
        let mut script = self.script.lock();
        match fault.into() {
            Some(fault) => script.always.insert(op, fault),
            None => script.always.remove(&op),
        };
    }

    pub(super) fn hints(&self, hints: Hints) {
        self.script.lock().hints = hints;
    }

    /// How many requests of `op` there were.
    pub(super) fn count(&self, op: Op) -> usize {
        self.times(op).len()
    }

    /// When each request of `op` came.
    pub(super) fn times(&self, op: Op) -> Vec<Instant> {
        let script = self.script.lock();
        let of_op = script.asked.iter().filter(|(asked, _)| *asked == op);
        of_op.map(|(_, when)| *when).collect()
    }

    fn take(&self, op: Op) -> Option<Fault> {
        let mut script = self.script.lock();
        script.asked.push((op, Instant::now()));
        if let Some(scripted) = script.next.get_mut(&op).and_then(VecDeque::pop_front) {
            return scripted;
        }
        script.always.get(&op).copied()
    }

    async fn ask<T, W>(&self, op: Op, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T>> + Send + 'static,
    {
        let Some(fault) = self.take(op) else {
            return work.await;
        };
        match fault {
            Fault::NotSent => Err(CachingError::unavailable("not sent").certainly_not_sent()),
            Fault::FailBefore => Err(CachingError::unavailable("request lost")),
            Fault::FailAfter => {
                work.await?;
                Err(CachingError::unavailable("reply lost"))
            }
            Fault::HangBefore => pending().await,
            Fault::HangAfter => {
                work.await?;
                pending().await
            }
            Fault::SlowBefore(delay) => {
                sleep(delay).await;
                work.await
            }
            Fault::SlowAfter(delay) => {
                let answer = work.await;
                sleep(delay).await;
                answer
            }
            Fault::Overtaken(delay) => {
                tokio::spawn(async move {
                    sleep(delay).await;
                    work.await
                });
                pending().await
            }
            Fault::Full => Err(CachingError::store_full("no room")),
            Fault::WrongKind => Err(CachingError::wrong_kind("k", "a list")),
        }
    }
}

/// The entries, without any fault.
#[derive(Default)]
pub(super) struct Memory(Mutex<State>);

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    entries: HashMap<CacheKey, (Bytes, Instant)>,
    fences: HashMap<CacheKey, u64>,
    releases: HashMap<CacheKey, watch::Sender<()>>,
}

impl Memory {
    /// What stands at `key` now.
    pub(super) fn get(&self, key: &CacheKey) -> Option<Bytes> {
        let state = self.0.lock();
        let (value, end) = state.entries.get(key)?;
        (*end > Instant::now()).then(|| value.clone())
    }

    /// When the entry at `key` ends.
    pub(super) fn end(&self, key: &CacheKey) -> Instant {
        self.0.lock().entries[key].1
    }

    pub(super) fn put(&self, key: &CacheKey, value: &[u8], time_to_live: Duration) {
        let entry = (Bytes::copy_from_slice(value), Instant::now() + time_to_live);
        self.0.lock().entries.insert(key.clone(), entry);
    }

    /// Takes the entry out without a hint, as another program may.
    pub(super) fn remove(&self, key: &CacheKey) {
        self.0.lock().entries.remove(key);
    }

    fn lease(&self, key: &CacheKey, token: &LeaseToken, time_to_live: TimeToLive) -> Option<u64> {
        match self.get(key) {
            Some(value) if value != token.as_bytes() => return None,
            Some(_) => {}
            None => *self.0.lock().fences.entry(key.clone()).or_default() += 1,
        }
        self.put(key, token.as_bytes(), time_to_live.as_duration());
        Some(self.0.lock().fences[key])
    }

    fn extend(&self, key: &CacheKey, expected: &[u8], time_to_live: TimeToLive) -> bool {
        let stands = self.get(key).is_some_and(|value| value == expected);
        if stands {
            self.put(key, expected, time_to_live.as_duration());
        }
        stands
    }

    fn release(&self, key: &CacheKey, token: &LeaseToken) -> bool {
        let stands = self.get(key).is_some_and(|value| value == token.as_bytes());
        if stands {
            self.remove(key);
            if let Some(waiting) = self.0.lock().releases.get(key) {
                waiting.send_replace(());
            }
        }
        stands
    }

    fn watch(&self, key: &CacheKey) -> WakeHints {
        let mut state = self.0.lock();
        let receiver = state.releases.entry(key.clone()).or_default().subscribe();
        stream::unfold(receiver, |mut receiver| async {
            receiver.changed().await.ok()?;
            Some(((), receiver))
        })
        .boxed()
    }
}

fn unused<T>(operation: &'static str) -> Result<T> {
    Err(CachingError::internal("the lock does not need this").with_operation(operation))
}

#[async_trait]
impl CacheStore for FaultyStore {
    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        let (memory, key) = (self.memory.clone(), key.clone());
        let expected = expected.to_vec();
        let work = async move { Ok(memory.extend(&key, &expected, time_to_live)) };
        self.ask(Op::Extend, work).await
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let (memory, key, token) = (self.memory.clone(), key.clone(), token.clone());
        let work = async move { Ok(memory.lease(&key, &token, time_to_live)) };
        self.ask(Op::Lease, work).await
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        let (memory, key, token) = (self.memory.clone(), key.clone(), token.clone());
        let work = async move { Ok(memory.release(&key, &token)) };
        self.ask(Op::Release, work).await
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        let hints = self.script.lock().hints;
        let (memory, key) = (self.memory.clone(), key.clone());
        let work = async move {
            Ok(match hints {
                Hints::Honest => memory.watch(&key),
                Hints::Ended => stream::empty().boxed(),
                Hints::Flood => stream::repeat(()).boxed(),
            })
        };
        self.ask(Op::Watch, work).await
    }

    async fn get(&self, _: &CacheKey) -> Result<Option<Bytes>> {
        unused("get")
    }

    async fn get_many(&self, _: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        unused("get_many")
    }

    async fn set(&self, _: &CacheKey, _: Bytes, _: CacheEntryOptions) -> Result<()> {
        unused("set")
    }

    async fn set_many(&self, _: &[CacheItem]) -> Result<()> {
        unused("set_many")
    }

    async fn try_add(&self, _: &CacheKey, _: Bytes, _: CacheEntryOptions) -> Result<bool> {
        unused("try_add")
    }

    async fn get_or_add(
        &self,
        _: &CacheKey,
        _: Bytes,
        _: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        unused("get_or_add")
    }

    async fn try_replace(
        &self,
        _: &CacheKey,
        _: &[u8],
        _: Bytes,
        _: CacheEntryOptions,
    ) -> Result<bool> {
        unused("try_replace")
    }

    async fn try_remove(&self, _: &CacheKey, _: &[u8]) -> Result<bool> {
        unused("try_remove")
    }

    async fn try_relay(
        &self,
        _: &CacheKey,
        _: &LeaseToken,
        _: &LeaseToken,
        _: TimeToLive,
    ) -> Result<Option<u64>> {
        unused("try_relay")
    }

    async fn remove(&self, _: &CacheKey) -> Result<bool> {
        unused("remove")
    }

    async fn remove_many(&self, _: &[CacheKey]) -> Result<Vec<bool>> {
        unused("remove_many")
    }

    async fn increment(&self, _: &CacheKey, _: i64, _: CacheEntryOptions) -> Result<i64> {
        unused("increment")
    }

    async fn time_to_live(&self, _: &CacheKey) -> Result<Option<Duration>> {
        unused("time_to_live")
    }

    fn keys(&self, _: &str) -> BoxStream<'static, Result<CacheKey>> {
        stream::once(async { unused("keys") }).boxed()
    }

    async fn ping(&self) -> Result<()> {
        unused("ping")
    }
}
