//! The order service as its clients meet it: the real program over real sockets.
//!
//! Each module is a theme; a case that proves a rule of the specification bears its name.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod support;

mod baggage;
mod configuration;
mod hanging_up;
mod health;
mod hostility;
mod instances;
mod operations;
mod protocol;
mod racing;
mod readme;
mod refusals;
mod remote;
mod reports;
mod scopes;
mod shutdown;
