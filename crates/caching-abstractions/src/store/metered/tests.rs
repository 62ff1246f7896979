use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{FutureExt, TryStreamExt};
use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    set_default_local_recorder,
};
use parking_lot::Mutex;

use super::instruments::{OPERATION_SECONDS, OPERATIONS_TOTAL};
use super::*;
use crate::store::CacheStoreExt;
use crate::testing::MapStore;

/// Keeps each series by `name operation outcome`.
#[derive(Default)]
struct Collected {
    series: Mutex<BTreeMap<String, Arc<Count>>>,
    registrations: AtomicU64,
}

#[derive(Default)]
struct Count(AtomicU64);

impl metrics::CounterFn for Count {
    fn increment(&self, by: u64) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }

    fn absolute(&self, to: u64) {
        self.0.store(to, Ordering::SeqCst);
    }
}

impl HistogramFn for Count {
    fn record(&self, seconds: f64) {
        assert!(seconds >= 0.0);
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Collected {
    fn series(&self, key: &Key) -> Arc<Count> {
        self.registrations.fetch_add(1, Ordering::SeqCst);
        let labels: Vec<(&str, &str)> = key.labels().map(|l| (l.key(), l.value())).collect();
        let [
            ("provider", "test"),
            ("operation", operation),
            ("outcome", outcome),
        ] = labels[..]
        else {
            panic!("labels {labels:?}");
        };
        let name = format!("{} {operation} {outcome}", key.name());
        Arc::clone(self.series.lock().entry(name).or_default())
    }

    fn count(&self, name: &str, operation: &str, outcome: &str) -> u64 {
        let name = format!("{name} {operation} {outcome}");
        let series = self.series.lock();
        series.get(&name).map_or(0, |c| c.0.load(Ordering::SeqCst))
    }

    #[track_caller]
    fn assert(&self, operation: &str, outcome: &str, count: u64) {
        for name in [OPERATIONS_TOTAL, OPERATION_SECONDS] {
            let found = self.count(name, operation, outcome);
            assert_eq!(found, count, "{name} {operation} {outcome}");
        }
    }
}

impl Recorder for Collected {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.series(key))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.series(key))
    }
}

fn metered() -> (MeteredStore, Arc<MapStore>) {
    let inner = Arc::new(MapStore::default());
    (MeteredStore::new(inner.clone(), "test"), inner)
}

fn key(text: &str) -> CacheKey {
    CacheKey::new(text).unwrap()
}

fn options() -> CacheEntryOptions {
    CacheEntryOptions::default()
}

/// Asks for every operation once, in a way that succeeds.
async fn ask_everything(store: &MeteredStore) {
    let (k, n, lock) = (key("k"), key("n"), key("lock"));
    let (one, two) = (LeaseToken::generate(), LeaseToken::generate());
    let v = |text: &'static str| Bytes::from_static(text.as_bytes());
    let item = CacheItem::new(k.clone(), v("b"), options());
    assert!(store.try_add(&k, v("a"), options()).await.unwrap());
    store.set_many(&[item]).await.unwrap();
    assert_eq!(store.get(&k).await.unwrap(), Some(v("b")));
    let batch = [k.clone(), n.clone()];
    assert_eq!(store.get_many(&batch).await.unwrap(), [Some(v("b")), None]);
    store.set(&k, v("c"), options()).await.unwrap();
    assert!(
        store
            .try_replace(&k, b"c", v("d"), options())
            .await
            .unwrap()
    );
    assert!(store.try_extend(&k, b"d", TimeToLive::MAX).await.unwrap());
    assert!(store.time_to_live(&k).await.unwrap().is_some());
    assert!(store.try_remove(&k, b"d").await.unwrap());
    assert_eq!(store.get_or_add(&k, v("e"), options()).await.unwrap(), None);
    assert_eq!(store.increment(&n, 5, options()).await.unwrap(), 5);
    assert_eq!(store.sorted_keys("").await.unwrap(), [k.clone(), n.clone()]);
    assert!(store.remove(&k).await.unwrap());
    assert_eq!(store.remove_many(&batch).await.unwrap(), [false, true]);
    let lease = store.try_lease(&lock, &one, TimeToLive::MAX).await.unwrap();
    assert_eq!(lease, Some(1));
    let relay = store.try_relay(&lock, &one, &two, TimeToLive::MAX).await;
    assert_eq!(relay.unwrap(), Some(2));
    drop(store.watch(&lock).await.unwrap());
    assert!(store.release(&lock, &two).await.unwrap());
    store.ping().await.unwrap();
}

