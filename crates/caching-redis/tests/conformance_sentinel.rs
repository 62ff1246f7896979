//! The conformance suite on a primary that sentinels know.

#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{CacheKey, CacheStore, KeyPrefix, TimeToLive, milliseconds};
use conformance::{Gap, Pace, RunningStore, Setup, StoreHarness};
use redis_support::{Fault, SentinelGroup, Server};
use support::{SmallClients, Usage};

/// The group that all cases share; each has a database of its own. Its sentinels are patient: no
/// case is about a failover.
static SHARED: LazyLock<Mutex<SentinelGroup>> =
    LazyLock::new(|| Mutex::new(SentinelGroup::start(600_000)));
static DATABASES: AtomicU8 = AtomicU8::new(1);

/// A primary, two replicas and three sentinels.
#[derive(Debug)]
struct Watched;

struct Running {
    /// Where the case has a primary of its own.
    own: Option<Server>,
    usage: Usage,
    url: String,
    database: u8,
    default_time_to_live: Option<TimeToLive>,
    small: SmallClients,
}

fn with_shared<T>(action: impl FnOnce(&mut SentinelGroup) -> T) -> T {
    action(
        &mut SHARED
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()),
    )
}

#[async_trait]
impl StoreHarness for Watched {
    fn gaps(&self) -> &'static [Gap] {
        &[Gap::TwoBudgets, Gap::Clock]
    }

    fn pace(&self) -> Pace {
        Pace {
            tick: milliseconds(125),
            ..Pace::networked()
        }
    }

    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        let own = setup.budgets.map(|_| Server::with(&support::SMALL));
        let (url, database) = match &own {
            Some(server) => {
                let service = format!("small-{}", server.port());
                let url = with_shared(|group| {
                    group.watch(&service, server.port());
                    group.url_of(&service, 0)
                });
                // Two connections of each sentinel, and the one that asks.
                redis_support::wait_until("the sentinels watch", || {
                    let clients = server.raw().command(&["INFO", "clients"]).text();
                    clients.contains("connected_clients:7")
                });
                let budgets = setup.budgets.unwrap();
                support::limit(server, budgets.protected_bytes);
                (url, 0)
            }
            None => {
                let database = DATABASES.fetch_add(1, Ordering::Relaxed);
                assert!(database > 0, "more cases than databases");
                (with_shared(|group| group.url(database)), database)
            }
        };
        Ok(Box::new(Running {
            own,
            usage: Usage::shared().await,
            url,
            database,
            default_time_to_live: setup.default_time_to_live,
            small: SmallClients::default(),
        }))
    }
}

#[async_trait]
impl RunningStore for Running {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        let client = support::client(&self.url, prefix, self.default_time_to_live).await;
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
        with_shared(|group| group.servers_mut()[0].restart());
        Ok(())
    }

    async fn plant_foreign_value(&self, key: &CacheKey) -> Result<(), Gap> {
        let mut raw = with_shared(|group| group.servers()[0].raw());
        raw.command(&["SELECT", &self.database.to_string()]);
        raw.command(&["DEL", key.as_str()]);
        let answer = raw.command(&["RPUSH", key.as_str(), "a", "b"]);
        assert_eq!(answer.text(), "2");
        Ok(())
    }

    async fn cut(&mut self) -> Result<(), Gap> {
        self.usage.be_alone().await;
        with_shared(|group| group.set(Fault::Cut));
        Ok(())
    }

    async fn mend(&mut self) {
        with_shared(|group| group.set(Fault::None));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.usage, Usage::Alone(_)) {
            with_shared(|group| group.set(Fault::None));
        }
    }
}

conformance::suite!(Watched);
