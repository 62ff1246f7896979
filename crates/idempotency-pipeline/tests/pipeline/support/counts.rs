//! What the stage counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

/// A recorder that keeps the outcomes of `xihan_caching_idempotency_total`.
///
/// It records what its own thread counts, so its test runs on a current-thread runtime.
#[derive(Default)]
pub(crate) struct Counts(Mutex<HashMap<String, Arc<Count>>>);

#[derive(Default)]
struct Count(AtomicU64);

impl Counts {
    /// How many calls ended with `outcome`.
    pub(crate) fn of(&self, outcome: &str) -> u64 {
        let counts = self.0.lock().unwrap();
        counts
            .get(outcome)
            .map_or(0, |count| count.0.load(Ordering::SeqCst))
    }
}

impl CounterFn for Count {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Ordering::SeqCst);
    }

    fn absolute(&self, value: u64) {
        self.0.store(value, Ordering::SeqCst);
    }
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        assert_eq!(key.name(), "xihan_caching_idempotency_total");
        let labels: Vec<_> = key.labels().collect();
        assert_eq!(
            (labels.len(), labels[0].key()),
            (1, "outcome"),
            "X3: one label, and no key"
        );
        let mut counts = self.0.lock().unwrap();
        Counter::from_arc(Arc::clone(
            counts.entry(labels[0].value().to_owned()).or_default(),
        ))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
