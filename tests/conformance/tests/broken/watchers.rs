//! Who watches a broken store, where the defect is in how they are woken.

use std::sync::Arc;

use caching_abstractions::{CacheKey, WakeHints};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::defect::Defect;
use crate::store::Dropped;

#[derive(Default)]
pub struct Watchers(Mutex<Vec<Watcher>>);

#[derive(Clone)]
struct Watcher {
    client: usize,
    key: CacheKey,
    sender: mpsc::Sender<()>,
}

/// Whether `defect` is in how watchers are woken.
pub fn is_about_watching(defect: Defect) -> bool {
    matches!(
        defect,
        Defect::NeverWakes
            | Defect::WakesFirstOnly
            | Defect::WakesOnce
            | Defect::WakesOwnClientOnly
            | Defect::WakesEverybody
            | Defect::WakesTooEarly
            | Defect::WakeWaits
            | Defect::DropEndsOtherWatches
            | Defect::OneWatchPerClient
    )
}

impl Watchers {
    pub fn watch(self: &Arc<Self>, defect: Defect, client: usize, key: &CacheKey) -> WakeHints {
        let (sender, receiver) = mpsc::channel(1);
        let mut watchers = self.0.lock();
        if defect == Defect::OneWatchPerClient {
            watchers.retain(|watcher| watcher.client != client);
        }
        watchers.push(Watcher {
            client,
            key: key.clone(),
            sender,
        });
        let all = self.clone();
        let end = Dropped(Some(move || {
            if defect == Defect::DropEndsOtherWatches {
                all.0.lock().clear();
            }
        }));
        let hints = stream::unfold((receiver, end), |(mut receiver, end)| async move {
            receiver.recv().await.map(|()| ((), (receiver, end)))
        });
        hints.boxed()
    }

    pub async fn wake(&self, defect: Defect, client: usize, key: &CacheKey) {
        let watchers = self.0.lock().clone();
        let of_key = watchers
            .iter()
            .filter(|watcher| watcher.key == *key || defect == Defect::WakesEverybody);
        for watcher in of_key {
            match defect {
                Defect::NeverWakes => return,
                Defect::WakesOwnClientOnly if watcher.client != client => continue,
                Defect::WakeWaits => drop(watcher.sender.send(()).await),
                _ => drop(watcher.sender.try_send(())),
            }
            match defect {
                Defect::WakesFirstOnly => return,
                Defect::WakesOnce => self.0.lock().retain(|other| other.key != *key),
                _ => {}
            }
        }
    }
}
