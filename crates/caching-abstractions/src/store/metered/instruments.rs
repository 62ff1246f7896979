use std::cell::Cell;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use metrics::{
    Counter, Histogram, IntoF64, Key, Label, Level, Metadata, Unit, describe_counter,
    describe_histogram, with_recorder,
};
use tokio::time::Instant;

use crate::error::{CachingError, ErrorCategory, ErrorCode};

pub(super) const OPERATIONS_TOTAL: &str = "xihan_caching_store_operations_total";
pub(super) const OPERATION_SECONDS: &str = "xihan_caching_store_operation_seconds";

const METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// The counter and the histogram of each operation and outcome, resolved when they are first
/// needed and then kept.
pub(super) struct Instruments {
    provider: &'static str,
    handles: Box<[OnceLock<(Counter, Histogram)>]>,
    /// Whether a recorder was found.
    is_recording: AtomicBool,
    probe: Key,
}

impl Instruments {
    pub(super) fn new(provider: &'static str) -> Self {
        let count = Operation::NAMES.len() * Outcome::NAMES.len();
        Self {
            provider,
            handles: (0..count).map(|_| OnceLock::new()).collect(),
            is_recording: AtomicBool::new(false),
            probe: key(OPERATION_SECONDS, provider, Operation::Get, Outcome::Ok),
        }
    }

    /// Whether there is somebody to record for.
    pub(super) fn is_recording(&self) -> bool {
        self.is_recording.load(Ordering::Relaxed) || self.look_for_recorder()
    }

    fn look_for_recorder(&self) -> bool {
        let histogram =
            with_recorder(|recorder| recorder.register_histogram(&self.probe, &METADATA));
        let is_real = Cell::new(false);
        // No sample is recorded, and a histogram that leads nowhere does not look at the value.
        histogram.record_many(Probe(&is_real), 0);
        if is_real.get() && !self.is_recording.swap(true, Ordering::Relaxed) {
            describe_counter!(OPERATIONS_TOTAL, "Operations of the cache store");
            describe_histogram!(
                OPERATION_SECONDS,
                Unit::Seconds,
                "How long operations of the cache store took"
            );
        }
        is_real.get()
    }

    fn record(&self, operation: Operation, outcome: Outcome, started: Instant) {
        let position = operation as usize * Outcome::NAMES.len() + outcome as usize;
        let (counter, histogram) = self.handles[position].get_or_init(|| {
            let counter = key(OPERATIONS_TOTAL, self.provider, operation, outcome);
            let histogram = key(OPERATION_SECONDS, self.provider, operation, outcome);
            with_recorder(|recorder| {
                (
                    recorder.register_counter(&counter, &METADATA),
                    recorder.register_histogram(&histogram, &METADATA),
                )
            })
        });
        counter.increment(1);
        histogram.record(started.elapsed());
    }
}

fn key(name: &'static str, provider: &'static str, operation: Operation, outcome: Outcome) -> Key {
    let labels = vec![
        Label::new("provider", provider),
        Label::new("operation", Operation::NAMES[operation as usize]),
        Label::new("outcome", Outcome::NAMES[outcome as usize]),
    ];
    Key::from_parts(name, labels)
}

struct Probe<'a>(&'a Cell<bool>);

impl IntoF64 for Probe<'_> {
    fn into_f64(self) -> f64 {
        self.0.set(true);
        0.0
    }
}

/// The time of one operation; one that is dropped unfinished was cancelled.
pub(super) struct Timing<I: Deref<Target = Instruments>> {
    instruments: I,
    operation: Operation,
    started: Option<Instant>,
}

impl<I: Deref<Target = Instruments>> Timing<I> {
    pub(super) fn start(instruments: I, operation: Operation) -> Self {
        let started = instruments.is_recording().then(Instant::now);
        Self {
            instruments,
            operation,
            started,
        }
    }

    pub(super) fn finish(mut self, outcome: Outcome) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(started) = self.started.take() {
            self.instruments.record(self.operation, outcome, started);
        }
    }
}

impl<I: Deref<Target = Instruments>> Drop for Timing<I> {
    fn drop(&mut self) {
        self.end(Outcome::Cancelled);
    }
}

/// What the label `operation` says; the order is that of [`Operation::NAMES`].
#[derive(Clone, Copy)]
pub(super) enum Operation {
    Get,
    GetMany,
    Set,
    SetMany,
    TryAdd,
    GetOrAdd,
    TryReplace,
    TryRemove,
    TryExtend,
    TryLease,
    TryRelay,
    Release,
    Watch,
    Remove,
    RemoveMany,
    Increment,
    TimeToLive,
    Keys,
    Ping,
}

impl Operation {
    pub(super) const NAMES: [&'static str; 19] = [
        "get",
        "get_many",
        "set",
        "set_many",
        "try_add",
        "get_or_add",
        "try_replace",
        "try_remove",
        "try_extend",
        "try_lease",
        "try_relay",
        "release",
        "watch",
        "remove",
        "remove_many",
        "increment",
        "time_to_live",
        "keys",
        "ping",
    ];
}

/// What the label `outcome` says; the order is that of [`Outcome::NAMES`].
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    Ok,
    Miss,
    Unavailable,
    Full,
    Conflict,
    Error,
    Cancelled,
}

impl Outcome {
    const NAMES: [&'static str; 7] = [
        "ok",
        "miss",
        "unavailable",
        "full",
        "conflict",
        "error",
        "cancelled",
    ];

    pub(super) fn of(error: &CachingError) -> Self {
        match (error.code(), error.code().category()) {
            (ErrorCode::StoreFull, _) => Self::Full,
            (_, ErrorCategory::Unavailable) => Self::Unavailable,
            (_, ErrorCategory::Conflict) => Self::Conflict,
            _ => Self::Error,
        }
    }
}
