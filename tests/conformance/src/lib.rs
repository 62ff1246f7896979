//! The conformance suite that every provider of XiHan Caching runs.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the whole crate is test code: a failed expectation is a failed test"
)]

pub mod cases;
mod harness;
mod history;
mod operation;
mod reference;
mod scene;
mod suite;

pub use harness::{Budgets, Gap, Pace, RunningStore, Setup, StoreHarness};
pub use history::{Call, Moments, is_linearizable};
pub use operation::{KEYS, Life, Operation, Outcome, rank_fencing_numbers};
pub use reference::{ReferenceHarness, ReferenceRunning, ReferenceStore};
pub use scene::{
    Client, Scene, ability, absent, bytes, holds, key, keys, left, listed, long, long_life, put,
    refused, text, token,
};
pub use suite::{CASES, Case, CaseBody, run};
