use std::sync::Arc;

use async_trait::async_trait;
use caching_abstractions::{
    AssemblyProblem, CacheStore, CachingCapabilities, CachingProvider, CachingSettings, Clock,
    ProviderManifest, Result,
};

use crate::store::InMemoryStore;

/// The provider `inmemory`: a fallback that supplies `caching.distributed` to one process.
///
/// It reads `DefaultTimeToLiveSeconds`, `KeyPrefix`, `InMemory:MaxCapacityBytes` and
/// `InMemory:MaxProtectedBytes`; with nothing configured it works on their defaults.
#[derive(Clone, Debug, Default)]
pub struct InMemoryProvider {
    clock: Option<Arc<dyn Clock>>,
}

impl InMemoryProvider {
    /// The provider's name in configuration.
    pub const NAME: &'static str = "inmemory";

    /// The provider on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same provider on another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }
}

#[async_trait]
impl CachingProvider for InMemoryProvider {
    fn manifest(&self) -> ProviderManifest {
        ProviderManifest::new(Self::NAME)
            .supplies(CachingCapabilities::DISTRIBUTED)
            .fallback()
    }

    fn check(&self, settings: &CachingSettings) -> Vec<AssemblyProblem> {
        let budgets = &settings.in_memory;
        [
            ("MaxCapacityBytes", budgets.max_capacity_bytes),
            ("MaxProtectedBytes", budgets.max_protected_bytes),
        ]
        .into_iter()
        .filter(|&(_, bytes)| bytes == 0)
        .map(|(name, _)| {
            AssemblyProblem::new(
                format!("XiHan:Caching:InMemory:{name}"),
                "`0` is not positive",
                "give the store room, or leave the key out for its default",
            )
        })
        .collect()
    }

    async fn start(&self, settings: &CachingSettings) -> Result<Arc<dyn CacheStore>> {
        let mut builder = InMemoryStore::builder()
            .max_capacity_bytes(settings.in_memory.max_capacity_bytes)
            .max_protected_bytes(settings.in_memory.max_protected_bytes)
            .key_prefix(settings.key_prefix.clone());
        if let Some(time_to_live) = settings.default_time_to_live {
            builder = builder.default_time_to_live(time_to_live);
        }
        if let Some(clock) = &self.clock {
            builder = builder.clock(Arc::clone(clock));
        }
        Ok(Arc::new(builder.build()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caching_abstractions::{
        CacheEntryOptions, CacheKey, ErrorCode, KeyPrefix, ManualClock, TimeToLive, seconds,
    };

    #[test]
    fn r1_the_manifest_says_what_it_is() {
        let manifest = InMemoryProvider::new().manifest();
        assert_eq!(manifest.name(), "inmemory");
        assert_eq!(manifest.supplied(), ["caching.distributed"]);
        assert!(manifest.needed().is_empty());
        assert!(manifest.is_fallback());
    }

    #[test]
    fn r2_nothing_configured_is_no_problem_and_no_room_is_one() {
        let provider = InMemoryProvider::new();
        let mut settings = CachingSettings::default();
        assert!(provider.check(&settings).is_empty());
        settings.in_memory.max_capacity_bytes = 0;
        settings.in_memory.max_protected_bytes = 0;
        let problems = provider.check(&settings);
        let subjects: Vec<_> = problems.iter().map(AssemblyProblem::subject).collect();
        assert_eq!(
            subjects,
            [
                "XiHan:Caching:InMemory:MaxCapacityBytes",
                "XiHan:Caching:InMemory:MaxProtectedBytes"
            ]
        );
    }

    #[tokio::test]
    async fn r3_the_started_store_has_the_configured_settings() {
        let clock = ManualClock::new();
        let mut settings = CachingSettings::default();
        settings.default_time_to_live = Some(TimeToLive::new(seconds(7)).unwrap());
        settings.key_prefix = Some(KeyPrefix::new("shop").unwrap());
        settings.in_memory.max_capacity_bytes = 1000;
        settings.in_memory.max_protected_bytes = 2000;
        let provider = InMemoryProvider::new().clock(Arc::new(clock));
        let store = provider.start(&settings).await.unwrap();

        let (key, options) = (CacheKey::new("a").unwrap(), CacheEntryOptions::default());
        assert!(store.try_add(&key, "1".into(), options).await.unwrap());
        assert_eq!(store.time_to_live(&key).await.unwrap(), Some(seconds(7)));

        let large = vec![0; 1500];
        let error = store.set(&key, large.clone().into(), options).await;
        assert!(error.is_ok(), "a protected entry is charged there");
        let other = CacheKey::new("b").unwrap();
        let error = store.set(&other, large.clone().into(), options).await;
        assert_eq!(error.unwrap_err().code(), ErrorCode::StoreFull);
        let error = store.try_add(&other, large.into(), options).await;
        assert_eq!(error.unwrap_err().code(), ErrorCode::StoreFull);
    }
}
