use std::sync::Arc;
use std::time::Instant;

use caching_abstractions::{
    CachingSettings, Clock, InMemorySettings, KeyPrefix, SystemClock, TimeToLive,
};

use crate::backing::{Backing, Parts};
use crate::eviction::Freeing;
use crate::life::nanoseconds;
use crate::store::InMemoryStore;

/// Settings for an [`InMemoryStore`]; every one has a default.
///
/// ```
/// use caching_abstractions::TimeToLive;
/// use caching_inmemory::InMemoryStore;
///
/// let store = InMemoryStore::builder()
///     .max_protected_bytes(64 * 1024 * 1024)
///     .default_time_to_live(TimeToLive::from_millis(60_000)?)
///     .build();
/// assert_eq!(store.protected_bytes(), 0);
/// # Ok::<(), caching_abstractions::CachingError>(())
/// ```
#[derive(Clone, Debug)]
pub struct InMemoryStoreBuilder {
    max_capacity_bytes: u64,
    max_protected_bytes: u64,
    default_time_to_live: TimeToLive,
    clock: Option<Arc<dyn Clock>>,
    key_prefix: Option<KeyPrefix>,
}

impl InMemoryStoreBuilder {
    pub(crate) fn new() -> Self {
        let budgets = InMemorySettings::default();
        Self {
            max_capacity_bytes: budgets.max_capacity_bytes,
            max_protected_bytes: budgets.max_protected_bytes,
            // In range, so the other branch is never taken.
            default_time_to_live: TimeToLive::new(CachingSettings::DEFAULT_TIME_TO_LIVE)
                .unwrap_or(TimeToLive::MAX),
            clock: None,
            key_prefix: None,
        }
    }

    /// The budget of what `set` and `set_many` write. Default 256 MiB.
    #[must_use]
    pub fn max_capacity_bytes(mut self, bytes: u64) -> Self {
        self.max_capacity_bytes = bytes;
        self
    }

    /// The budget of everything else (S2). Default 1 GiB.
    #[must_use]
    pub fn max_protected_bytes(mut self, bytes: u64) -> Self {
        self.max_protected_bytes = bytes;
        self
    }

    /// How long an entry lives that is written with `CacheEntryOptions::default()`. Default 300 s.
    #[must_use]
    pub fn default_time_to_live(mut self, time_to_live: TimeToLive) -> Self {
        self.default_time_to_live = time_to_live;
        self
    }

    /// Another clock than the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// What stands before each key in the backing (K4). Default none.
    #[must_use]
    pub fn key_prefix(mut self, prefix: Option<KeyPrefix>) -> Self {
        self.key_prefix = prefix;
        self
    }

    /// An empty store of these settings.
    #[must_use]
    pub fn build(self) -> InMemoryStore {
        let (clock, freeing) = match self.clock {
            Some(clock) => (clock, Freeing::OnDemand),
            None => machine_clock(),
        };
        let backing = Backing::new(Parts {
            clock,
            default_time_to_live: self.default_time_to_live,
            max_capacity_bytes: self.max_capacity_bytes,
            max_protected_bytes: self.max_protected_bytes,
            freeing,
        });
        InMemoryStore::of(Arc::new(backing), self.key_prefix)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the cache of the evictable half runs on this clock, and only frees memory by it"
)]
fn machine_clock() -> (Arc<dyn Clock>, Freeing) {
    let clock = SystemClock::new();
    let freeing = Freeing::OnTime {
        started: Instant::now(),
        monotonic: nanoseconds(clock.monotonic()),
    };
    (Arc::new(clock), freeing)
}
