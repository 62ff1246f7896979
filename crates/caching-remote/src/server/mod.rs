//! The server: any [`CacheStore`](caching_abstractions::CacheStore) over gRPC.

mod access;
mod body;
mod builder;
mod connection;
mod deadline;
mod error;
mod guard;
mod health;
mod lease;
mod limits;
mod listen;
mod metrics;
mod operation;
mod reflection;
mod service;
mod session;
mod shared;
mod streams;
mod tls;
mod token;
mod work;

pub use builder::{StoreServer, StoreServerBuilder};
pub use error::ServerError;
pub use guard::StoreService;
pub use health::HealthService;
pub use limits::Limits;
pub use listen::Server;
pub use reflection::{ReflectionService, V1, V1Alpha};
pub use tls::TlsSettings;
pub use token::AccessToken;
