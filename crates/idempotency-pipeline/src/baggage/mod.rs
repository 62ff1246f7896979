//! The W3C `baggage` header and the idempotency key in it (H1, P13).
//!
//! The parser is strict about our own member and indifferent to everybody else's: a call whose key
//! cannot be read is refused, never treated as a call without a key.

mod child;
mod grammar;
mod header;
mod list;

pub use child::derive_child_key;
pub use header::idempotency_key_header;
pub use list::{Baggage, BaggageKeys};
