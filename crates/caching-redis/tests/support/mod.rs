//! What the test files of this crate share.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code, of which each file uses a part"
)]

use std::sync::Arc;

use caching_abstractions::{CacheStore, CachingSettings, KeyPrefix, Secret, TimeToLive};
use caching_redis::RedisStore;

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
