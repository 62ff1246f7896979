//! The server over TCP, as a client of any language sees it.
#![cfg(all(feature = "client", feature = "server"))]
#![allow(
    clippy::unwrap_used,
    reason = "the whole crate is test code: a failed expectation is a failed test"
)]

mod access;
mod calls;
mod faults;
#[path = "../support/gated.rs"]
mod gated;
mod health;
mod intruders;
mod lasting;
mod limits;
mod metrics;
mod reflection;
mod sessions;
mod shutdown;
#[path = "../support/server.rs"]
mod support;
mod tls;
mod waiting;
