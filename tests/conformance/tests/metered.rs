//! A store that is measured passes the whole suite, as every wrapper has to.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{CacheKey, CacheStore, KeyPrefix, MeteredStore};
use conformance::{Gap, ReferenceRunning, RunningStore, Setup, StoreHarness};

conformance::suite!(MeteredHarness);

#[derive(Debug)]
struct MeteredHarness;

#[async_trait]
impl StoreHarness for MeteredHarness {
    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        Ok(Box::new(MeteredRunning(ReferenceRunning::new(&setup))))
    }
}

struct MeteredRunning(ReferenceRunning);

#[async_trait]
impl RunningStore for MeteredRunning {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        let inner = self.0.client(prefix).await;
        Arc::new(MeteredStore::new(inner, "reference"))
    }

    async fn pass(&self, duration: Duration) {
        self.0.pass(duration).await;
    }

    async fn restart_empty(&mut self) -> Result<(), Gap> {
        self.0.restart_empty().await
    }

    async fn plant_foreign_value(&self, key: &CacheKey) -> Result<(), Gap> {
        self.0.plant_foreign_value(key).await
    }

    async fn cut(&mut self) -> Result<(), Gap> {
        self.0.cut().await
    }

    async fn mend(&mut self) {
        self.0.mend().await;
    }

    async fn step_wall_clock_back(&self, by: Duration) -> Result<(), Gap> {
        self.0.step_wall_clock_back(by).await
    }
}
