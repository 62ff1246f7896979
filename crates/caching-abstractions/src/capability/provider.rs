use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::AssemblyProblem;
use crate::config::CachingSettings;
use crate::error::Result;
use crate::store::CacheStore;

/// The capabilities this workspace knows.
#[derive(Debug)]
#[non_exhaustive]
pub struct CachingCapabilities;

impl CachingCapabilities {
    /// A store, its lock, the shared cache and the distributed-cache contract on it.
    pub const DISTRIBUTED: &'static str = "caching.distributed";
}

/// What a provider says about itself at registration (R1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderManifest {
    name: &'static str,
    supplies: Vec<&'static str>,
    needs: Vec<&'static str>,
    fallback: bool,
    networked: bool,
}

impl ProviderManifest {
    /// A manifest of the provider `name`, the value that configuration selects it by.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            supplies: Vec::new(),
            needs: Vec::new(),
            fallback: false,
            networked: false,
        }
    }

    /// Adds a capability that the provider supplies.
    #[must_use]
    pub fn supplies(mut self, capability: &'static str) -> Self {
        self.supplies.push(capability);
        self
    }

    /// Adds a capability that the provider needs from others.
    #[must_use]
    pub fn needs(mut self, capability: &'static str) -> Self {
        self.needs.push(capability);
        self
    }

    /// Makes it a fallback: used when nothing else is chosen or registered (R2).
    #[must_use]
    pub fn fallback(mut self) -> Self {
        self.fallback = true;
        self
    }

    /// Says that the data lies outside of this process: whatever starts the provider once more
    /// reaches the same entries. The blocking face of the distributed cache then has a connection
    /// of its own (D3).
    #[must_use]
    pub fn networked(mut self) -> Self {
        self.networked = true;
        self
    }

    /// The provider's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The capabilities it supplies.
    pub fn supplied(&self) -> &[&'static str] {
        &self.supplies
    }

    /// The capabilities it needs.
    pub fn needed(&self) -> &[&'static str] {
        &self.needs
    }

    /// Whether it is a fallback.
    pub fn is_fallback(&self) -> bool {
        self.fallback
    }

    /// Whether the data lies outside of this process.
    pub fn is_networked(&self) -> bool {
        self.networked
    }
}

/// A supplier of `caching.distributed`: implement this beside [`CacheStore`] to write a provider.
#[async_trait]
pub trait CachingProvider: fmt::Debug + Send + Sync + 'static {
    /// What the provider supplies and needs.
    fn manifest(&self) -> ProviderManifest;

    /// The problems of `settings` for this provider, found without opening a connection; called
    /// only if it is selected.
    fn check(&self, settings: &CachingSettings) -> Vec<AssemblyProblem>;

    /// Starts the provider and gives its store; called only if it is selected (R3).
    ///
    /// Called once; for a [networked](ProviderManifest::networked) provider a second time, on
    /// another runtime, if the application uses the blocking face of the distributed cache.
    ///
    /// A backend that is away at present is no error: the store answers
    /// `CACHING_UNAVAILABLE_001` until it is there (S3).
    ///
    /// # Errors
    /// What cannot heal by waiting, such as a backend that is too old.
    async fn start(&self, settings: &CachingSettings) -> Result<Arc<dyn CacheStore>>;
}
