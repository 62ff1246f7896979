//! The remote provider of XiHan Caching: a store behind a gRPC server.

mod generated;
mod redacted;
#[cfg(feature = "server")]
pub mod server;
#[cfg(any(feature = "client", feature = "server"))]
mod wire;

/// The messages and services of the wire contract `xihan.caching.v1`.
pub use generated::v1 as proto;
