use std::sync::Arc;

use crate::config::CachingSettings;
use crate::store::CacheStore;

/// What an assembly hands to the code above it: the store and the settings, whatever assembled
/// them.
///
/// Code that needs a store takes `&dyn CachingServices` (or a generic over it) and so knows
/// neither the facade nor a provider.
pub trait CachingServices: Send + Sync {
    /// The selected provider's store, the same instance for everybody (R3).
    fn store(&self) -> &Arc<dyn CacheStore>;

    /// The checked settings of the section `XiHan:Caching`.
    fn settings(&self) -> &CachingSettings;
}

impl<S: CachingServices + ?Sized> CachingServices for &S {
    fn store(&self) -> &Arc<dyn CacheStore> {
        (**self).store()
    }

    fn settings(&self) -> &CachingSettings {
        (**self).settings()
    }
}

impl<S: CachingServices + ?Sized> CachingServices for Arc<S> {
    fn store(&self) -> &Arc<dyn CacheStore> {
        (**self).store()
    }

    fn settings(&self) -> &CachingSettings {
        (**self).settings()
    }
}
