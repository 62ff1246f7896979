//! The remote provider of XiHan Caching: a store behind a gRPC server.

#[cfg(feature = "client")]
mod client;
mod generated;
mod redacted;
#[cfg(feature = "server")]
pub mod server;
#[cfg(any(feature = "client", feature = "server"))]
#[cfg_attr(
    not(all(feature = "client", feature = "server")),
    allow(dead_code, reason = "each side writes what the other one reads")
)]
mod wire;

/// The messages and services of the wire contract `xihan.caching.v1`.
pub use generated::v1 as proto;

#[cfg(feature = "client")]
pub use client::{RemoteProvider, RemoteStore, Transport};
