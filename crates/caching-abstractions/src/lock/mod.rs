//! The lease lock (spec part 5), written once on [`CacheStore`](crate::CacheStore).

mod attempt;
mod backoff;
mod cleanup;
mod distributed;
mod grant;
mod handle;
mod lease;
mod multi;
mod observe;
mod pending;
mod queue;
mod renewal;
mod waiting;

#[cfg(test)]
mod tests;

pub use distributed::DistributedLock;
pub use handle::LockHandle;
pub use multi::MultiLockHandle;

use crate::error::Result;
use crate::key::CacheKey;

const KEY_PREFIX: &str = "lock:";

/// The key that a lock on `resource` leases (L1).
fn key_of(resource: &str) -> Result<CacheKey> {
    CacheKey::new([KEY_PREFIX, resource].concat())
}

/// The resource that `key` locks.
fn resource_of(key: &CacheKey) -> &str {
    let text = key.as_str();
    text.strip_prefix(KEY_PREFIX).unwrap_or(text)
}
