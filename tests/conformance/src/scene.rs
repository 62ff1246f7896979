//! What cases share: the store they work on, and short names for keys, values and lifetimes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheKey, CacheStore, CacheStoreExt, CachingError, ErrorCode, KeyPrefix,
    LeaseToken, Result, TimeToLive, hours,
};

use crate::harness::{Gap, Pace, RunningStore, Setup, StoreHarness};

/// A client of the store under test.
pub type Client = Arc<dyn CacheStore>;

/// One case's store and its way of measuring time.
pub struct Scene {
    running: Box<dyn RunningStore>,
    pace: Pace,
}

impl Scene {
    /// Starts a store with everything as it is by default.
    pub async fn start(harness: &dyn StoreHarness) -> Self {
        match Self::start_with(harness, Setup::default()).await {
            Ok(scene) => scene,
            Err(gap) => panic!("the default setup must start, and answers {gap:?}"),
        }
    }

    /// Starts a store with `setup`.
    ///
    /// # Errors
    /// The gap that the harness answers with.
    pub async fn start_with(harness: &dyn StoreHarness, setup: Setup) -> Result<Self, Gap> {
        let pace = harness.pace();
        assert!(
            pace.tick >= Duration::from_millis(20)
                && pace.tick.subsec_nanos().is_multiple_of(1_000_000),
            "a tick is a whole number of milliseconds, at least 20"
        );
        let running = harness.start(setup).await?;
        Ok(Self { running, pace })
    }

    /// A new client without a prefix.
    pub async fn client(&self) -> Client {
        self.running.client(None).await
    }

    /// A new client with a key prefix (K4).
    pub async fn client_of(&self, prefix: &str) -> Client {
        let prefix = KeyPrefix::new(prefix).unwrap();
        self.running.client(Some(&prefix)).await
    }

    /// The store itself, for what only some stores can do.
    pub fn running(&mut self) -> &mut dyn RunningStore {
        &mut *self.running
    }

    /// Puts a value of another kind under `key` (S7).
    ///
    /// # Errors
    /// The gap that the harness answers with.
    pub async fn plant_foreign_value(&self, key: &CacheKey) -> Result<(), Gap> {
        self.running.plant_foreign_value(key).await
    }

    /// How long things take here.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Lets `ticks` pass for the store.
    pub async fn pass(&self, ticks: u32) {
        self.running.pass(self.pace.tick * ticks).await;
    }

    /// Lets `duration` pass for the store.
    pub async fn pass_time(&self, duration: Duration) {
        self.running.pass(duration).await;
    }

    /// Waits (in real time) until whatever was sent has taken effect.
    pub async fn settle(&self) {
        tokio::time::sleep(self.pace.settle).await;
    }

    /// The duration of `ticks`.
    pub fn ticks(&self, ticks: u32) -> Duration {
        self.pace.tick * ticks
    }

    /// A lifetime of `ticks`.
    pub fn life(&self, ticks: u32) -> TimeToLive {
        TimeToLive::new(self.ticks(ticks)).unwrap()
    }

    /// Options of an entry that lives for `ticks` from the write.
    pub fn lasting(&self, ticks: u32) -> CacheEntryOptions {
        self.life(ticks).into()
    }

    /// Options of an entry that lives for `ticks` from the write or the last read.
    pub fn sliding(&self, ticks: u32) -> CacheEntryOptions {
        CacheEntryOptions::sliding_expiration(self.ticks(ticks)).unwrap()
    }
}

/// Holds the harness to what it declares: gives `Some` where `answer` is a success, none where it
/// is a declared gap, and fails on a gap that is undeclared or closed.
pub fn ability<T>(harness: &dyn StoreHarness, gap: Gap, answer: Result<T, Gap>) -> Option<T> {
    let declared = harness.gaps().contains(&gap);
    match answer {
        Ok(able) if !declared => Some(able),
        Ok(_) => panic!("{gap:?} is declared and no gap any more; take it out of gaps()"),
        Err(answered) if answered == gap && declared => None,
        Err(answered) => panic!("the harness answers {answered:?}, which it does not declare"),
    }
}

/// Options of an entry that outlives its case.
pub fn long() -> CacheEntryOptions {
    CacheEntryOptions::from(long_life())
}

/// A lifetime that outlives its case.
pub fn long_life() -> TimeToLive {
    TimeToLive::new(hours(1)).unwrap()
}

/// The key `text`.
pub fn key(text: &str) -> CacheKey {
    CacheKey::new(text).unwrap()
}

/// Several keys.
pub fn keys<const N: usize>(texts: [&str; N]) -> Vec<CacheKey> {
    texts.into_iter().map(key).collect()
}

/// The value `text`.
pub fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// The token `text`.
pub fn token(text: &str) -> LeaseToken {
    LeaseToken::new(text).unwrap()
}

/// Writes `text` so that it outlives the case.
pub async fn put(store: &Client, key: &CacheKey, text: &str) {
    store.set(key, bytes(text), long()).await.unwrap();
}

/// The value of `key` as text.
pub async fn text(store: &Client, key: &CacheKey) -> Option<String> {
    let value = store.get(key).await.unwrap()?;
    Some(String::from_utf8(value.to_vec()).unwrap())
}

/// Asserts that `key` holds `expected`.
#[track_caller]
pub fn holds(store: &Client, key: &CacheKey, expected: &str) -> impl Future<Output = ()> + Send {
    let caller = std::panic::Location::caller();
    let (store, key, expected) = (store.clone(), key.clone(), expected.to_owned());
    async move {
        let found = text(&store, &key).await;
        assert_eq!(found.as_deref(), Some(&*expected), "{key}, at {caller}");
    }
}

/// Asserts that `key` is absent, for reads and for listings.
#[track_caller]
pub fn absent(store: &Client, key: &CacheKey) -> impl Future<Output = ()> + Send {
    let caller = std::panic::Location::caller();
    let (store, key) = (store.clone(), key.clone());
    async move {
        assert_eq!(text(&store, &key).await, None, "{key}, at {caller}");
    }
}

/// What is left of the life of `key`, which is there.
pub async fn left(store: &Client, key: &CacheKey) -> Duration {
    let left = store.time_to_live(key).await.unwrap();
    left.unwrap_or_else(|| panic!("{key} is there"))
}

/// Every key with `prefix`, sorted.
pub async fn listed(store: &Client, prefix: &str) -> Vec<String> {
    let found = store.sorted_keys(prefix).await.unwrap();
    found.iter().map(|key| key.as_str().to_owned()).collect()
}

/// Asserts that `result` is an error of `code`, and gives it.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: Result<T>, code: ErrorCode) -> CachingError {
    let error = result.expect_err("the operation is refused");
    assert_eq!(error.code(), code, "{error}");
    error
}
