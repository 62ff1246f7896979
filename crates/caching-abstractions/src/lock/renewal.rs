//! Keeping a lease alive while its handle lives (L12).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;
use tracing::debug;

use super::backoff::Backoff;
use super::grant::Grant;
use super::lease::Lease;
use crate::error::{CachingError, ErrorCode, Result};
use crate::expiration::TimeToLive;

/// Renews until the lease is lost or `ceiling`, counted from the acquisition, is reached.
///
/// The caller stops it by aborting the task.
pub(super) async fn keep_alive(grant: Arc<Grant>, ceiling: Duration) {
    // The end of the lease is watched beside the requests: an answer that does not come must not
    // delay the loss.
    let lost = pin!(grant.lost());
    let renewing = pin!(renew(&grant, ceiling));
    select(lost, renewing).await;
}

async fn renew(grant: &Grant, ceiling: Duration) {
    let interval = grant.time_to_live.as_duration() / 3;
    let mut backoff = Backoff::new(
        (interval / 16).max(Duration::from_millis(1)),
        (interval / 2).min(Duration::from_secs(1)),
    );
    loop {
        tokio::time::sleep(grant.lease().until(interval, grant.now())).await;
        let Some((lease, time_to_live)) = next_lease(grant, ceiling) else {
            debug!(key = %grant.key, "the ceiling is reached; the lock is renewed no more");
            return;
        };
        match extend(grant, time_to_live, interval).await {
            Ok(true) if grant.renewed(lease) => backoff.reset(),
            Ok(true) => return,
            Ok(false) => return grant.found_gone(),
            // What stands there is no token at all, so it is not ours.
            Err(error) if error.code() == ErrorCode::WrongKind => return grant.found_gone(),
            Err(error) => {
                debug!(key = %grant.key, %error, "a lock could not be renewed yet");
                tokio::time::sleep(backoff.pause()).await;
            }
        }
    }
}

/// Restarts the lease once, unless most of it is still to come. A store that does not answer leaves
/// it as it is.
pub(super) async fn restart(grant: &Grant) {
    let whole = grant.time_to_live.as_duration();
    let lease = Lease::new(grant.now(), grant.time_to_live);
    if !grant.is_kept() || grant.remaining() > whole.mul_f64(0.9) {
        return;
    }
    match extend(grant, grant.time_to_live, whole / 3).await {
        Ok(true) => {
            grant.renewed(lease);
        }
        Ok(false) => grant.found_gone(),
        Err(error) if error.code() == ErrorCode::WrongKind => grant.found_gone(),
        Err(error) => debug!(key = %grant.key, %error, "a lock could not be renewed"),
    }
}

/// The lease that a renewal sent now gives; none if that would not be longer than the present one.
fn next_lease(grant: &Grant, ceiling: Duration) -> Option<(Lease, TimeToLive)> {
    let now = grant.now();
    let allowed = ceiling.saturating_sub(now.since(grant.acquired));
    let time_to_live = TimeToLive::new(allowed.min(grant.time_to_live.as_duration())).ok()?;
    let lease = Lease::new(now, time_to_live);
    lease
        .outlives(&grant.lease())
        .then_some((lease, time_to_live))
}

async fn extend(grant: &Grant, time_to_live: TimeToLive, limit: Duration) -> Result<bool> {
    let token = grant.token.as_bytes();
    let request = grant.store.try_extend(&grant.key, token, time_to_live);
    tokio::time::timeout(limit, request)
        .await
        .unwrap_or_else(|_| Err(CachingError::unavailable("the store did not answer")))
}
