//! The remote provider of XiHan Caching: a store behind a gRPC server.

mod generated;

/// The messages and services of the wire contract `xihan.caching.v1`.
pub use generated::v1 as proto;
