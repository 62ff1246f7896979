//! The conformance suite on one server.

mod support;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{CacheKey, CacheStore, KeyPrefix, TimeToLive, milliseconds};
use conformance::{Gap, Pace, RunningStore, Setup, StoreHarness};
use redis_support::{Fault, Proxy, Server};
use support::SmallClients;

/// The server that all cases share; each has a database of its own.
static SHARED: LazyLock<Server> = LazyLock::new(|| Server::with(&[("databases", "256")]));
static DATABASES: AtomicU8 = AtomicU8::new(1);

/// One server, behind a proxy that can cut it off.
#[derive(Debug)]
struct Standalone;

struct Running {
    /// Where the case has a server of its own.
    own: Option<Server>,
    proxy: Proxy,
    database: u8,
    default_time_to_live: Option<TimeToLive>,
    small: SmallClients,
}

#[async_trait]
impl StoreHarness for Standalone {
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
        let own = setup.budgets.map(|budgets| {
            let server = Server::with(&support::SMALL);
            support::limit(&server, budgets.protected_bytes);
            server
        });
        let database = match own {
            Some(_) => 0,
            None => DATABASES.fetch_add(1, Ordering::Relaxed),
        };
        assert!(own.is_some() || database > 0, "more cases than databases");
        let port = own.as_ref().map_or_else(|| SHARED.port(), Server::port);
        Ok(Box::new(Running {
            own,
            proxy: Proxy::start(port),
            database,
            default_time_to_live: setup.default_time_to_live,
            small: SmallClients::default(),
        }))
    }
}

impl Running {
    fn server(&self) -> &Server {
        self.own.as_ref().unwrap_or(&SHARED)
    }
}

#[async_trait]
impl RunningStore for Running {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        let url = format!("{}/{}", self.proxy.url(), self.database);
        let client = support::client(&url, prefix, self.default_time_to_live).await;
        if self.own.is_some() {
            self.small.add(&client).await;
        }
        client
    }

    async fn pass(&self, duration: Duration) {
        self.small.pass(duration).await;
    }

    /// Another server takes its place, which is what clients see of one that comes back empty.
    async fn restart_empty(&mut self) -> Result<(), Gap> {
        let server = Server::with(&[("databases", "256")]);
        self.proxy.redirect(server.port());
        self.own = Some(server);
        Ok(())
    }

    async fn plant_foreign_value(&self, key: &CacheKey) -> Result<(), Gap> {
        let mut raw = self.server().raw();
        raw.command(&["SELECT", &self.database.to_string()]);
        raw.command(&["DEL", key.as_str()]);
        let answer = raw.command(&["RPUSH", key.as_str(), "a", "b"]);
        assert_eq!(answer.text(), "2");
        Ok(())
    }

    async fn cut(&mut self) -> Result<(), Gap> {
        self.proxy.set(Fault::Cut);
        Ok(())
    }

    async fn mend(&mut self) {
        self.proxy.set(Fault::None);
    }
}

conformance::suite!(Standalone);