#[tokio::test]
async fn part10_every_operation_is_forwarded_and_counted_once() {
    let collected = Collected::default();
    let _guard = set_default_local_recorder(&collected);
    let (store, inner) = metered();
    ask_everything(&store).await;
    assert_eq!(inner.calls(), Operation::NAMES.len());
    for operation in Operation::NAMES {
        collected.assert(operation, "ok", 1);
    }
}

#[tokio::test]
async fn part10_handles_are_resolved_once_per_operation() {
    let collected = Collected::default();
    let _guard = set_default_local_recorder(&collected);
    let (store, _) = metered();
    store.ping().await.unwrap();
    let registrations = collected.registrations.load(Ordering::SeqCst);
    for _ in 0..10 {
        store.ping().await.unwrap();
    }
    assert_eq!(
        collected.registrations.load(Ordering::SeqCst),
        registrations
    );
    collected.assert("ping", "ok", 11);
}

#[tokio::test]
async fn part10_none_and_false_are_misses() {
    let collected = Collected::default();
    let _guard = set_default_local_recorder(&collected);
    let (store, _) = metered();
    let k = key("k");
    assert_eq!(store.get(&k).await.unwrap(), None);
    assert!(!store.try_remove(&k, b"x").await.unwrap());
    store.set(&k, Bytes::new(), options()).await.unwrap();
    let there = store.get_or_add(&k, Bytes::new(), options()).await;
    assert!(there.unwrap().is_some());
    for operation in ["get", "try_remove", "get_or_add"] {
        collected.assert(operation, "miss", 1);
        collected.assert(operation, "ok", 0);
    }
}

#[tokio::test]
async fn part10_errors_are_counted_by_kind() {
    let collected = Collected::default();
    let _guard = set_default_local_recorder(&collected);
    let (store, inner) = metered();
    let k = key("k");
    store.set(&k, Bytes::from("x"), options()).await.unwrap();
    assert!(store.increment(&k, 1, options()).await.is_err());
    collected.assert("increment", "conflict", 1);
    inner.refuse_writes();
    assert!(store.set(&k, Bytes::new(), options()).await.is_err());
    collected.assert("set", "full", 1);
    inner.go_down();
    assert!(store.ping().await.is_err());
    assert!(store.sorted_keys("").await.is_err());
    collected.assert("ping", "unavailable", 1);
    collected.assert("keys", "unavailable", 1);
}

#[tokio::test]
async fn part10_a_dropped_call_is_cancelled() {
    let collected = Collected::default();
    let _guard = set_default_local_recorder(&collected);
    let (store, _) = metered();
    for text in ["a", "b"] {
        store
            .set(&key(text), Bytes::new(), options())
            .await
            .unwrap();
    }
    let never = std::future::pending::<Result<()>>();
    let call = store.measure(Operation::Get, never, always);
    assert!(call.now_or_never().is_none());
    collected.assert("get", "cancelled", 1);

    let mut listing = store.keys("");
    assert_eq!(listing.try_next().await.unwrap(), Some(key("a")));
    collected.assert("keys", "ok", 0);
    drop(listing);
    collected.assert("keys", "cancelled", 1);
}

#[tokio::test]
async fn part10_a_recorder_that_is_installed_later_is_found() {
    let (store, _) = metered();
    store.ping().await.unwrap();
    let collected = Collected::default();
    let _guard = set_default_local_recorder(&collected);
    store.ping().await.unwrap();
    collected.assert("ping", "ok", 1);
}
