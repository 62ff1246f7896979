//! Configuration: where it comes from and what it means (spec part 7, C1 and C2).

mod secret;
mod settings;

pub use secret::Secret;
pub use settings::{
    CachingSettings, IdempotencySettings, InMemorySettings, RedisSettings, RemoteSettings,
};
