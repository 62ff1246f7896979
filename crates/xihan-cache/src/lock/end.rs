//! Giving the lock back.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use xihan_caching::{CacheKey, CacheStore, CachingError, LockHandle, TimeToLive};

/// How long a store that is away is asked again, before the lease is left to run out.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);

/// What became of the lock.
#[derive(Debug)]
pub(super) enum Given {
    /// It is free, or will be when it was held long enough.
    Back,
    /// It was not ours any more.
    Missing,
    /// Nobody knows; it runs out by itself.
    Unknown(CachingError),
}

/// Gives the lock back, or shortens its lease to `hold` from now, so that it is held as long as it
/// has to be although this process ends.
pub(super) async fn give_back(
    handle: LockHandle,
    store: &dyn CacheStore,
    hold: Option<TimeToLive>,
) -> Given {
    let end = Instant::now() + PATIENCE;
    let mut first_error = None;
    loop {
        let answer = match hold {
            None => handle.release().await,
            Some(hold) => shorten(&handle, store, hold).await,
        };
        let error = match answer {
            Ok(true) => break leave(handle, Given::Back),
            // What failed before may have been applied all the same: then it was ours.
            Ok(false) if first_error.is_some() => break leave(handle, Given::Back),
            Ok(false) => break leave(handle, Given::Missing),
            Err(error) => error,
        };
        if Instant::now() + PAUSE >= end {
            break leave(handle, Given::Unknown(first_error.unwrap_or(error)));
        }
        first_error.get_or_insert(error);
        sleep(PAUSE).await;
    }
}

/// Gives a lock back that is over by our clock and may still stand in the store. Whether that
/// works does not matter.
pub(super) async fn give_up(handle: LockHandle) {
    let _ = timeout(PATIENCE, handle.release()).await;
    leave(handle, ());
}

/// Lets the lease be as it is.
pub(super) fn leave<T>(handle: LockHandle, outcome: T) -> T {
    // Dropping it would release in the background what is to be held on, or is settled anyway.
    std::mem::forget(handle);
    outcome
}

async fn shorten(
    handle: &LockHandle,
    store: &dyn CacheStore,
    hold: TimeToLive,
) -> Result<bool, CachingError> {
    // A renewal would make the lease longer again.
    handle.keep_alive_up_to(Duration::ZERO);
    let key = CacheKey::new(format!("lock:{}", handle.resource()))?;
    store
        .try_extend(&key, handle.token().as_bytes(), hold)
        .await
}
