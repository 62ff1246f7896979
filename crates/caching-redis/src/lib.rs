//! The Redis and Valkey provider of XiHan Caching: the store that several instances share.
//!
//! - [`RedisProvider`] is registered at assembly; it supplies `caching.distributed`.
//! - [`RedisStore`] is the store itself, for programs and tests that need no assembly.
//!
//! # How it keeps its promises
//!
//! - Each operation is one command or one script, which the server runs in one atomic step. The
//!   scripts are files in `src/scripts`, loaded when a connection opens and sent again where a
//!   server has lost them.
//! - A connection never reconnects and never sends anything twice. When it breaks, everything in
//!   it fails and nothing of it is sent later (S5); the provider then opens another one, for ever,
//!   with at most a second between two attempts (S3).
//! - Only reads and `try_lease` are repeated after a lost answer (S4). Where a server refuses a
//!   command without having executed it, such as a node of a Cluster that has given a slot away,
//!   the command goes to the right one.
//! - Lock values are the bare token (L3), and entries without sliding expiration are the plain
//!   value, so that other programs read them and locks of both exclude each other.
//!
//! The layout of the keys is in `docs/redis.md`, what an operator has to know in
//! `docs/operations.md`.

mod client;
mod cluster;
mod connection;
mod error;
mod inner;
mod keyspace;
mod layout;
mod link;
mod locator;
mod outbox;
mod provider;
mod reply;
mod request;
mod scan;
mod script;
mod server;
mod store;
mod tls;
mod url;
mod value;
mod wake;
mod wire;

pub use provider::RedisProvider;
pub use store::RedisStore;
