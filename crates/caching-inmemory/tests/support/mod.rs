//! Short names for the tests of this crate.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use std::time::Duration;

use caching_abstractions::{
    CacheEntryOptions, CacheKey, ErrorCode, ManualClock, Result, TimeToLive, hours,
};
use caching_inmemory::{InMemoryStore, InMemoryStoreBuilder};
use futures_util::FutureExt;

/// The outcome of a future that never waits.
pub(crate) fn now<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    future.now_or_never().expect("the store never waits")
}

/// The outcome of an operation that succeeds.
pub(crate) fn done<T>(future: impl Future<Output = Result<T>>) -> T {
    now(future).unwrap()
}

pub(crate) fn key(text: impl AsRef<str>) -> CacheKey {
    CacheKey::new(text.as_ref()).unwrap()
}

/// Options with a fixed lifetime.
pub(crate) fn lives(lifetime: Duration) -> CacheEntryOptions {
    CacheEntryOptions::time_to_live(lifetime).unwrap()
}

/// Options with a lifetime that no test reaches.
pub(crate) fn long() -> CacheEntryOptions {
    lives(hours(1))
}

pub(crate) fn slides(period: Duration) -> CacheEntryOptions {
    CacheEntryOptions::sliding_expiration(period).unwrap()
}

pub(crate) fn ttl(lifetime: Duration) -> TimeToLive {
    TimeToLive::new(lifetime).unwrap()
}

/// A store on a clock that is moved by hand.
pub(crate) fn on_manual_clock(builder: InMemoryStoreBuilder) -> (InMemoryStore, ManualClock) {
    let clock = ManualClock::new();
    (builder.clock(Arc::new(clock.clone())).build(), clock)
}

/// Asserts that a write was refused because the store is full.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T>) {
    assert_eq!(result.unwrap_err().code(), ErrorCode::StoreFull);
}
