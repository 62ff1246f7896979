use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit, with_local_recorder,
};
use parking_lot::Mutex;
use tokio::runtime::Builder;

use super::store::{Fault, FaultyStore, Op};
use super::{faulty, key};
use crate::expiration::{minutes, seconds};
use crate::lock::DistributedLock;

/// Counts by name and labels; a histogram counts its records.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<String, Arc<Count>>>);

#[derive(Default)]
struct Count(AtomicU64);

impl CounterFn for Count {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    fn absolute(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl HistogramFn for Count {
    fn record(&self, _: f64) {
        self.increment(1);
    }
}

impl Counts {
    fn of(&self, key: &Key) -> Arc<Count> {
        let labels: Vec<_> = key
            .labels()
            .map(|l| format!("{}={}", l.key(), l.value()))
            .collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        self.0.lock().entry(name).or_default().clone()
    }

    fn seen(&self) -> BTreeMap<String, u64> {
        let counts = self.0.lock();
        let seen = counts.iter();
        seen.map(|(name, count)| (name.clone(), count.0.load(Ordering::Relaxed)))
            .collect()
    }
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.of(key))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.of(key))
    }
}

/// What `scene` counted.
fn counted<S, F>(scene: S) -> BTreeMap<String, u64>
where
    S: FnOnce(DistributedLock, Arc<FaultyStore>) -> F,
    F: Future<Output = ()>,
{
    let counts = Counts::default();
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    let (locks, store) = runtime.block_on(async { faulty() });
    with_local_recorder(&counts, || runtime.block_on(scene(locks, store)));
    counts.seen()
}

#[test]
fn part10_acquisitions_are_counted_by_outcome() {
    let seen = counted(|locks, store| async move {
        let lock = locks.acquire("secret-name", minutes(5)).await.unwrap();
        locks.try_acquire("secret-name", minutes(5)).await.unwrap();
        locks
            .acquire_within("secret-name", minutes(5), seconds(1))
            .await
            .unwrap_err();
        store.next(Op::Lease, Fault::NotSent);
        locks.try_acquire("b", minutes(5)).await.unwrap_err();
        store.next(Op::Lease, Fault::Full);
        locks.try_acquire("b", minutes(5)).await.unwrap_err();
        lock.release().await.unwrap();
    });
    for outcome in ["acquired", "held", "timeout", "unavailable", "refused"] {
        for name in [
            "xihan_caching_lock_acquisitions_total",
            "xihan_caching_lock_wait_seconds",
        ] {
            let name = format!("{name}{{outcome={outcome}}}");
            assert_eq!(seen.get(&name), Some(&1), "{name} in {seen:?}");
        }
    }
    assert_eq!(seen["xihan_caching_lock_hold_seconds{}"], 1);
    assert!(seen.keys().all(|name| !name.contains("secret")));
}

#[test]
fn part10_losses_and_late_and_failed_releases_are_counted_once() {
    let seen = counted(|locks, store| async move {
        let taken = locks.acquire("a", seconds(30)).await.unwrap();
        taken.keep_alive();
        store.memory.remove(&key("a"));
        tokio::join!(taken.lost(), taken.lost());
        drop(taken);
        let expired = locks.acquire("a", seconds(30)).await.unwrap();
        expired.lost().await;
        expired.lost().await;
        tokio::time::sleep(seconds(1)).await;
        expired.release().await.unwrap();
        expired.release().await.unwrap();
        store.next(Op::Release, Fault::FailBefore);
        let failed = locks.acquire("a", seconds(30)).await.unwrap();
        failed.release().await.unwrap_err();
        failed.release().await.unwrap();
    });
    assert_eq!(seen["xihan_caching_lock_losses_total{reason=taken}"], 1);
    assert_eq!(seen["xihan_caching_lock_losses_total{reason=expired}"], 1);
    assert_eq!(seen["xihan_caching_lock_late_releases_total{}"], 1);
    assert_eq!(seen["xihan_caching_lock_failed_releases_total{}"], 1);
    assert_eq!(seen["xihan_caching_lock_hold_seconds{}"], 3);
}
