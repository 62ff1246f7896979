//! D3: the blocking face of a store that waits for a network.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

use caching_abstractions::{CacheEntryOptions, CacheKey, CacheStore, CachingError, ErrorCode};
use conformance::ReferenceStore;
use distcache_adapter::{BlockingStore, ThreadStore};
use parking_lot::Mutex;

/// What is seen of the connections that were opened.
#[derive(Clone, Default)]
struct Seen {
    opened: Arc<AtomicUsize>,
    threads: Arc<Mutex<Vec<ThreadId>>>,
}

/// A face whose connection takes a moment to open, and fails the first `failures` times.
fn face(failures: usize) -> (ThreadStore, Seen, ReferenceStore) {
    let (seen, store) = (Seen::default(), ReferenceStore::new());
    let (counted, opened) = (seen.clone(), store.clone());
    let face = ThreadStore::new(move || {
        let (seen, store) = (counted.clone(), opened.clone());
        async move {
            // Waits for a timer of the runtime it is opened on, as a connection waits for a socket.
            tokio::time::sleep(Duration::from_millis(1)).await;
            seen.threads.lock().push(thread::current().id());
            if seen.opened.fetch_add(1, Ordering::SeqCst) < failures {
                return Err(CachingError::unavailable("away"));
            }
            Ok(Arc::new(store) as Arc<dyn CacheStore>)
        }
    });
    (face, seen, store)
}

fn use_it(face: &ThreadStore) {
    let (key, options) = (CacheKey::new("k").unwrap(), CacheEntryOptions::default());
    face.set(&key, "v".into(), options).unwrap();
    assert_eq!(face.get(&key).unwrap().unwrap(), "v");
    assert!(face.remove(&key).unwrap());
    assert_eq!(face.get(&key).unwrap(), None);
}

#[test]
fn d3_from_a_plain_thread() {
    use_it(&face(0).0);
}

#[tokio::test]
async fn d3_from_the_only_thread_of_a_runtime() {
    let (face, seen, _) = face(0);
    use_it(&face);
    use_it(&face);
    assert_eq!(seen.opened.load(Ordering::SeqCst), 1, "one connection");
    assert!(!seen.threads.lock().contains(&thread::current().id()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d3_from_many_tasks_of_a_runtime() {
    let (face, seen, _) = face(0);
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let face = face.clone();
            tokio::spawn(async move {
                let key = CacheKey::new(task.to_string()).unwrap();
                face.set(&key, "v".into(), CacheEntryOptions::default())
                    .unwrap();
                assert_eq!(face.get(&key).unwrap().unwrap(), "v");
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(seen.opened.load(Ordering::SeqCst), 1);
}

#[test]
fn d3_nothing_is_opened_before_it_is_used() {
    let (face, seen, _) = face(0);
    drop(face);
    assert_eq!(seen.opened.load(Ordering::SeqCst), 0);
}

#[test]
fn s3_a_connection_that_cannot_be_opened_is_tried_again() {
    let (face, seen, _) = face(1);
    let key = CacheKey::new("k").unwrap();
    assert_eq!(
        face.get(&key).unwrap_err().code(),
        ErrorCode::StoreUnavailable
    );
    use_it(&face);
    assert_eq!(seen.opened.load(Ordering::SeqCst), 2);
}

#[test]
fn d3_an_operation_that_panics_ends_neither_caller_nor_connection() {
    let (face, _, _) = face(0);
    let broken = ThreadStore::new(|| async { panic!("panicked on purpose") });
    let key = CacheKey::new("k").unwrap();
    assert_eq!(
        broken.get(&key).unwrap_err().code(),
        ErrorCode::StoreUnavailable
    );
    assert_eq!(
        broken.get(&key).unwrap_err().code(),
        ErrorCode::StoreUnavailable
    );
    use_it(&face);
}
