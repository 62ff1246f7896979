use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use caching_abstractions::WakeHints;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::backing::Backing;

/// Who waits for which key to become free.
///
/// Kept apart from the entries: where nobody waits, a removal looks at one number and goes on.
#[derive(Default)]
pub(crate) struct Watchers {
    count: AtomicUsize,
    next_id: AtomicU64,
    by_key: Mutex<HashMap<Box<str>, Vec<Watcher>>>,
}

struct Watcher {
    id: u64,
    hint: Arc<Notify>,
}

impl Watchers {
    /// Wakes everybody who waits for `key`; call it after the removal, without its lock.
    pub(crate) fn wake(&self, key: &str) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let hints: Vec<Arc<Notify>> = match self.by_key.lock().get(key) {
            None => return,
            Some(watchers) => watchers.iter().map(|w| Arc::clone(&w.hint)).collect(),
        };
        // A hint that nobody has taken yet stands for this one too.
        hints.iter().for_each(|hint| hint.notify_one());
    }

    fn add(&self, key: &str, hint: Arc<Notify>) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let watcher = Watcher { id, hint };
        let mut by_key = self.by_key.lock();
        by_key.entry(key.into()).or_default().push(watcher);
        self.count.fetch_add(1, Ordering::SeqCst);
        id
    }

    fn remove(&self, key: &str, id: u64) {
        let mut by_key = self.by_key.lock();
        if let Some(watchers) = by_key.get_mut(key) {
            watchers.retain(|watcher| watcher.id != id);
            if watchers.is_empty() {
                by_key.remove(key);
            }
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchers")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// One watcher's registration, which ends with it.
struct Registration {
    backing: Arc<Backing>,
    key: Box<str>,
    id: u64,
    hint: Arc<Notify>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.backing.watchers.remove(&self.key, self.id);
    }
}

/// A stream of hints for `key`; whoever watches is registered when this returns.
pub(crate) fn watch(backing: Arc<Backing>, key: &str) -> WakeHints {
    let hint = Arc::new(Notify::new());
    let registration = Registration {
        id: backing.watchers.add(key, Arc::clone(&hint)),
        key: key.into(),
        hint,
        backing,
    };
    Box::pin(stream::unfold(registration, |registration| async {
        registration.hint.notified().await;
        Some(((), registration))
    }))
}

#[cfg(test)]
mod tests {
    use crate::InMemoryStore;
    use caching_abstractions::{CacheKey, CacheStore};

    #[tokio::test]
    async fn part3_dropping_the_stream_ends_the_registration() {
        let store = InMemoryStore::new();
        let key = CacheKey::new("lock").unwrap();
        let (first, second) = (store.watch(&key).await, store.watch(&key).await);
        assert_eq!(store.backing().watchers.by_key.lock()["lock"].len(), 2);
        drop(first);
        assert_eq!(store.backing().watchers.by_key.lock()["lock"].len(), 1);
        drop(second);
        assert!(store.backing().watchers.by_key.lock().is_empty());
    }
}
