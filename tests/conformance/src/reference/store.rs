use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, CachingError, CachingSettings, Clock,
    ErrorCode, KeyPrefix, LeaseToken, ManualClock, Result, SystemClock, TimeToLive, WakeHints,
};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::model::{Model, Now, Rank};
use crate::harness::Setup;

/// A store that is obviously correct and nothing else: one mutex around one map.
///
/// It is the model that random operations are compared with, and a store for tests that want no
/// provider. Clones are clients of the same store. Every future is ready at its first poll.
///
/// ```
/// use caching_abstractions::{CacheEntryOptions, CacheKey, CacheStore, ManualClock, seconds};
/// use conformance::ReferenceStore;
/// use futures_util::FutureExt;
///
/// let clock = ManualClock::new();
/// let store = ReferenceStore::with_clock(clock.clone());
/// let key = CacheKey::new("greeting")?;
/// let options = CacheEntryOptions::time_to_live(seconds(5))?;
///
/// store.set(&key, "hello".into(), options).now_or_never().unwrap()?;
/// clock.advance(seconds(5));
/// assert_eq!(store.get(&key).now_or_never().unwrap()?, None);
/// # Ok::<(), caching_abstractions::CachingError>(())
/// ```
#[derive(Clone)]
pub struct ReferenceStore {
    shared: Arc<Shared>,
    prefix: Option<KeyPrefix>,
}

struct Shared {
    model: Mutex<Model>,
    clock: Arc<dyn Clock>,
    watchers: Mutex<HashMap<String, Vec<mpsc::Sender<()>>>>,
    reachable: AtomicBool,
}

impl ReferenceStore {
    /// An empty store on the machine's clocks.
    pub fn new() -> Self {
        Self::with_setup(Arc::new(SystemClock::new()), &Setup::default())
    }

    /// An empty store on a clock that is moved by hand.
    pub fn with_clock(clock: ManualClock) -> Self {
        Self::with_setup(Arc::new(clock), &Setup::default())
    }

    /// An empty store on `clock` that is like `setup` says.
    pub fn with_setup(clock: Arc<dyn Clock>, setup: &Setup) -> Self {
        let default = setup
            .default_time_to_live
            .map_or(CachingSettings::DEFAULT_TIME_TO_LIVE, Duration::from);
        Self {
            shared: Arc::new(Shared {
                model: Mutex::new(Model::new(default, setup.budgets)),
                clock,
                watchers: Mutex::default(),
                reachable: AtomicBool::new(true),
            }),
            prefix: None,
        }
    }

    /// A client of the same store with `prefix` before its keys (K4).
    #[must_use]
    pub fn with_prefix(&self, prefix: Option<&KeyPrefix>) -> Self {
        Self {
            shared: self.shared.clone(),
            prefix: prefix.cloned(),
        }
    }

