//! A small order service on XiHan Caching, the way a user would write one.
//!
//! - [`arguments`]: the command line and the configuration.
//! - [`authentication`]: API keys to principals and tenants.
//! - [`orders`]: the orders themselves.
//! - [`operations`]: what the service does, once for every transport.
//! - [`service`](mod@service): assembly.
//! - [`http`]: routes, metrics and health.
//! - [`server`]: connections, and how they end.

pub mod arguments;
pub mod authentication;
pub mod http;
pub mod operations;
pub mod orders;
pub mod server;
pub mod service;
