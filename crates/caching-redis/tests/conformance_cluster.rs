//! The conformance suite on a Cluster of three primaries.

#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{CacheKey, CacheStore, KeyPrefix, TimeToLive, milliseconds};
use conformance::{Gap, Pace, RunningStore, Setup, StoreHarness};
use redis_support::{Cluster, Fault, Server};
use support::{SmallClients, Usage};

/// The Cluster that all cases share; each has a key prefix of its own.
static SHARED: LazyLock<Mutex<Cluster>> = LazyLock::new(|| Mutex::new(Cluster::start()));
static CASES: AtomicU32 = AtomicU32::new(0);

/// A Cluster.
#[derive(Debug)]
struct ThreePrimaries;

struct Running {
    /// Where the case has a Cluster of its own.
    own: Option<Cluster>,
    usage: Usage,
    name: String,
    default_time_to_live: Option<TimeToLive>,
    small: SmallClients,
}

#[async_trait]
impl StoreHarness for ThreePrimaries {
    fn gaps(&self) -> &'static [Gap] {
        &[Gap::TwoBudgets, Gap::Clock, Gap::WholeKeyspace]
    }

    fn pace(&self) -> Pace {
        Pace {
            tick: milliseconds(125),
            ..Pace::networked()
        }
    }

    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        let number = CASES.fetch_add(1, Ordering::Relaxed);
        let own = setup.budgets.map(|budgets| {
            // Each node has room of its own: one that has all slots is the store.
            let cluster = Cluster::with_all_slots_at_one(&support::SMALL);
            support::limit(&cluster.servers()[0], budgets.protected_bytes);
            cluster
        });
        Ok(Box::new(Running {
            own,
            usage: Usage::shared().await,
            name: format!("case{number}"),
            default_time_to_live: setup.default_time_to_live,
            small: SmallClients::default(),
        }))
    }
}

impl Running {
    fn with<T>(&self, action: impl FnOnce(&Cluster) -> T) -> T {
        match &self.own {
            Some(own) => action(own),
            None => action(
                &SHARED
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner()),
            ),
        }
    }

    fn prefix(&self, of_client: Option<&KeyPrefix>) -> KeyPrefix {
        let name = match of_client {
            Some(prefix) => format!("{}.{prefix}", self.name),
            None => self.name.clone(),
        };
        KeyPrefix::new(name).unwrap()
    }
}

#[async_trait]
impl RunningStore for Running {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        let url = self.with(Cluster::url);
        let prefix = self.prefix(prefix);
        let client = support::client(&url, Some(&prefix), self.default_time_to_live).await;
        if self.own.is_some() {
            self.small.add(&client).await;
        }
        client
    }

    async fn pass(&self, duration: Duration) {
        self.small.pass(duration).await;
    }

    async fn restart_empty(&mut self) -> Result<(), Gap> {
        self.usage.be_alone().await;
        let mut shared = SHARED
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        shared.restart_empty();
        Ok(())
    }

    async fn plant_foreign_value(&self, key: &CacheKey) -> Result<(), Gap> {
        let stored = self.prefix(None).stored(key);
        let plant = |server: &Server| {
            let mut raw = server.raw();
            raw.command(&["DEL", &stored]);
            raw.command(&["RPUSH", &stored, "a", "b"]).text() == "2"
        };
        let planted = self.with(|cluster| cluster.servers().iter().any(plant));
        assert!(planted, "one node has the slot");
        Ok(())
    }

    async fn cut(&mut self) -> Result<(), Gap> {
        self.usage.be_alone().await;
        self.with(|cluster| cluster.set(Fault::Cut));
        Ok(())
    }

    async fn mend(&mut self) {
        self.with(|cluster| cluster.set(Fault::None));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.usage, Usage::Alone(_)) {
            self.with(|cluster| cluster.set(Fault::None));
        }
    }
}

conformance::suite!(ThreePrimaries);
