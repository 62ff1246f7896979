use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{CacheKey, CacheStore, Clock, KeyPrefix, ManualClock};

use super::ReferenceStore;
use crate::harness::{Gap, RunningStore, Setup, StoreHarness};

/// The harness of [`ReferenceStore`], on a clock that is moved by hand. It has no gap.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReferenceHarness;

#[async_trait]
impl StoreHarness for ReferenceHarness {
    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        Ok(Box::new(ReferenceRunning::new(&setup)))
    }
}

/// A [`ReferenceStore`] and its clock; public so that harnesses of wrappers are built on it.
#[derive(Clone, Debug)]
pub struct ReferenceRunning {
    store: ReferenceStore,
    clock: ManualClock,
}

impl ReferenceRunning {
    /// An empty store like `setup`.
    pub fn new(setup: &Setup) -> Self {
        let clock = ManualClock::new();
        Self {
            store: ReferenceStore::with_setup(Arc::new(clock.clone()), setup),
            clock,
        }
    }

    /// A client of the store.
    pub fn store(&self, prefix: Option<&KeyPrefix>) -> ReferenceStore {
        self.store.with_prefix(prefix)
    }

    /// The store's clock.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }
}

#[async_trait]
impl RunningStore for ReferenceRunning {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        Arc::new(self.store(prefix))
    }

    async fn pass(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    async fn restart_empty(&mut self) -> Result<(), Gap> {
        self.store.restart_empty();
        Ok(())
    }

    async fn plant_foreign_value(&self, key: &CacheKey) -> Result<(), Gap> {
        self.store.plant_foreign_value(key);
        Ok(())
    }

    async fn cut(&mut self) -> Result<(), Gap> {
        self.store.set_reachable(false);
        Ok(())
    }

    async fn mend(&mut self) {
        self.store.set_reachable(true);
    }

    async fn step_wall_clock_back(&self, by: Duration) -> Result<(), Gap> {
        let now = self.clock.unix_time();
        self.clock.set_unix_time(now.saturating_sub(by));
        Ok(())
    }
}
