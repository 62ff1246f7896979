//! What the test files about the client share.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code, of which each file uses a part"
)]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use caching_abstractions::{
    CacheEntryOptions, CacheKey, CacheStore, CachingError, CachingSettings, ErrorCode, KeyPrefix,
    Secret, SystemClock, TimeToLive, milliseconds, minutes, seconds,
};
use caching_remote::server::{StoreServer, StoreServerBuilder, TlsSettings};
use conformance::{ReferenceStore, Setup};
use redis_support::Certificates;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// The certificates of all servers.
pub(crate) static CERTIFICATES: LazyLock<Certificates> = LazyLock::new(Certificates::make);

/// A server on a free port of this process.
pub(crate) struct Server {
    pub(crate) port: u16,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves `store`.
    pub(crate) async fn start(
        store: Arc<dyn CacheStore>,
        set_up: impl FnOnce(StoreServerBuilder) -> StoreServerBuilder,
    ) -> Self {
        let server = set_up(StoreServer::builder(store)).build().unwrap();
        let listening = server.bind(("127.0.0.1", 0)).await.unwrap();
        let port = listening.local_address().port();
        let (shutdown, told) = oneshot::channel();
        let task = tokio::spawn(listening.run_until(async {
            let _ = told.await;
        }));
        Self {
            port,
            shutdown: Some(shutdown),
            task,
        }
    }

    /// Shuts down gracefully.
    pub(crate) async fn shut_down(mut self) {
        if let Some(shutdown) = self.shutdown.take() {
            let _ = shutdown.send(());
        }
        let _ = (&mut self.task).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What makes a server speak TLS.
pub(crate) fn tls() -> TlsSettings {
    TlsSettings::from_files(CERTIFICATES.certificate(), CERTIFICATES.key()).unwrap()
}

/// Settings for a server at `port` that speaks plain text.
pub(crate) fn settings(port: u16) -> CachingSettings {
    let mut settings = CachingSettings::default();
    settings.remote.endpoint = Some(format!("grpc://127.0.0.1:{port}"));
    settings
}

/// Settings for a server at `port` that speaks TLS.
pub(crate) fn tls_settings(port: u16) -> CachingSettings {
    let mut settings = CachingSettings::default();
    settings.remote.endpoint = Some(format!("grpcs://localhost:{port}"));
    settings.remote.ca_file = Some(CERTIFICATES.authority());
    settings
}

/// The same settings with a token.
pub(crate) fn with_token(mut settings: CachingSettings, token: &str) -> CachingSettings {
    settings.remote.token = Some(Secret::new(token));
    settings
}

/// The same settings within a prefix.
pub(crate) fn within(mut settings: CachingSettings, prefix: Option<&KeyPrefix>) -> CachingSettings {
    settings.key_prefix = prefix.cloned();
    settings
}

/// A store that is obviously correct, on the machine's clock.
pub(crate) fn reference() -> Arc<dyn CacheStore> {
    let clock = Arc::new(SystemClock::new());
    Arc::new(ReferenceStore::with_setup(clock, &Setup::default()))
}

pub(crate) fn key(text: &str) -> CacheKey {
    CacheKey::new(text).unwrap()
}

pub(crate) fn long() -> CacheEntryOptions {
    CacheEntryOptions::time_to_live(minutes(10)).unwrap()
}

pub(crate) fn long_life() -> TimeToLive {
    TimeToLive::new(minutes(10)).unwrap()
}

pub(crate) fn is_unavailable(error: &CachingError) -> bool {
    error.code() == ErrorCode::StoreUnavailable
}

/// Waits until the store works again, and says how long that took.
pub(crate) async fn recovery(store: &dyn CacheStore) -> Duration {
    let begun = Instant::now();
    while let Err(error) = store.ping().await {
        assert!(is_unavailable(&error), "{error}");
        assert!(begun.elapsed() < seconds(30), "it does not come back");
        sleep(milliseconds(5)).await;
    }
    begun.elapsed()
}
