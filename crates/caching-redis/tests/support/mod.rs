//! What the test files of this crate share.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code, of which each file uses a part"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use caching_abstractions::{CacheKey, CacheStore, CachingSettings, KeyPrefix, Secret, TimeToLive};
use caching_redis::RedisStore;
use redis_support::Server;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::task::JoinHandle;

/// Settings for `url` and otherwise none.
pub(crate) fn settings(url: &str) -> CachingSettings {
    let mut settings = CachingSettings::default();
    settings.redis.url = Some(Secret::new(url));
    settings
}

/// A client of the store at `url`.
pub(crate) async fn client(
    url: &str,
    prefix: Option<&KeyPrefix>,
    default_time_to_live: Option<TimeToLive>,
) -> Arc<dyn CacheStore> {
    let mut settings = settings(url);
    settings.key_prefix = prefix.cloned();
    settings.default_time_to_live = default_time_to_live;
    Arc::new(RedisStore::connect(&settings).await.expect("it connects"))
}

/// What makes a server small: it never evicts, and statistics of a command that is called for the
/// first time do not take the room of an entry.
pub(crate) const SMALL: [(&str, &str); 3] = [
    ("maxmemory-policy", "noeviction"),
    ("latency-tracking", "no"),
    ("enable-debug-command", "local"),
];

/// Gives a server that was started with [`SMALL`] room for `bytes` more than it has in use.
pub(crate) fn limit(server: &Server, bytes: u64) {
    let mut raw = server.raw();
    // The buffers of connections count as well: they are not to shrink in the middle of a case.
    let answer = raw.command(&["DEBUG", "REPLYBUFFER", "RESIZING", "0"]);
    assert_eq!(answer.text(), "OK");
    let memory = raw.command(&["INFO", "memory"]).text();
    let mut lines = memory.lines();
    let used = lines.find_map(|line| line.strip_prefix("used_memory:"));
    let used: u64 = used.and_then(|used| used.trim().parse().ok()).unwrap();
    // The connections of a case need some as well.
    let limit = (used + bytes + 256 * 1024).to_string();
    let answer = raw.command(&["CONFIG", "SET", "maxmemory", &limit]);
    assert_eq!(answer.text(), "OK");
}

/// The clients of a small server.
///
/// The buffers of their connections count against `maxmemory`, and are neither to grow nor to
/// shrink in the middle of a case about the last free byte.
#[derive(Default)]
pub(crate) struct SmallClients(std::sync::Mutex<Vec<Arc<dyn CacheStore>>>);

impl SmallClients {
    /// Takes note of a client, and makes its buffers as large as they will be.
    pub(crate) async fn add(&self, client: &Arc<dyn CacheStore>) {
        let key = CacheKey::new("nothing").unwrap();
        let _ = client.try_remove(&key, &[0; 24 * 1024]).await;
        self.0.lock().unwrap().push(Arc::clone(client));
    }

    /// Lets `duration` pass; the server shrinks the buffers of connections that are idle for long.
    pub(crate) async fn pass(&self, duration: Duration) {
        let end = tokio::time::Instant::now() + duration;
        loop {
            let clients = self.0.lock().unwrap().clone();
            for client in clients {
                let _ = client.ping().await;
            }
            let left = end - tokio::time::Instant::now();
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(Duration::from_millis(500))).await;
        }
    }
}

/// How late the timers of this process come. Where the machine is busy with something else,
/// everybody is late, and time limits are measured with that much allowance.
pub(crate) struct Lateness {
    total: Arc<AtomicU64>,
    watch: JoinHandle<()>,
}

impl Lateness {
    /// Begins to watch.
    pub(crate) fn watch() -> Self {
        let total = Arc::<AtomicU64>::default();
        let sum = Arc::clone(&total);
        let watch = tokio::spawn(async move {
            const BEAT: Duration = Duration::from_millis(5);
            loop {
                let begun = tokio::time::Instant::now();
                tokio::time::sleep(BEAT).await;
                let late = begun.elapsed().saturating_sub(BEAT);
                // A timer has a grain of its own.
                if late > 2 * BEAT {
                    let late = u64::try_from(late.as_millis()).unwrap_or(u64::MAX);
                    sum.fetch_add(late, Ordering::Relaxed);
                }
            }
        });
        Self { total, watch }
    }

    /// `limit`, and as much more as the timers have come late by since the beginning.
    pub(crate) fn allow(&self, limit: Duration) -> Duration {
        limit + Duration::from_millis(self.total.load(Ordering::Relaxed))
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

static USE: LazyLock<Arc<RwLock<()>>> = LazyLock::new(Arc::default);

/// The right to use a store that all cases share.
pub(crate) enum Usage {
    Shared(#[expect(dead_code, reason = "it is held")] OwnedRwLockReadGuard<()>),
    Alone(#[expect(dead_code, reason = "it is held")] OwnedRwLockWriteGuard<()>),
    None,
}

impl Usage {
    /// Together with other cases.
    pub(crate) async fn shared() -> Self {
        Self::Shared(Arc::clone(&USE).read_owned().await)
    }

    /// Waits until no other case is running, and keeps others from beginning.
    pub(crate) async fn be_alone(&mut self) {
        if matches!(self, Self::Alone(_)) {
            return;
        }
        *self = Self::None;
        *self = Self::Alone(Arc::clone(&USE).write_owned().await);
    }
}
