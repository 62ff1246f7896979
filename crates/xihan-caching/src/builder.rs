use std::sync::Arc;

use caching_abstractions::{
    AssemblyError, AssemblyProblem, CacheStore, CachingProvider, CachingSettings, Configuration,
    DistributedLock, MeteredStore, SharedCache,
};
use distcache_adapter::{CacheStoreDistributedCache, DistributedCache, ThreadStore};
use tracing::info;

use crate::Caching;
use crate::assembly::{self, Plan};
use crate::caching::Parts;

/// An assembly in the making: providers, features and configuration (R1). Nothing is global.
///
/// See the [crate's documentation](crate) for an example.
#[derive(Debug, Default)]
#[must_use = "an assembly does nothing until it is built"]
pub struct CachingBuilder {
    pub(crate) providers: Vec<Arc<dyn CachingProvider>>,
    pub(crate) features: Vec<(String, Vec<String>)>,
    pub(crate) configuration: Configuration,
    pub(crate) problems: Vec<AssemblyProblem>,
    distributed_cache: Option<Arc<dyn DistributedCache>>,
}

impl CachingBuilder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Registers a provider. Only the selected one is started (R2, R3).
    pub fn provider(mut self, provider: impl CachingProvider) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// Registers a feature of the application with the capabilities it needs.
    pub fn feature<C: Into<String>>(
        mut self,
        name: impl Into<String>,
        needs: impl IntoIterator<Item = C>,
    ) -> Self {
        let needs = needs.into_iter().map(Into::into).collect();
        self.features.push((name.into(), needs));
        self
    }

    /// The raw settings. Without this call every setting has its default: neither a file nor the
    /// environment is read.
    pub fn configuration(mut self, configuration: Configuration) -> Self {
        self.configuration = configuration;
        self
    }

    /// Problems that the application found in its own settings, to be reported together with all
    /// others.
    pub fn problems(mut self, problems: impl IntoIterator<Item = AssemblyProblem>) -> Self {
        self.problems.extend(problems);
        self
    }

    /// A distributed cache of the application's own, which wins over the provider's (R4).
    pub fn distributed_cache(mut self, cache: Arc<dyn DistributedCache>) -> Self {
        self.distributed_cache = Some(cache);
        self
    }

    /// Checks everything, then starts the selected provider.
    ///
    /// # Errors
    /// All problems at once, found before any connection is opened (R2, C1); or the reason why the
    /// selected provider cannot start. A backend that is away at present is no error: its store
    /// answers `CACHING_UNAVAILABLE_001` until it is there (S3).
    pub async fn build(self) -> Result<Caching, AssemblyError> {
        let Plan { provider, settings } = assembly::plan(&self)?;
        let provider_name = provider.manifest().name();
        let started = provider.start(&settings).await.map_err(|error| {
            AssemblyProblem::new(
                format!("provider `{provider_name}`"),
                format!("cannot start: {error}"),
                "correct its settings or its backend and start again",
            )
        })?;
        info!(provider = provider_name, "caching is assembled");
        let store: Arc<dyn CacheStore> = Arc::new(MeteredStore::new(started, provider_name));
        let distributed_cache = self
            .distributed_cache
            .unwrap_or_else(|| distributed_cache(&store, &provider, &settings));
        Ok(Caching(Arc::new(Parts {
            provider_name,
            settings,
            locks: DistributedLock::new(Arc::clone(&store)),
            shared_cache: SharedCache::new(Arc::clone(&store)),
            distributed_cache,
            store,
        })))
    }
}

/// The contract on the store; a networked provider's blocking face has a connection of its own.
fn distributed_cache(
    store: &Arc<dyn CacheStore>,
    provider: &Arc<dyn CachingProvider>,
    settings: &CachingSettings,
) -> Arc<dyn DistributedCache> {
    let cache = CacheStoreDistributedCache::new(Arc::clone(store));
    if !provider.manifest().is_networked() {
        return Arc::new(cache);
    }
    let (provider, settings) = (Arc::clone(provider), Arc::new(settings.clone()));
    let blocking = ThreadStore::new(move || {
        let (provider, settings) = (Arc::clone(&provider), Arc::clone(&settings));
        async move {
            let started = provider.start(&settings).await?;
            let name = provider.manifest().name();
            Ok(Arc::new(MeteredStore::new(started, name)) as Arc<dyn CacheStore>)
        }
    });
    Arc::new(cache.with_blocking_store(Arc::new(blocking)))
}
