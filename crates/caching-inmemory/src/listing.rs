//! The stream of keys.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use caching_abstractions::{CacheKey, KeyPrefix, Result};
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;

use crate::backing::Backing;
use crate::key::{CarriedHash, KeyRef, StoredKey, stored_text};
use crate::shard::Shard;

/// How many entries are looked at before the stream gives others their turn.
const BATCH: usize = 128;

/// Lists the keys that begin with `literal`, below `prefix` if there is one.
///
/// First the evictable half is walked, then the protected one, a shard at a time; no lock is held
/// while the stream waits for its reader. What lives throughout comes exactly once:
/// - A live key only ever moves from the evictable half to the protected one, so the walk in that
///   order meets it at least once.
/// - What the first walk gave is remembered, by a handle each, and the second leaves it out. That
///   also covers a key that was removed and added anew in the other half meanwhile.
pub(crate) fn keys(
    backing: Arc<Backing>,
    prefix: Option<KeyPrefix>,
    literal: &str,
) -> BoxStream<'static, Result<CacheKey>> {
    let scope = Scope::new(prefix, literal);
    let found = Found::default();
    let walk = walk(Arc::clone(&backing), scope.clone(), found.clone());
    let mut walk: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = Some(Box::pin(walk));
    Box::pin(stream::poll_fn(move |context| {
        loop {
            if let Some(key) = found.next(&backing, &scope) {
                return Poll::Ready(Some(Ok(key)));
            }
            let Some(active) = walk.as_mut() else {
                return Poll::Ready(None);
            };
            match active.as_mut().poll(context) {
                Poll::Ready(()) => walk = None,
                Poll::Pending if found.is_empty() => return Poll::Pending,
                Poll::Pending => {}
            }
        }
    }))
}

/// Puts every key of `scope` into `found`, with a pause now and then.
async fn walk(backing: Arc<Backing>, scope: Scope, found: Found) {
    let mut given: HashSet<Arc<StoredKey>, CarriedHash> = HashSet::default();
    for (position, (key, entry)) in backing.evictable.iter().enumerate() {
        if scope.includes(&key.text)
            && let Some(deadline) = entry.deadline(backing.now())
            && given.insert(Arc::clone(&key))
        {
            found.add(deadline, scope.key(&key.text));
        }
        if position % BATCH == BATCH - 1 {
            pause().await;
        }
    }
    for shard in backing.shards() {
        walk_shard(&backing, shard, &scope, &given, &found);
        pause().await;
    }
}

fn walk_shard(
    backing: &Backing,
    shard: &Shard,
    scope: &Scope,
    given: &HashSet<Arc<StoredKey>, CarriedHash>,
    found: &Found,
) {
    let entries = shard.lock();
    let now = backing.now();
    for entry in entries.iter() {
        let key = entry.key();
        if scope.includes(&key.text) && !entry.life().is_over(now) && !given.contains(key) {
            found.add(entry.life().deadline, scope.key(&key.text));
        }
    }
}

/// Lets the stream hand out what was found, and its task give others their turn.
async fn pause() {
    let mut is_over = false;
    std::future::poll_fn(|context| {
        if is_over {
            return Poll::Ready(());
        }
        is_over = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Keys on their way from the walk to the stream's reader, each with the deadline it had.
#[derive(Clone, Default)]
struct Found(Arc<Mutex<Vec<(u64, CacheKey)>>>);

impl Found {
    fn add(&self, deadline: u64, key: Option<CacheKey>) {
        if let Some(key) = key {
            self.0.lock().push((deadline, key));
        }
    }

    fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// The next key that is still there; what expired while the reader took its time is not (E4).
    fn next(&self, backing: &Backing, scope: &Scope) -> Option<CacheKey> {
        loop {
            let (deadline, key) = self.0.lock().pop()?;
            if deadline > backing.now() || scope.is_there(backing, &key) {
                return Some(key);
            }
        }
    }
}

/// Which keys a listing is about.
#[derive(Clone)]
struct Scope {
    prefix: Option<KeyPrefix>,
    /// What the stored text of each of them begins with.
    start: String,
}

impl Scope {
    fn new(prefix: Option<KeyPrefix>, literal: &str) -> Self {
        let start = match &prefix {
            None => literal.to_owned(),
            Some(prefix) => format!("{prefix}:{literal}"),
        };
        Self { prefix, start }
    }

    fn includes(&self, stored: &str) -> bool {
        stored.starts_with(&self.start)
    }

    /// The key that is stored under this text. None for what is no key here, nor one
    /// below a prefix.
    fn key(&self, stored: &str) -> Option<CacheKey> {
        let text = match &self.prefix {
            None => stored,
            Some(prefix) => prefix.strip(stored)?,
        };
        CacheKey::from_stored(text).ok()
    }

    fn is_there(&self, backing: &Backing, key: &CacheKey) -> bool {
        let text = stored_text(self.prefix.as_ref(), key);
        let hash = backing.hash(&text);
        let key = KeyRef { hash, text: &text };
        backing.time_to_live(key).is_some()
    }
}
