//! What a provider implements to run the suite.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{
    CacheKey, CacheStore, CachingSettings, KeyPrefix, TimeToLive, milliseconds, seconds,
};

/// Starts stores of one provider for the suite.
///
/// One value stands for the provider; it is usually a unit struct. Each case starts its own store
/// and drops it at the end.
#[async_trait]
pub trait StoreHarness: fmt::Debug + Send + Sync + 'static {
    /// What this provider cannot do at all; the one place where that is said.
    ///
    /// The suite is strict in both directions. Where a gap is declared, its case asserts the clean
    /// consequence instead, and fails if the harness can do it after all. Where it is not
    /// declared, a harness that answers with the gap fails.
    fn gaps(&self) -> &'static [Gap] {
        &[]
    }

    /// How long things take here.
    fn pace(&self) -> Pace {
        Pace::in_process()
    }

    /// What an entry without an expiration of its own lives for, unless
    /// [`Setup::default_time_to_live`] says otherwise (E1).
    fn default_time_to_live(&self) -> Duration {
        CachingSettings::DEFAULT_TIME_TO_LIVE
    }

    /// Starts a store that is empty for its clients and that no other case sees.
    ///
    /// Several cases run at once. A networked provider may share one server and give each case a
    /// part of it, such as a database number or a key prefix in front of the case's own.
    ///
    /// # Errors
    /// [`Gap::FullStore`] or [`Gap::TwoBudgets`] for a setup with [`Setup::budgets`] that cannot
    /// be had.
    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap>;
}

/// A store that runs for one case.
#[async_trait]
pub trait RunningStore: Send + Sync + 'static {
    /// A new client of this store, independent of all others: on a networked provider it has its
    /// own connection. With `prefix` as its key prefix (K4), or with none.
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore>;

    /// Lets `duration` pass for the store.
    ///
    /// By sleeping, unless the harness can do better: an in-process store takes a
    /// [`ManualClock`](caching_abstractions::ManualClock) and advances it here. (Tokio's paused
    /// clock does not do: the suite runs on a runtime with several threads.)
    async fn pass(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Restarts the store so that all data is lost; clients are asked for anew (S6).
    ///
    /// # Errors
    /// [`Gap::Restart`]
    async fn restart_empty(&mut self) -> Result<(), Gap> {
        Err(Gap::Restart)
    }

    /// Puts a value of another kind under `key`, as the client without a prefix sees it, for
    /// example a Redis list (S7).
    ///
    /// # Errors
    /// [`Gap::ForeignValue`]
    async fn plant_foreign_value(&self, key: &CacheKey) -> Result<(), Gap> {
        let _ = key;
        Err(Gap::ForeignValue)
    }

    /// Cuts the clients off from the store, so that no request is answered (S3).
    ///
    /// # Errors
    /// [`Gap::Outage`]
    async fn cut(&mut self) -> Result<(), Gap> {
        Err(Gap::Outage)
    }

    /// Ends [`cut`](Self::cut); the data is still there.
    async fn mend(&mut self) {}

    /// Steps the store's wall clock back, as a time server may.
    ///
    /// A harness that can do this also answers [`pass`](Self::pass) at once, whatever the duration.
    ///
    /// # Errors
    /// [`Gap::Clock`]
    async fn step_wall_clock_back(&self, by: Duration) -> Result<(), Gap> {
        let _ = by;
        Err(Gap::Clock)
    }
}

/// What a store for one case is to be like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setup {
    /// The configured default time to live; none for the provider's own.
    pub default_time_to_live: Option<TimeToLive>,
    /// The room the store has; none for plenty.
    pub budgets: Option<Budgets>,
}

/// The room of a small store (S2).
///
/// A store that knows one budget only ([`Gap::TwoBudgets`]) takes the protected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// For what may be evicted.
    pub evictable_bytes: u64,
    /// For what is protected.
    pub protected_bytes: u64,
}

/// Something that a provider, or what can be arranged for it, lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Gap {
    /// No store can be made so small that it is full.
    FullStore,
    /// Evictable and protected entries share one room, without a reserve for leases.
    TwoBudgets,
    /// The store cannot be restarted without its data.
    Restart,
    /// There are no values of another kind.
    ForeignValue,
    /// The store cannot be out of reach.
    Outage,
    /// The store's clocks cannot be moved.
    Clock,
    /// A client without a prefix does not own the whole keyspace here.
    WholeKeyspace,
}

/// How long things take with a provider, so that no case guesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The unit of all lifetimes in the suite. Between two operations that follow each other in a
    /// case, far less than one tick passes. Whole milliseconds, at least 20.
    pub tick: Duration,
    /// After this (real) time, whatever was sent has taken effect.
    pub settle: Duration,
    /// Within this (real) time a hint of `watch` arrives.
    pub hint: Duration,
    /// The operation limit of S3, with a margin: within this (real) time every operation answers.
    pub limit: Duration,
    /// Within this (real) time a client works again after an outage.
    pub recovery: Duration,
}

impl Pace {
    /// For a store in this process.
    pub const fn in_process() -> Self {
        Self {
            tick: milliseconds(100),
            settle: milliseconds(20),
            hint: seconds(5),
            limit: seconds(3),
            recovery: seconds(5),
        }
    }

    /// For a store on this machine, reached through a socket, in real time.
    pub const fn networked() -> Self {
        Self {
            tick: milliseconds(250),
            settle: milliseconds(150),
            hint: seconds(10),
            limit: seconds(4),
            recovery: seconds(10),
        }
    }
}
