//! One request for a lease, and what is left to do when nobody learns its answer (L9).

use std::sync::Arc;

use super::cleanup::Cleanup;
use super::grant::{Asked, Grant};
use super::lease::Moment;
use crate::error::{CachingError, Result};

/// Asks the store once; none if somebody else holds the lock.
///
/// # Cancellation safety
/// Dropped after it was first polled, it releases its token in the background.
pub(super) async fn attempt(asked: Asked) -> Result<Option<Grant>> {
    let mut unsettled = Unsettled {
        asked,
        open: true,
        granted: false,
    };
    let asked = &unsettled.asked;
    let answer = asked
        .store
        .try_lease(&asked.key, &asked.token, asked.time_to_live)
        .await;
    match answer {
        Ok(Some(fencing)) => unsettled.accept(fencing).map(Some),
        Ok(None) => {
            unsettled.open = false;
            Ok(None)
        }
        Err(error) => {
            unsettled.open = error.may_have_been_applied();
            Err(error)
        }
    }
}

/// A token that may stand in the store without a handle that knows it; dropping it takes it out.
struct Unsettled {
    asked: Asked,
    open: bool,
    granted: bool,
}

impl Unsettled {
    fn accept(&mut self, fencing: u64) -> Result<Grant> {
        self.granted = true;
        let asked = &self.asked;
        if asked.lease().is_over(Moment::now(&*asked.clock)) {
            return Err(CachingError::unavailable(format!(
                "the store granted the lock only after its {} ms were over; use a longer time to live",
                asked.time_to_live.as_millis()
            )));
        }
        self.open = false;
        Ok(asked.granted(fencing))
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let asked = &self.asked;
        Cleanup {
            store: Arc::clone(&asked.store),
            clock: Arc::clone(&asked.clock),
            key: asked.key.clone(),
            token: asked.token.clone(),
            lease: asked.lease(),
            granted: self.granted,
            _ticket: asked.pending.ticket(),
        }
        .start(asked.runtime.as_ref());
    }
}
