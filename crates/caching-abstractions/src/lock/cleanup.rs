//! Giving a lease back when nobody waits for it any more (L6, L9).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::poll_immediate;
use tokio::runtime::Handle;
use tracing::{debug, warn};

use super::backoff::Backoff;
use super::lease::{Lease, Moment};
use super::pending::Ticket;
use crate::clock::Clock;
use crate::error::{CachingError, ErrorCode, Result};
use crate::key::CacheKey;
use crate::store::{CacheStore, LeaseToken};

/// How long one request may take before it is given up and sent again.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// When to look again after "not there" for a lease whose request may still be on its way.
const SECOND_LOOKS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(2)];

/// One token to take out of the store in the background.
#[derive(Clone)]
pub(super) struct Cleanup {
    pub(super) store: Arc<dyn CacheStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) key: CacheKey,
    pub(super) token: LeaseToken,
    pub(super) lease: Lease,
    /// Whether the store is known to have applied the lease. If not, "the token is not there" may
    /// only mean "not yet".
    pub(super) granted: bool,
    /// Counts it among those that are under way, as long as it lives.
    pub(super) _ticket: Ticket,
}

impl Cleanup {
    /// Starts the release on the current runtime, or else on `acquired_on`; without either the
    /// lease runs out by itself. Never panics.
    pub(super) fn start(self, acquired_on: Option<&Handle>) {
        let current = Handle::try_current().ok();
        let mut runtimes = Vec::with_capacity(2);
        // The last one is tried first. A runtime that drops this very task is shutting down.
        if let Some(handle) = acquired_on {
            runtimes.push(handle.clone());
        }
        if let Some(handle) = current {
            runtimes.retain(|other| other.id() != handle.id());
            runtimes.push(handle);
        }
        Job {
            cleanup: self,
            runtimes,
            done: false,
        }
        .spawn();
    }

    /// Asks until there is a definite answer or the lease has run out, and at least once.
    async fn run(&self) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut second_looks = SECOND_LOOKS.iter();
        loop {
            let pause = match self.ask().await {
                Ok(true) => {
                    debug!(key = %self.key, "an abandoned lease was released");
                    return;
                }
                Ok(false) if self.granted => return,
                Ok(false) => match second_looks.next() {
                    Some(pause) => *pause,
                    None => return,
                },
                Err(error) if error.code() == ErrorCode::StoreUnavailable => {
                    debug!(key = %self.key, %error, "an abandoned lease is not yet released");
                    backoff.pause()
                }
                Err(error) => {
                    warn!(key = %self.key, %error, "an abandoned lease is left to run out");
                    return;
                }
            };
            if self.lease.has_run_out(Moment::now(&*self.clock)) {
                return;
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn ask(&self) -> Result<bool> {
        let mut request = pin!(self.store.release(&self.key, &self.token));
        // A store that answers at once needs no timer, which this runtime may not have.
        if let Some(answer) = poll_immediate(&mut request).await {
            return answer;
        }
        tokio::time::timeout(REQUEST_LIMIT, request)
            .await
            .unwrap_or_else(|_| Err(CachingError::unavailable("the store did not answer")))
    }
}

/// A cleanup on its way to a runtime that runs it to its end.
struct Job {
    cleanup: Cleanup,
    runtimes: Vec<Handle>,
    done: bool,
}

impl Job {
    fn spawn(mut self) {
        let Some(runtime) = self.runtimes.pop() else {
            debug!(key = %self.cleanup.key, "no runtime left; an abandoned lease runs out");
            self.done = true;
            return;
        };
        // A runtime that is shut down drops the task at once, and `drop` moves on to the next.
        runtime.spawn(async move {
            let mut job = self;
            job.cleanup.run().await;
            job.done = true;
        });
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.done {
            Self {
                cleanup: self.cleanup.clone(),
                runtimes: std::mem::take(&mut self.runtimes),
                done: false,
            }
            .spawn();
        }
    }
}
