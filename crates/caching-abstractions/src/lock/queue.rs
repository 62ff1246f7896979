//! Who waits for what inside this process: one queue per resource, so that only its first waiter
//! asks the store (L11).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::{CachingError, Result};
use crate::key::CacheKey;
use crate::store::WakeHints;

/// The queues of one lock. A queue exists while somebody is in it.
#[derive(Debug, Default)]
pub(super) struct Queues(Mutex<HashMap<CacheKey, Counted>>);

#[derive(Debug)]
struct Counted {
    queue: Arc<Queue>,
    /// How many places there are, the one whose turn it is included.
    places: usize,
}

/// One resource's queue. The mutex is fair, so waiters get their turns in the order they came.
pub(super) struct Queue {
    turn: tokio::sync::Mutex<Option<WakeHints>>,
    news: Mutex<News>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("news", &self.news)
            .finish_non_exhaustive()
    }
}

/// What the store said last to anybody in the queue.
#[derive(Debug)]
enum News {
    Nothing,
    Held,
    Failed(CachingError),
}

/// A place in a queue, given back when it is dropped.
pub(super) struct Place<'a> {
    queues: &'a Queues,
    key: &'a CacheKey,
    queue: Arc<Queue>,
}

impl Queues {
    /// Takes the last place of the queue for `key`.
    pub(super) fn join<'a>(&'a self, key: &'a CacheKey) -> Place<'a> {
        let mut queues = self.0.lock();
        let counted = queues.entry(key.clone()).or_insert_with(|| Counted {
            queue: Arc::new(Queue {
                turn: tokio::sync::Mutex::new(None),
                news: Mutex::new(News::Nothing),
            }),
            places: 0,
        });
        counted.places += 1;
        Place {
            queues: self,
            key,
            queue: Arc::clone(&counted.queue),
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

impl Place<'_> {
    /// Waits for the turn. The hints of the store go from one turn to the next.
    ///
    /// # Cancellation safety
    /// Dropping the future gives the place in the order up and leaks nothing.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, Option<WakeHints>> {
        self.queue.turn.lock().await
    }

    /// Remembers what the store said.
    pub(super) fn heard<T>(&self, answer: &Result<Option<T>>) {
        *self.queue.news.lock() = match answer {
            Ok(_) => News::Held,
            Err(error) => News::Failed(error.clone()),
        };
    }

    /// The error for a waiter whose time is up: "held" only if the store said so (L8).
    pub(super) fn time_is_up(&self, resource: &str, wait: Duration) -> CachingError {
        match &*self.queue.news.lock() {
            News::Held => CachingError::lock_wait_timeout(resource, wait),
            News::Failed(error) => error.clone(),
            News::Nothing => CachingError::unavailable(format!(
                "the store did not answer within the {} ms that the lock may be waited for",
                wait.as_millis()
            )),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut counted) = self.queues.0.lock().entry(self.key.clone()) {
            counted.get_mut().places -= 1;
            if counted.get().places == 0 {
                counted.remove();
            }
        }
    }
}
