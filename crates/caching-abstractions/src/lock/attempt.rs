//! One request for a lease, and what is left to do when nobody learns its answer (L9).

use super::cleanup::Cleanup;
use super::grant::{Asked, Grant};
use super::lease::Moment;
use crate::error::{CachingError, Result};
use crate::expiration::TimeToLive;

/// Asks the store once; none if somebody else holds the lock.
///
/// # Cancellation safety
/// Dropped after it was first polled, it releases its token in the background.
pub(super) async fn attempt(asked: Asked) -> Result<Option<Grant>> {
    let mut unsettled = Unsettled {
        asked: Some(asked),
        granted: false,
    };
    match unsettled.ask().await {
        Ok(Some(fencing)) => unsettled.accept(fencing).map(Some),
        Ok(None) => {
            unsettled.asked = None;
            Ok(None)
        }
        Err(error) => {
            if !error.may_have_been_applied() {
                unsettled.asked = None;
            }
            Err(error)
        }
    }
}

/// A token that may stand in the store without a handle that knows it; dropping it takes it out.
struct Unsettled {
    /// None once it is settled.
    asked: Option<Asked>,
    granted: bool,
}

impl Unsettled {
    async fn ask(&self) -> Result<Option<u64>> {
        let Some(asked) = &self.asked else {
            return Ok(None);
        };
        let lease = asked
            .store
            .try_lease(&asked.key, &asked.token, asked.time_to_live);
        lease.await
    }

    fn accept(&mut self, fencing: u64) -> Result<Grant> {
        self.granted = true;
        let in_time = |asked: &mut Asked| !asked.lease().is_over(Moment::now(&*asked.clock));
        if let Some(asked) = self.asked.take_if(in_time) {
            return Ok(asked.granted(fencing));
        }
        let time_to_live = self.asked.as_ref().map(|asked| asked.time_to_live);
        Err(CachingError::unavailable(format!(
            "the store granted the lock only after its {} ms were over; use a longer time to live",
            time_to_live.map_or(0, TimeToLive::as_millis)
        )))
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        let (lease, runtime) = (asked.lease(), asked.runtime);
        Cleanup {
            store: asked.store,
            clock: asked.clock,
            key: asked.key,
            token: asked.token,
            lease,
            granted: self.granted,
            _ticket: asked.pending.ticket(),
        }
        .start(runtime.as_ref());
    }
}