    /// A store of its own that is in the same state.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            shared: Arc::new(Shared {
                model: Mutex::new(self.shared.model.lock().clone()),
                clock: self.shared.clock.clone(),
                watchers: Mutex::default(),
                reachable: AtomicBool::new(true),
            }),
            prefix: self.prefix.clone(),
        }
    }

    /// Everything the store holds, as text to compare.
    pub(crate) fn state(&self) -> String {
        format!("{:?}", self.shared.model.lock())
    }

    /// Loses all data, as a restart of a store without persistence does.
    pub fn restart_empty(&self) {
        self.shared.model.lock().restart_empty();
    }

    /// Puts a value of another kind under `key` (S7).
    pub fn plant_foreign_value(&self, key: &CacheKey) {
        let (now, key) = (self.now(), self.stored(key));
        self.shared.model.lock().plant_foreign_value(now, &key);
    }

    /// Whether the store answers; while it does not, every operation is unavailable (S3).
    pub fn set_reachable(&self, reachable: bool) {
        self.shared.reachable.store(reachable, Ordering::SeqCst);
    }

    /// One atomic step on the model, if the store is reachable.
    fn step<T>(&self, step: impl FnOnce(&mut Model, Now) -> Result<T>) -> Result<T> {
        if !self.shared.reachable.load(Ordering::SeqCst) {
            return Err(CachingError::unavailable("the store is switched off"));
        }
        let mut model = self.shared.model.lock();
        step(&mut model, self.now())
    }

    fn now(&self) -> Now {
        Now {
            monotonic: self.shared.clock.monotonic(),
            unix_time: self.shared.clock.unix_time(),
        }
    }

    fn stored(&self, key: &CacheKey) -> String {
        match &self.prefix {
            Some(prefix) => prefix.stored(key),
            None => key.as_str().to_owned(),
        }
    }

    fn wake(&self, key: &str) {
        if let Some(watchers) = self.shared.watchers.lock().get_mut(key) {
            // A full channel holds a hint already.
            watchers
                .retain(|watcher| !matches!(watcher.try_send(()), Err(TrySendError::Closed(()))));
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<CacheKey>> {
        self.step(|model, now| {
            model
                .keys(now)
                .filter_map(|stored| match &self.prefix {
                    Some(own) => own.strip(stored),
                    None => Some(stored),
                })
                .filter(|key| key.starts_with(prefix))
                .map(CacheKey::from_stored)
                .collect()
        })
    }
}

impl Default for ReferenceStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ReferenceStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReferenceStore")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl CacheStore for ReferenceStore {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        self.step(|model, now| model.read(now, &self.stored(key)))
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        self.step(|model, now| {
            keys.iter()
                .map(|key| model.read(now, &self.stored(key)))
                .collect()
        })
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        self.step(|model, now| model.write(now, &self.stored(key), value, options, Rank::Evictable))
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        self.step(|model, now| {
            for item in items {
                let key = self.stored(&item.key);
                model.write(now, &key, item.value.clone(), item.options, Rank::Evictable)?;
            }
            Ok(())
        })
    }

    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let standing = self.get_or_add(key, value, options).await?;
        Ok(standing.is_none())
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        self.step(|model, now| {
            let key = self.stored(key);
            let standing = model.value(now, &key)?;
            if standing.is_none() {
                model.write(now, &key, value, options, Rank::of(options))?;
            }
            Ok(standing)
        })
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        self.step(|model, now| {
            let key = self.stored(key);
            let replaced = model.matches(now, &key, expected)?;
            if replaced {
                model.write(now, &key, value, options, Rank::of(options))?;
            }
            Ok(replaced)
        })
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        self.step(|model, now| {
            let key = self.stored(key);
            Ok(model.matches(now, &key, expected)? && model.remove(now, &key))
        })
    }

    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        self.step(|model, now| {
            let key = self.stored(key);
            let extended = model.matches(now, &key, expected)?;
            if extended && let Some(entry) = model.entry(now, &key) {
                entry.ends = now.monotonic + time_to_live.as_duration();
                entry.sliding = None;
            }
            Ok(extended)
        })
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        self.step(|model, now| {
            let key = self.stored(key);
            let own = match model.value(now, &key)? {
                None => false,
                Some(value) if value == token.as_bytes() => true,
                Some(_) => return Ok(None),
            };
            let value = Bytes::copy_from_slice(token.as_bytes());
            model.write(now, &key, value, time_to_live.into(), Rank::Essential)?;
            match model.last_fencing_number(now, &key) {
                Some(number) if own => {
                    model.keep_fence(now, &key, number, time_to_live);
                    Ok(Some(number))
                }
                _ => Ok(Some(model.fence(now, &key, time_to_live))),
            }
        })
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        self.step(|model, now| {
            let key = self.stored(key);
            if !model.matches(now, &key, token.as_bytes())? {
                return Ok(None);
            }
            let value = Bytes::copy_from_slice(new_token.as_bytes());
            model.write(now, &key, value, time_to_live.into(), Rank::Essential)?;
            Ok(Some(model.fence(now, &key, time_to_live)))
        })
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        let released = self.try_remove(key, token.as_bytes()).await?;
        if released {
            self.wake(&self.stored(key));
        }
        Ok(released)
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        self.step(|_, _| Ok(()))?;
        let (sender, receiver) = mpsc::channel(1);
        let mut watchers = self.shared.watchers.lock();
        watchers.entry(self.stored(key)).or_default().push(sender);
        let hints = stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|()| ((), receiver))
        });
        Ok(hints.boxed())
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        self.step(|model, now| Ok(model.remove(now, &self.stored(key))))
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        self.step(|model, now| {
            let remove = |key| model.remove(now, &self.stored(key));
            Ok(keys.iter().map(remove).collect())
        })
    }

    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        self.step(|model, now| {
            let stored = self.stored(key);
            let standing = model.value(now, &stored)?;
            let present = match &standing {
                Some(value) => decimal(value).ok_or_else(|| not_a_number(key))?,
                None => 0,
            };
            let sum = present.checked_add(delta).ok_or_else(|| overflow(key))?;
            let value = Bytes::from(sum.to_string());
            match standing {
                Some(_) => model.rewrite(now, &stored, value)?,
                None => model.write(now, &stored, value, options, Rank::of(options))?,
            }
            Ok(sum)
        })
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        self.step(|model, now| {
            let key = self.stored(key);
            model.value(now, &key)?;
            Ok(model
                .entry(now, &key)
                .map(|entry| entry.ends - now.monotonic))
        })
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        match self.list(prefix) {
            Ok(keys) => stream::iter(keys.into_iter().map(Ok)).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    async fn ping(&self) -> Result<()> {
        self.step(|_, _| Ok(()))
    }
}

/// The number that `value` writes as `0` or `-?[1-9][0-9]*`.
fn decimal(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn not_a_number(key: &CacheKey) -> CachingError {
    let detail = format!("the value of `{key}` is no decimal 64-bit number");
    CachingError::new(ErrorCode::WrongKind, detail).with_parameter("key", key.as_str())
}

fn overflow(key: &CacheKey) -> CachingError {
    let detail = format!("the number in `{key}` would leave the 64-bit range");
    CachingError::new(ErrorCode::WrongKind, detail).with_parameter("key", key.as_str())
}
