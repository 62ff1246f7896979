//! Configuration: where it comes from and what it means (spec part 7, C1 and C2).

mod caching;
mod configuration;
mod entry;
mod file;
mod reader;
mod secret;
mod section;
mod settings;
mod suggest;

pub use configuration::Configuration;
pub use secret::Secret;
pub use section::Section;
pub use settings::{
    CachingSettings, IdempotencySettings, InMemorySettings, RedisSettings, RemoteSettings,
};
pub(crate) use suggest::nearest;
