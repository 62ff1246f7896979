//! The pipeline and its Idempotency stage, rule by rule (spec parts 6 and 7).
//!
//! Each module is a theme, and each case is named after the rule it proves.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the whole crate is test code: a failed expectation is a failed test"
)]

mod support;

mod exceptions;
mod first_poll;
mod interleavings;
mod limits;
mod long_running;
mod nested;
mod outages;
mod ownership;
mod recording;
mod refusals;
mod repeats;
mod runtimes;
mod scopes;
mod secrets;
mod shutdown;
mod stages;
mod transactions;

#[cfg(feature = "http")]
mod answers;
#[cfg(feature = "http")]
mod disconnects;
#[cfg(feature = "http")]
mod headers;
#[cfg(feature = "http")]
mod racing;
#[cfg(feature = "http")]
mod transports;
#[cfg(feature = "http")]
mod unread;
