use std::fmt;
use std::sync::OnceLock;

use caching_abstractions::{CachingError, ErrorCode};
use metrics::Counter;

/// How calls with a key ended, as `xihan_caching_idempotency_total{outcome}` (spec part 10).
///
/// A counter is looked up when it is first used, so an application installs its recorder before it
/// serves.
#[derive(Default)]
pub(super) struct Meters([OnceLock<Counter>; End::NAMES.len()]);

#[derive(Clone, Copy)]
enum End {
    Executed,
    Failed,
    Replayed,
    InProgress,
    Conflict,
    Invalid,
    Unavailable,
    Unknown,
    RecordLost,
    MarkerLost,
}

impl End {
    const NAMES: [&'static str; 10] = [
        "executed",
        "exception",
        "replayed",
        "in_progress",
        "conflict",
        "invalid",
        "unavailable",
        "unknown",
        "record_lost",
        "marker_lost",
    ];
}

impl Meters {
    fn count(&self, end: End) {
        let index = end as usize;
        self.0[index]
            .get_or_init(|| {
                metrics::counter!("xihan_caching_idempotency_total", "outcome" => End::NAMES[index])
            })
            .increment(1);
    }

    pub(super) fn executed(&self) {
        self.count(End::Executed);
    }

    pub(super) fn failed(&self) {
        self.count(End::Failed);
    }

    pub(super) fn replayed(&self) {
        self.count(End::Replayed);
    }

    pub(super) fn unknown(&self) {
        self.count(End::Unknown);
    }

    pub(super) fn record_lost(&self) {
        self.count(End::RecordLost);
    }

    pub(super) fn marker_lost(&self) {
        self.count(End::MarkerLost);
    }

    /// Counts a refusal of the stage and hands it on.
    pub(super) fn refused(&self, error: CachingError) -> CachingError {
        self.count(match error.code() {
            ErrorCode::InProgress => End::InProgress,
            ErrorCode::InvalidKey => End::Invalid,
            ErrorCode::StoreUnavailable | ErrorCode::StoreFull => End::Unavailable,
            _ => End::Conflict,
        });
        error
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meters")
    }
}
