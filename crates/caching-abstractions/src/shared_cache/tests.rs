use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{Barrier, Notify};
use tokio::task::yield_now;

use super::*;
use crate::ErrorCode;
use crate::testing::MapStore;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Greeting {
    text: String,
}

fn greeting(text: &str) -> Greeting {
    Greeting {
        text: text.to_owned(),
    }
}

fn cache() -> (SharedCache, Arc<MapStore>) {
    let store = Arc::new(MapStore::default());
    (SharedCache::new(store.clone()), store)
}

fn options() -> CacheEntryOptions {
    CacheEntryOptions::default()
}

/// Lets every task that can run do so.
async fn settle() {
    for _ in 0..32 {
        yield_now().await;
    }
}

#[tokio::test]
async fn a1_values_come_back_typed_and_stand_as_json() {
    let (cache, store) = cache();
    let key = CacheKey::new("greeting").unwrap();
    cache
        .set(&key, &greeting("hello"), options())
        .await
        .unwrap();
    assert_eq!(
        cache.get("greeting").await.unwrap(),
        Some(greeting("hello"))
    );
    let bytes = store.get(&key).await.unwrap().unwrap();
    assert_eq!(bytes, r#"{"text":"hello"}"#);
    assert!(cache.remove(key).await.unwrap());
    assert!(!cache.remove("greeting").await.unwrap());
    assert_eq!(cache.get::<Greeting>("greeting").await.unwrap(), None);
}

#[tokio::test]
async fn r3_the_store_beneath_is_the_same_instance() {
    let store: Arc<dyn CacheStore> = Arc::new(MapStore::default());
    assert!(Arc::ptr_eq(SharedCache::new(store.clone()).store(), &store));
}

#[tokio::test]
async fn k1_a_bad_key_is_refused_before_the_store_is_asked() {
    let (cache, store) = cache();
    let get = cache.get::<u8>("a b").await.unwrap_err();
    let set = cache.set("", &1, options()).await.unwrap_err();
    let remove = cache.remove("a\n").await.unwrap_err();
    let create = cache.get_or_create("a b", options(), || async { Ok::<u8, CachingError>(1) });
    for error in [get, set, remove, create.await.unwrap_err()] {
        assert_eq!(error.code(), ErrorCode::InvalidKey);
    }
    assert_eq!(store.calls(), 0);
}

#[tokio::test]
async fn a1_a_value_of_another_type_is_an_error_that_names_key_and_type_and_no_value() {
    let (cache, _) = cache();
    cache.set("greeting", "hunter2", options()).await.unwrap();
    let error = cache.get::<Greeting>("greeting").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::WrongKind);
    assert_eq!(error.parameter("key"), Some("greeting"));
    let text = format!("{error} {error:?}");
    assert!(text.contains("Greeting"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a1_a_value_without_a_json_form_is_an_error() {
    let (cache, store) = cache();
    let odd = std::collections::BTreeMap::from([((1, 2), 3)]);
    let error = cache.set("odd", &odd, options()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Internal);
    assert_eq!(store.calls(), 0);
}

#[tokio::test]
async fn a1_get_or_create_overwrites_what_does_not_decode() {
    let (cache, _) = cache();
    cache.set("greeting", &5, options()).await.unwrap();
    let create = || async { Ok::<_, CachingError>(greeting("new")) };
    let created = cache.get_or_create("greeting", options(), create).await;
    assert_eq!(created.unwrap(), greeting("new"));
    assert_eq!(cache.get("greeting").await.unwrap(), Some(greeting("new")));
}

#[tokio::test]
async fn a1_a_hit_runs_no_factory() {
    let (cache, store) = cache();
    cache.set("n", &1, options()).await.unwrap();
    let runs = AtomicUsize::new(0);
    let create = || async {
        runs.fetch_add(1, Ordering::SeqCst);
        Ok::<_, CachingError>(2)
    };
    let found: i32 = cache.get_or_create("n", options(), create).await.unwrap();
    assert_eq!((found, runs.load(Ordering::SeqCst)), (1, 0));
    assert_eq!(store.calls(), 2);
}

#[tokio::test]
async fn a1_a_created_value_is_given_even_if_it_cannot_be_kept() {
    let (cache, store) = cache();
    store.refuse_writes();
    let create = || async { Ok::<_, CachingError>(1) };
    let created: i32 = cache.get_or_create("n", options(), create).await.unwrap();
    assert_eq!(created, 1);
    assert_eq!(cache.get::<i32>("n").await.unwrap(), None);
}

#[tokio::test]
async fn s3_an_unreachable_store_is_an_error_and_no_miss() {
    let (cache, store) = cache();
    store.go_down();
    let runs = AtomicUsize::new(0);
    let create = || async {
        runs.fetch_add(1, Ordering::SeqCst);
        Ok::<_, CachingError>(1)
    };
    let created = cache.get_or_create("n", options(), create).await;
    assert_eq!(created.unwrap_err().code(), ErrorCode::StoreUnavailable);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(cache.flights.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn n4_64_concurrent_misses_run_one_factory() {
    let (cache, _) = cache();
    let runs = Arc::new(AtomicUsize::new(0));
    let start = Arc::new(Barrier::new(64));
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (cache, runs, start) = (cache.clone(), runs.clone(), start.clone());
            tokio::spawn(async move {
                start.wait().await;
                let create = || async {
                    let run = runs.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    Ok::<_, CachingError>(run)
                };
                cache.get_or_create("n", options(), create).await.unwrap()
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 0);
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(cache.flights.count(), 0);
}

#[tokio::test]
async fn n4_different_keys_never_wait_for_each_other() {
    let (cache, _) = cache();
    let stuck = {
        let cache = cache.clone();
        let never = std::future::pending::<Result<u8>>;
        tokio::spawn(async move { cache.get_or_create("a", options(), never).await })
    };
    settle().await;
    let create = || async { Ok::<_, CachingError>(2_u8) };
    assert_eq!(
        cache.get_or_create("b", options(), create).await.unwrap(),
        2
    );
    stuck.abort();
    assert!(stuck.await.unwrap_err().is_cancelled());
    assert_eq!(cache.flights.count(), 0);
}

#[tokio::test]
async fn n4_when_the_leader_is_cancelled_another_waiter_takes_over() {
    let (cache, _) = cache();
    let leader = {
        let cache = cache.clone();
        let never = std::future::pending::<Result<u8>>;
        tokio::spawn(async move { cache.get_or_create("n", options(), never).await })
    };
    settle().await;
    let waiter = {
        let cache = cache.clone();
        let create = || async { Ok::<_, CachingError>(7_u8) };
        tokio::spawn(async move { cache.get_or_create("n", options(), create).await })
    };
    settle().await;
    assert!(!waiter.is_finished());
    leader.abort();
    assert_eq!(waiter.await.unwrap().unwrap(), 7);
    assert_eq!(cache.flights.count(), 0);
}

#[tokio::test]
async fn n4_a_factory_error_goes_to_its_own_caller_and_the_next_waiter_tries() {
    let (cache, _) = cache();
    let fail = Arc::new(Notify::new());
    let leader = {
        let (cache, fail) = (cache.clone(), fail.clone());
        tokio::spawn(async move {
            let create = || async {
                fail.notified().await;
                Err::<u8, _>(CachingError::internal("no luck"))
            };
            cache.get_or_create("n", options(), create).await
        })
    };
    settle().await;
    let waiter = {
        let cache = cache.clone();
        let create = || async { Ok::<_, CachingError>(7_u8) };
        tokio::spawn(async move { cache.get_or_create("n", options(), create).await })
    };
    settle().await;
    fail.notify_one();
    assert_eq!(leader.await.unwrap().unwrap_err().detail(), "no luck");
    assert_eq!(waiter.await.unwrap().unwrap(), 7);
    assert_eq!(cache.flights.count(), 0);
}

#[tokio::test]
async fn n4_a_factory_that_panics_leaves_nothing_behind() {
    let (cache, _) = cache();
    let panicking = {
        let cache = cache.clone();
        let create = || async { panic!("in the factory") };
        tokio::spawn(async move {
            cache
                .get_or_create::<u8, CachingError, _, _>("n", options(), create)
                .await
        })
    };
    assert!(panicking.await.unwrap_err().is_panic());
    assert_eq!(cache.flights.count(), 0);
    let create = || async { Ok::<_, CachingError>(1_u8) };
    assert_eq!(
        cache.get_or_create("n", options(), create).await.unwrap(),
        1
    );
}

#[tokio::test]
async fn n4_a_result_is_not_given_to_callers_that_come_after_it() {
    let (cache, _) = cache();
    let key = CacheKey::new("n").unwrap();
    // A passenger that has not left yet keeps the flight that has arrived.
    let passenger = cache.flights.join(&key);
    let create = || async { Ok::<_, CachingError>(1_u8) };
    assert_eq!(
        cache.get_or_create(&key, options(), create).await.unwrap(),
        1
    );
    assert!(passenger.flight().initialized());
    assert!(cache.remove(&key).await.unwrap());

    let create = || async { Ok::<_, CachingError>(2_u8) };
    assert_eq!(
        cache.get_or_create(&key, options(), create).await.unwrap(),
        2
    );
    drop(passenger);
    assert_eq!(cache.flights.count(), 0);
}

#[tokio::test]
async fn n4_a_miss_that_is_older_than_a_result_runs_no_second_factory() {
    let (cache, store) = cache();
    let reply = store.delay_next_get();
    let late = {
        let cache = cache.clone();
        let create = || async { Ok::<_, CachingError>(2_u8) };
        tokio::spawn(async move { cache.get_or_create("n", options(), create).await })
    };
    settle().await;
    let create = || async { Ok::<_, CachingError>(1_u8) };
    let first = cache.get_or_create("n", options(), create).await;
    assert_eq!(first.unwrap(), 1);
    reply.notify_one();
    assert_eq!(late.await.unwrap().unwrap(), 1);
    assert_eq!(cache.flights.count(), 0);
}

#[tokio::test]
async fn n4_the_error_type_is_the_callers_own() {
    #[derive(Debug, PartialEq)]
    enum Problem {
        Cache(ErrorCode),
        Supplier,
    }
    impl From<CachingError> for Problem {
        fn from(error: CachingError) -> Self {
            Self::Cache(error.code())
        }
    }
    let (cache, store) = cache();
    let create = || async { Err::<u8, _>(Problem::Supplier) };
    let supplier = cache.get_or_create("n", options(), create).await;
    assert_eq!(supplier.unwrap_err(), Problem::Supplier);
    store.go_down();
    let create = || async { Err::<u8, _>(Problem::Supplier) };
    let down = cache.get_or_create("n", options(), create).await;
    assert_eq!(
        down.unwrap_err(),
        Problem::Cache(ErrorCode::StoreUnavailable)
    );
}
