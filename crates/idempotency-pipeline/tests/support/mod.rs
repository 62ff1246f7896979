//! What the tests of this crate share.

use std::sync::Arc;

use caching_abstractions::{CacheStore, CachingServices, CachingSettings};
use conformance::ReferenceStore;

/// A store and settings, as an assembly hands them out.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) store: Arc<dyn CacheStore>,
    pub(crate) settings: CachingSettings,
}

impl Services {
    pub(crate) fn new() -> Self {
        Self { store: Arc::new(ReferenceStore::new()), settings: CachingSettings::default() }
    }
}

impl CachingServices for Services {
    fn store(&self) -> &Arc<dyn CacheStore> {
        &self.store
    }

    fn settings(&self) -> &CachingSettings {
        &self.settings
    }
}
