//! What one successful acquisition left in the store, shared by its handle and its renewal.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, Notify};

use super::cleanup::Cleanup;
use super::lease::{Lease, Moment};
use super::observe;
use super::pending::Pending;
use crate::clock::Clock;
use crate::error::{ErrorCode, Result};
use crate::expiration::TimeToLive;
use crate::key::CacheKey;
use crate::store::{CacheStore, LeaseToken};

/// How often the wall clock is asked while a lease runs: timers stand still while the machine
/// sleeps.
const WALL_CLOCK_LOOK: Duration = Duration::from_secs(1);

/// One lease and what is known about it.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) store: Arc<dyn CacheStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) key: CacheKey,
    pub(super) token: LeaseToken,
    pub(super) time_to_live: TimeToLive,
    pub(super) fencing: u64,
    /// Before the request that granted it was sent.
    pub(super) acquired: Moment,
    /// Where it was acquired, for the background release.
    pub(super) runtime: Option<Handle>,
    pending: Pending,
    status: parking_lot::Mutex<Status>,
    /// The status changed.
    changed: Notify,
    /// One release request at a time.
    releasing: Mutex<()>,
}

#[derive(Clone, Copy, Debug)]
struct Status {
    phase: Phase,
    lease: Lease,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Held,
    /// A release was asked for and has no definite answer yet.
    Releasing,
    /// Over by a local clock; the token may still stand in the store.
    Expired,
    /// The store said that the token is not there.
    Gone,
    /// The store said that it took the token out for us.
    Released,
}

impl Phase {
    /// Whether the store is known not to hold the token.
    fn is_settled(self) -> bool {
        matches!(self, Self::Gone | Self::Released)
    }
}

/// What an acquisition asks for and with what.
pub(super) struct Asked {
    pub(super) store: Arc<dyn CacheStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) key: CacheKey,
    pub(super) token: LeaseToken,
    pub(super) time_to_live: TimeToLive,
    pub(super) runtime: Option<Handle>,
    pub(super) pending: Pending,
    pub(super) before: Moment,
}

impl Asked {
    pub(super) fn lease(&self) -> Lease {
        Lease::new(self.before, self.time_to_live)
    }

    pub(super) fn granted(self, fencing: u64) -> Grant {
        let status = Status {
            phase: Phase::Held,
            lease: self.lease(),
        };
        Grant {
            store: self.store,
            clock: self.clock,
            key: self.key,
            token: self.token,
            time_to_live: self.time_to_live,
            fencing,
            acquired: self.before,
            runtime: self.runtime,
            pending: self.pending,
            status: parking_lot::Mutex::new(status),
            changed: Notify::new(),
            releasing: Mutex::new(()),
        }
    }
}

impl Grant {
    pub(super) fn now(&self) -> Moment {
        Moment::now(&*self.clock)
    }

    fn status(&self) -> Status {
        *self.status.lock()
    }

    /// Changes the status, and tells who waits for that if `change` says that it did.
    fn change(&self, change: impl FnOnce(&mut Status) -> bool) -> bool {
        let is_changed = change(&mut self.status.lock());
        if is_changed {
            self.changed.notify_waiters();
        }
        is_changed
    }

    pub(super) fn lease(&self) -> Lease {
        self.status().lease
    }

    /// What is left of the time in which the holder may rely on the lease.
    pub(super) fn remaining(&self) -> Duration {
        let status = self.status();
        match status.phase {
            Phase::Held => status.lease.trusted_for(self.now()),
            _ => Duration::ZERO,
        }
    }

    /// Whether the holder has neither begun to give it back nor learned that it is over.
    pub(super) fn is_kept(&self) -> bool {
        self.status().phase == Phase::Held
    }

    /// From here on the holder does not rely on the lease.
    pub(super) fn begin_release(&self) {
        // Whoever waits for a loss goes on waiting, so nobody has to be told.
        let mut status = self.status.lock();
        if status.phase == Phase::Held {
            status.phase = Phase::Releasing;
        }
    }

    /// Compares and deletes; see `LockHandle::release`.
    pub(super) async fn release(&self) -> Result<bool> {
        let _turn = self.releasing.lock().await;
        if self.status().phase.is_settled() {
            return Ok(false);
        }
        let released = match self.store.release(&self.key, &self.token).await {
            Ok(released) => released,
            // What stands there is no token at all, so it is not ours.
            Err(error) if error.code() == ErrorCode::WrongKind => false,
            Err(error) => {
                observe::failed_release(self.key.as_str(), &error);
                return Err(error);
            }
        };
        self.settle(released);
        Ok(released)
    }

    fn settle(&self, released: bool) {
        self.change(|status| {
            status.phase = if released {
                Phase::Released
            } else {
                Phase::Gone
            };
            true
        });
        observe::held_for(self.now().since(self.acquired));
        if !released {
            observe::late_release(self.key.as_str());
        }
    }

    /// Hands the token to the background if the store may still hold it.
    ///
    /// A renewal that was stopped may have reached the store all the same.
    pub(super) fn abandon(&self, was_renewed: bool) {
        let status = self.status();
        if status.phase.is_settled() {
            return;
        }
        let now = self.now();
        observe::held_for(now.since(self.acquired));
        let lease = if was_renewed {
            Lease::new(now, self.time_to_live)
        } else {
            status.lease
        };
        Cleanup {
            store: Arc::clone(&self.store),
            clock: Arc::clone(&self.clock),
            key: self.key.clone(),
            token: self.token.clone(),
            lease,
            granted: true,
            _ticket: self.pending.ticket(),
        }
        .start(self.runtime.as_ref());
    }

    /// Puts a renewed lease in place. `false` if the old one was over or given back by now: a loss
    /// that may have been seen is not taken back.
    pub(super) fn renewed(&self, lease: Lease) -> bool {
        let now = self.now();
        let in_time = self.change(|status| {
            let in_time = status.phase == Phase::Held && !status.lease.is_over(now);
            if in_time {
                status.lease = lease;
            }
            in_time
        });
        if !in_time {
            self.found_over();
        }
        in_time
    }

    /// A local clock said that the lease is over.
    fn found_over(&self) {
        if self.move_from_held(Phase::Expired) {
            observe::lost(self.key.as_str(), "expired");
        }
    }

    /// The store said that somebody else's value, or nothing, stands there.
    pub(super) fn found_gone(&self) {
        if self.move_from_held(Phase::Gone) {
            observe::lost(self.key.as_str(), "taken");
            observe::held_for(self.now().since(self.acquired));
        }
    }

    /// Completes when the lease is over before it was given back; after that every call completes
    /// at once.
    pub(super) async fn lost(&self) {
        loop {
            // A change after this is not missed, also before it is first polled.
            let changed = pin!(self.changed.notified());
            let status = self.status();
            match status.phase {
                Phase::Expired | Phase::Gone => return,
                Phase::Released => return pending().await,
                Phase::Held | Phase::Releasing => {}
            }
            let left = status.lease.trusted_for(self.now());
            if left.is_zero() {
                return self.found_over();
            }
            let look = pin!(tokio::time::sleep(left.min(WALL_CLOCK_LOOK)));
            select(changed, look).await;
        }
    }

    fn move_from_held(&self, to: Phase) -> bool {
        self.change(|status| {
            let held = status.phase == Phase::Held;
            if held {
                status.phase = to;
            }
            held
        })
    }
}
