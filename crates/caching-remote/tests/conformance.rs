//! The conformance suite over TCP against the real server, however operations get there.
#![cfg(all(feature = "client", feature = "server"))]
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{CacheKey, CacheStore, CachingSettings, KeyPrefix, milliseconds};
use caching_remote::server::AccessToken;
use caching_remote::{RemoteStore, Transport};
use conformance::{Gap, Pace, ReferenceRunning, RunningStore, Setup, StoreHarness};
use redis_support::{Fault, Proxy};
use support::Server;

/// A server behind a proxy that can cut it off. The store behind it is on a clock that is moved by
/// hand, which clients over a network cannot tell from one that sleeps.
#[derive(Debug)]
struct Remote {
    transport: Transport,
    is_tls: bool,
    /// The token that clients without a prefix show.
    token: Option<&'static str>,
}

struct Running {
    store: ReferenceRunning,
    _server: Server,
    proxy: Proxy,
    transport: Transport,
    settings: CachingSettings,
}

#[async_trait]
impl StoreHarness for Remote {
    fn pace(&self) -> Pace {
        Pace {
            tick: milliseconds(250),
            ..Pace::networked()
        }
    }

    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        let store = ReferenceRunning::new(&setup);
        let server = Server::start(Arc::new(store.store(None)), |mut builder| {
            if self.is_tls {
                builder = builder.tls(support::tls());
            }
            match self.token {
                Some(token) => builder.token(AccessToken::new(token).unwrap()),
                None => builder,
            }
        })
        .await;
        let proxy = Proxy::start(server.port);
        let mut settings = if self.is_tls {
            support::tls_settings(proxy.port())
        } else {
            support::settings(proxy.port())
        };
        if let Some(token) = self.token {
            settings = support::with_token(settings, token);
        }
        Ok(Box::new(Running {
            store,
            _server: server,
            proxy,
            transport: self.transport,
            settings,
        }))
    }
}

#[async_trait]
impl RunningStore for Running {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        let settings = support::within(self.settings.clone(), prefix);
        let store = RemoteStore::connect_over(&settings, self.transport).await;
        Arc::new(store.unwrap())
    }

    async fn pass(&self, duration: Duration) {
        self.store.pass(duration).await;
    }

    async fn restart_empty(&mut self) -> Result<(), Gap> {
        self.store.restart_empty().await
    }

    async fn plant_foreign_value(&self, key: &CacheKey) -> Result<(), Gap> {
        self.store.plant_foreign_value(key).await
    }

    async fn cut(&mut self) -> Result<(), Gap> {
        self.proxy.set(Fault::Cut);
        Ok(())
    }

    async fn mend(&mut self) {
        self.proxy.set(Fault::None);
    }

    async fn step_wall_clock_back(&self, by: Duration) -> Result<(), Gap> {
        self.store.step_wall_clock_back(by).await
    }
}

mod session {
    use super::{Remote, Transport};

    conformance::suite!(Remote {
        transport: Transport::Session,
        is_tls: false,
        token: None,
    });
}

mod session_with_tls_and_token {
    use super::{Remote, Transport};

    conformance::suite!(Remote {
        transport: Transport::Session,
        is_tls: true,
        token: Some("conformance-token-0123456789abcdef"),
    });
}

mod unary {
    use super::{Remote, Transport};

    conformance::suite!(Remote {
        transport: Transport::Unary,
        is_tls: false,
        token: None,
    });
}

mod unary_with_tls {
    use super::{Remote, Transport};

    conformance::suite!(Remote {
        transport: Transport::Unary,
        is_tls: true,
        token: None,
    });
}
