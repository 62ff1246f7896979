//! The task that frees what has expired.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::backing::Backing;

const INTERVAL: Duration = Duration::from_secs(1);

/// Starts a sweeper on the current runtime unless one runs; without a runtime there is none.
///
/// Nothing depends on it but memory: expired entries are invisible anyway, and a write that needs
/// their room drops them itself. The sweeper ends with the store, when the store is empty, and
/// with its runtime; the next write then starts another one.
pub(crate) fn ensure(backing: &Arc<Backing>) {
    if backing.sweeping.load(Ordering::Relaxed) {
        return;
    }
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    if !backing.sweeping.swap(true, Ordering::AcqRel) {
        runtime.spawn(run(Mark::of(backing)));
    }
}

/// The mark that a sweeper runs; given back also when a runtime that ends drops the task.
struct Mark {
    backing: Weak<Backing>,
    is_held: bool,
}

impl Mark {
    fn of(backing: &Arc<Backing>) -> Self {
        Self {
            backing: Arc::downgrade(backing),
            is_held: true,
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // A runtime without a timer makes the task panic. The mark then stays: another sweeper
        // would fare no better.
        if self.is_held
            && !std::thread::panicking()
            && let Some(backing) = self.backing.upgrade()
        {
            backing.sweeping.store(false, Ordering::SeqCst);
        }
    }
}

async fn run(mut mark: Mark) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(backing) = mark.backing.upgrade() else {
            return;
        };
        sweep(&backing);
        if is_over(&backing) {
            mark.is_held = false;
            return;
        }
    }
}

/// Whether the store is empty and nobody wrote to it meanwhile; the mark is then given back.
fn is_over(backing: &Backing) -> bool {
    if !is_empty(backing) {
        return false;
    }
    backing.sweeping.store(false, Ordering::SeqCst);
    // A write in between saw the mark and started nothing; or it started a new sweeper.
    is_empty(backing) || backing.sweeping.swap(true, Ordering::SeqCst)
}

fn is_empty(backing: &Backing) -> bool {
    backing.evictable.settle();
    backing.protected.used() == 0 && backing.evictable.is_empty()
}

/// Frees what has expired and publishes the used bytes.
pub(crate) fn sweep(backing: &Backing) {
    backing.drop_expired();
    backing.evictable.settle();
    metrics::gauge!("xihan_caching_store_bytes", "kind" => "protected")
        .set(backing.protected.used() as f64);
    metrics::gauge!("xihan_caching_store_bytes", "kind" => "evictable")
        .set(backing.evictable.used_bytes() as f64);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use caching_abstractions::{CacheEntryOptions, CacheKey, CacheStore};
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::sweep;
    use crate::InMemoryStore;

    #[tokio::test]
    async fn s2_used_bytes_are_gauges() {
        let (store, options) = (InMemoryStore::new(), CacheEntryOptions::default());
        let (key, value) = (CacheKey::new("key").unwrap(), Bytes::from_static(b"value"));
        store.try_add(&key, value.clone(), options).await.unwrap();
        let other = CacheKey::new("other").unwrap();
        store.set(&other, value, options).await.unwrap();

        let recorder = PrometheusBuilder::new().build_recorder();
        let exported = recorder.handle();
        metrics::with_local_recorder(&recorder, || sweep(store.backing()));
        let text = exported.render();
        for (kind, bytes) in [
            ("protected", store.protected_bytes()),
            ("evictable", store.evictable_bytes()),
        ] {
            assert!(bytes > 0);
            let line = format!("xihan_caching_store_bytes{{kind=\"{kind}\"}} {bytes}");
            assert!(text.contains(&line), "{line} is not in {text}");
        }
    }
}
