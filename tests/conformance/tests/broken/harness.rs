//! A harness whose stores have one defect.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{CacheKey, CacheStore, KeyPrefix, TimeToLive, milliseconds, seconds};
use conformance::{Gap, Pace, ReferenceRunning, RunningStore, Setup, StoreHarness};

use crate::defect::Defect;
use crate::store::{Broken, Shared};

#[derive(Debug)]
pub struct BrokenHarness(pub Defect);

#[async_trait]
impl StoreHarness for BrokenHarness {
    fn pace(&self) -> Pace {
        // A hint that does not come within this time does not come at all: all is in process.
        Pace {
            hint: milliseconds(300),
            limit: milliseconds(500),
            recovery: milliseconds(200),
            ..Pace::in_process()
        }
    }

    async fn start(&self, mut setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        match self.0 {
            Defect::DefaultIsAMinute => {
                setup.default_time_to_live = Some(TimeToLive::new(seconds(60)).unwrap());
            }
            Defect::NeverFull => setup.budgets = None,
            _ => {}
        }
        Ok(Box::new(BrokenRunning {
            reference: ReferenceRunning::new(&setup),
            shared: Arc::new(Shared::default()),
            defect: self.0,
            clients: AtomicUsize::new(0),
        }))
    }
}

struct BrokenRunning {
    reference: ReferenceRunning,
    shared: Arc<Shared>,
    defect: Defect,
    clients: AtomicUsize,
}

#[async_trait]
impl RunningStore for BrokenRunning {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        let own = KeyPrefix::new("_").unwrap();
        let used = match (self.defect, prefix) {
            (Defect::IgnoresPrefix | Defect::JoinsPrefixWithoutColon, _) => None,
            (Defect::NobodyOwnsAll, None) => Some(&own),
            (_, prefix) => prefix,
        };
        Arc::new(Broken {
            inner: self.reference.store(used),
            everything: self.reference.store(None),
            prefix: prefix.cloned(),
            clock: self.reference.clock().clone(),
            shared: self.shared.clone(),
            defect: self.defect,
            client: self.clients.fetch_add(1, Ordering::Relaxed),
            own: Shared::default(),
        })
    }

    async fn pass(&self, duration: Duration) {
        self.reference.pass(duration).await;
    }

    async fn restart_empty(&mut self) -> Result<(), Gap> {
        self.shared = Arc::new(Shared::default());
        self.reference.restart_empty().await
    }

    async fn plant_foreign_value(&self, key: &CacheKey) -> Result<(), Gap> {
        self.reference.plant_foreign_value(key).await
    }

    async fn cut(&mut self) -> Result<(), Gap> {
        self.reference.cut().await
    }

    async fn mend(&mut self) {
        self.reference.mend().await;
    }

    async fn step_wall_clock_back(&self, by: Duration) -> Result<(), Gap> {
        self.reference.step_wall_clock_back(by).await
    }
}
