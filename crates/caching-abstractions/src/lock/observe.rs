//! Metrics and events of the lock; no label holds a resource, a key or a token.

use std::time::Duration;

use metrics::{counter, histogram};
use tracing::{debug, warn};

use crate::error::{CachingError, ErrorCode, Result};

/// Counts how an acquisition ended, with the time it took.
pub(super) fn acquisition<T>(
    key: &str,
    waited: Duration,
    result: Result<Option<T>, &CachingError>,
) {
    let outcome = match result {
        Ok(Some(_)) => "acquired",
        Ok(None) => "held",
        Err(error) if error.code() == ErrorCode::LockHeld => "timeout",
        Err(error) if error.code() == ErrorCode::StoreUnavailable => "unavailable",
        Err(_) => "refused",
    };
    counter!("xihan_caching_lock_acquisitions_total", "outcome" => outcome).increment(1);
    histogram!("xihan_caching_lock_wait_seconds", "outcome" => outcome)
        .record(waited.as_secs_f64());
    match result {
        Err(error) => debug!(key, outcome, %error, "lock acquisition"),
        Ok(_) => debug!(key, outcome, "lock acquisition"),
    }
}

/// Records how long a lock was held, once per grant.
pub(super) fn held_for(held: Duration) {
    histogram!("xihan_caching_lock_hold_seconds").record(held.as_secs_f64());
}

/// Counts a lock that was lost while it was held.
pub(super) fn lost(key: &str, reason: &'static str) {
    counter!("xihan_caching_lock_losses_total", "reason" => reason).increment(1);
    warn!(key, reason, "a lock was lost while it was held");
}

/// Counts a release that came after the lease was over.
pub(super) fn late_release(key: &str) {
    counter!("xihan_caching_lock_late_releases_total").increment(1);
    warn!(key, "a lock was over before it was released");
}

/// Counts a release without a definite answer.
pub(super) fn failed_release(key: &str, error: &CachingError) {
    counter!("xihan_caching_lock_failed_releases_total").increment(1);
    warn!(key, %error, "a lock could not be released yet");
}
