//! The conformance suite over TCP against the server of an in-memory store, as `xihan-cache serve`
//! runs it, and the assembly that gets there.
#![cfg(feature = "remote")]
#![expect(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caching_inmemory::InMemoryStore;
use caching_remote::RemoteStore;
use caching_remote::server::StoreServer;
use conformance::{Gap, Pace, RunningStore, Setup, StoreHarness};
use redis_support::{Fault, Proxy};
use tokio::task::JoinHandle;
use xihan_caching::prelude::*;
use xihan_caching::{Clock, ManualClock};

/// A server behind a proxy that can cut it off; its store is on a clock that is moved by hand.
#[derive(Debug)]
struct Remote;

struct Running {
    setup: Setup,
    clock: ManualClock,
    server: JoinHandle<()>,
    proxy: Proxy,
}

/// Serves `store`, and says where.
async fn serve(store: InMemoryStore) -> (u16, JoinHandle<()>) {
    let server = StoreServer::builder(Arc::new(store)).build().unwrap();
    let listening = server.bind(("127.0.0.1", 0)).await.unwrap();
    let port = listening.local_address().port();
    let running = tokio::spawn(listening.run_until(std::future::pending()));
    (port, running)
}

fn store(setup: &Setup, clock: &ManualClock) -> InMemoryStore {
    let mut builder = InMemoryStore::builder().clock(Arc::new(clock.clone()));
    if let Some(time_to_live) = setup.default_time_to_live {
        builder = builder.default_time_to_live(time_to_live);
    }
    if let Some(budgets) = setup.budgets {
        builder = builder
            .max_capacity_bytes(budgets.evictable_bytes)
            .max_protected_bytes(budgets.protected_bytes);
    }
    builder.build()
}

fn endpoint(port: u16) -> String {
    format!("grpc://127.0.0.1:{port}")
}

#[async_trait]
impl StoreHarness for Remote {
    fn gaps(&self) -> &'static [Gap] {
        &[Gap::ForeignValue]
    }

    fn pace(&self) -> Pace {
        Pace::networked()
    }

    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        let clock = ManualClock::new();
        let (port, server) = serve(store(&setup, &clock)).await;
        Ok(Box::new(Running {
            setup,
            clock,
            server,
            proxy: Proxy::start(port),
        }))
    }
}

#[async_trait]
impl RunningStore for Running {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        let mut settings = CachingSettings::default();
        settings.remote.endpoint = Some(endpoint(self.proxy.port()));
        settings.key_prefix = prefix.cloned();
        Arc::new(RemoteStore::connect(&settings).await.unwrap())
    }

    async fn pass(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    /// Another server takes its place, as after a crash.
    async fn restart_empty(&mut self) -> Result<(), Gap> {
        let (port, server) = serve(store(&self.setup, &self.clock)).await;
        std::mem::replace(&mut self.server, server).abort();
        self.proxy.redirect(port);
        Ok(())
    }

    async fn cut(&mut self) -> Result<(), Gap> {
        self.proxy.set(Fault::Cut);
        Ok(())
    }

    async fn mend(&mut self) {
        self.proxy.set(Fault::None);
    }

    async fn step_wall_clock_back(&self, by: Duration) -> Result<(), Gap> {
        let now = self.clock.unix_time();
        self.clock.set_unix_time(now.saturating_sub(by));
        Ok(())
    }
}

conformance::suite!(Remote);

fn remote(port: u16) -> Configuration {
    Configuration::empty()
        .with("XiHan:Caching:Provider", "remote")
        .with("XiHan:Caching:Remote:Endpoint", endpoint(port))
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_the_same_assembly_runs_on_a_remote_store() {
    let clock = ManualClock::new();
    let (port, _server) = serve(store(&Setup::default(), &clock)).await;
    let build = || {
        Caching::builder()
            .provider(InMemoryProvider::new())
            .provider(RemoteProvider::new())
            .configuration(remote(port))
            .build()
    };
    let (first, second) = (build().await.unwrap(), build().await.unwrap());
    assert_eq!(first.provider_name(), "remote");
    let lock = first.locks().try_acquire("report", minutes(5)).await;
    let lock = lock.unwrap().unwrap();
    let held = second.locks().try_acquire("report", minutes(5)).await;
    assert!(held.unwrap().is_none());
    assert!(lock.release().await.unwrap());
    // The blocking face has a connection of its own (D3).
    let cache = second.distributed_cache();
    let from_a_thread = std::thread::spawn(move || {
        let options = DistributedCacheEntryOptions::new();
        cache.set_blocking("greeting", b"hello", options).unwrap();
    });
    tokio::task::spawn_blocking(|| from_a_thread.join())
        .await
        .unwrap()
        .unwrap();
    let greeting = first.distributed_cache().get("greeting").await.unwrap();
    assert_eq!(greeting.as_deref(), Some(&b"hello"[..]));
}

#[tokio::test]
async fn e1_the_server_decides_the_default_of_a_remote_store() {
    let builder = Caching::builder()
        .provider(RemoteProvider::new())
        .configuration(remote(1).with("XiHan:Caching:DefaultTimeToLiveSeconds", "60"));
    let refused = builder.build().await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("DefaultTimeToLiveSeconds"), "{text}");
    assert!(text.contains("server"), "{text}");
}
