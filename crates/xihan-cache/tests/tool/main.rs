//! The tool as its users meet it: the real program, on real servers.
//!
//! Each module is a theme; a case that proves a rule of the specification bears its name.

#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code on plain threads; a test fails by panicking"
)]

mod support;

mod failures;
mod lock;
mod loss;
mod pages;
mod processes;
mod python;
mod remote;
mod remote_lock;
mod serve;
mod serve_ends;
mod serve_load;
mod signals;
mod terminal;
mod usage;
mod values;
