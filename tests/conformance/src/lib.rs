//! The conformance suite that every provider of XiHan Caching runs: one list of cases, one test
//! for each, every rule of spec parts 1 to 3 on every operation of
//! [`CacheStore`](caching_abstractions::CacheStore), and part 5's lease lock on top.
//!
//! # Proving a provider
//!
//! Say how a store is started for one case, and expand the list in a test file:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use async_trait::async_trait;
//! use caching_abstractions::{CacheStore, KeyPrefix, ManualClock};
//! use conformance::{Gap, ReferenceStore, RunningStore, Setup, StoreHarness};
//!
//! #[derive(Debug)]
//! struct MyHarness;
//!
//! #[async_trait]
//! impl StoreHarness for MyHarness {
//!     // What the provider cannot do. The suite fails if one of these is no gap, too.
//!     fn gaps(&self) -> &'static [Gap] {
//!         &[Gap::ForeignValue, Gap::Outage, Gap::Restart, Gap::Clock]
//!     }
//!
//!     async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
//!         let clock = ManualClock::new();
//!         let store = ReferenceStore::with_setup(Arc::new(clock.clone()), &setup);
//!         Ok(Box::new(MyStore { store, clock }))
//!     }
//! }
//!
//! struct MyStore {
//!     store: ReferenceStore,
//!     clock: ManualClock,
//! }
//!
//! #[async_trait]
//! impl RunningStore for MyStore {
//!     async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
//!         Arc::new(self.store.with_prefix(prefix))
//!     }
//!
//!     // Without this the suite sleeps.
//!     async fn pass(&self, duration: Duration) {
//!         self.clock.advance(duration);
//!     }
//! }
//!
//! conformance::suite!(MyHarness);
//! ```
//!
//! A networked provider says so with [`Pace::networked`], or a [`Pace`] of its own. Each case
//! starts its store anew and several run at once; a shared server therefore gives each case a part
//! of its own.
//!
//! # Writing a case
//!
//! A case is a function in [`cases`] that takes the harness, starts a [`Scene`] and panics where
//! the store breaks the rule it is named after. It stands in the list of [`suite!`], and a store
//! that it fails on stands in this crate's tests. Lifetimes are in ticks ([`Pace::tick`]), never
//! in time that a slow store would need for the operations themselves. What only some stores can
//! do is asked for with [`ability`], which holds the harness to the gaps it declares.
//!
//! # Models
//!
//! [`ReferenceStore`] is a store that is obviously correct, for tests that want no provider.
//! [`Operation`] and [`Outcome`] compare other stores with it, and [`is_linearizable`] decides
//! whether what concurrent clients saw could have happened one step at a time.
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
