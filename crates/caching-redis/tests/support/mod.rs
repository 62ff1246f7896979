//! What the test files of this crate share.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code, of which each file uses a part"
)]

use std::sync::{Arc, LazyLock};

use caching_abstractions::{CacheKey, CacheStore, CachingSettings, KeyPrefix, Secret, TimeToLive};
use caching_redis::RedisStore;
use redis_support::Server;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

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
pub(crate) const SMALL: [(&str, &str); 2] = [
    ("maxmemory-policy", "noeviction"),
    ("latency-tracking", "no"),
];

/// Gives a server that was started with [`SMALL`] room for `bytes` more than it has in use.
pub(crate) fn limit(server: &Server, bytes: u64) {
    let mut raw = server.raw();
    let memory = raw.command(&["INFO", "memory"]).text();
    let mut lines = memory.lines();
    let used = lines.find_map(|line| line.strip_prefix("used_memory:"));
    let used: u64 = used.and_then(|used| used.trim().parse().ok()).unwrap();
    // The connections of a case need some as well.
    let limit = (used + bytes + 256 * 1024).to_string();
    let answer = raw.command(&["CONFIG", "SET", "maxmemory", &limit]);
    assert_eq!(answer.text(), "OK");
}

/// Makes the buffers of a connection to a small server as large as they will be.
///
/// They count against `maxmemory`, and are not to grow in the middle of a case about the last free
/// byte.
pub(crate) async fn warm(client: &dyn CacheStore) {
    let key = CacheKey::new("nothing").unwrap();
    let _ = client.try_remove(&key, &[0; 48 * 1024]).await;
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
