//! A store that is obviously correct: the model others are measured against.

mod harness;
mod model;
mod store;

pub use harness::{ReferenceHarness, ReferenceRunning};
pub use store::ReferenceStore;
