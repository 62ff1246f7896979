//! Operations of the in-memory store against bare moka, by one and by two threads.

use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use caching_abstractions::CacheKey;
use tokio::runtime::Runtime;

use crate::subject::{BareMoka, Ours, Subject};
use crate::table::{Bar, Row, median, ratios};
use crate::{Options, Result};

/// How many keys each operation goes through.
const KEYS: usize = 200_000;
const VALUE_BYTES: usize = 100;
const THREADS: [usize; 2] = [1, 2];

/// What is measured, in this order: each one finds what the ones before it left behind.
const OPERATIONS: [Operation; 7] = [
    Operation::Set,
    Operation::GetEvictable,
    Operation::GetMiss,
    Operation::TryAdd,
    Operation::GetProtected,
    Operation::TryReplace,
    Operation::TryRemove,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Set,
    GetEvictable,
    GetMiss,
    TryAdd,
    GetProtected,
    TryReplace,
    TryRemove,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::GetEvictable => "get, evictable",
            Self::GetMiss => "get, absent",
            Self::TryAdd => "try_add",
            Self::GetProtected => "get, protected",
            Self::TryReplace => "try_replace",
            Self::TryRemove => "try_remove",
        }
    }

    /// The most of moka's time that it may take.
    fn bar(self) -> Option<Bar> {
        match self {
            Self::Set => None,
            Self::GetEvictable | Self::GetMiss | Self::GetProtected => Some(Bar::AtMost(1.5)),
            Self::TryAdd | Self::TryReplace | Self::TryRemove => Some(Bar::AtMost(0.5)),
        }
    }

    /// Does it once; `true` if it answered as it has to here.
    fn apply(self, subject: &impl Subject, keys: &Keys, index: usize) -> bool {
        match self {
            Self::Set => subject.set(&keys.evictable[index], &keys.old),
            Self::GetEvictable => subject.get(&keys.evictable[index]),
            Self::GetMiss => !subject.get(&keys.absent[index]),
            Self::TryAdd => subject.try_add(&keys.protected[index], &keys.old),
            Self::GetProtected => subject.get(&keys.protected[index]),
            Self::TryReplace => subject.try_replace(&keys.protected[index], &keys.old, &keys.new),
            Self::TryRemove => subject.try_remove(&keys.protected[index], &keys.new),
        }
    }
}

struct Keys {
    evictable: Vec<CacheKey>,
    protected: Vec<CacheKey>,
    absent: Vec<CacheKey>,
    old: Bytes,
    new: Bytes,
}

impl Keys {
    fn new() -> Result<Self> {
        let of = |kind: &str| {
            (0..KEYS)
                .map(|index| CacheKey::new(format!("tenant:{kind}:{index:08}")))
                .collect::<caching_abstractions::Result<Vec<_>>>()
        };
        Ok(Self {
            evictable: of("evictable")?,
            protected: of("protected")?,
            absent: of("absent")?,
            old: vec![1; VALUE_BYTES].into(),
            new: vec![2; VALUE_BYTES].into(),
        })
    }
}

/// Measures every operation and gives the rows of the table.
pub(crate) fn run(options: &Options) -> Result<Vec<Row>> {
    let keys = Keys::new()?;
    // Ours frees what has expired on a task, as it does in a service.
    let runtime = Runtime::new()?;
    let mut rows = Vec::new();
    for threads in THREADS {
        let (mut ours, mut bare) = (Series::default(), Series::default());
        for _ in 0..options.rounds {
            bare.measure(&BareMoka::new(), &keys, threads, &runtime)?;
            ours.measure(&Ours::new()?, &keys, threads, &runtime)?;
        }
        println!("store: {} done", in_words(threads));
        rows.extend(OPERATIONS.iter().enumerate().map(|(index, operation)| Row {
            what: format!("store, {}, {}", operation.name(), in_words(threads)),
            ours: format!("{:.0} ns", median(&ours.0[index])),
            baseline: format!("moka {:.0} ns", median(&bare.0[index])),
            ratios: ratios(&ours.0[index], &bare.0[index]),
            cpu_ratios: Vec::new(),
            bar: operation.bar(),
        }));
    }
    Ok(rows)
}

fn in_words(threads: usize) -> String {
    match threads {
        1 => "1 thread".to_owned(),
        many => format!("{many} threads"),
    }
}

/// Per operation the nanoseconds of each round.
#[derive(Default)]
struct Series([Vec<f64>; OPERATIONS.len()]);

impl Series {
    fn measure<S: Subject>(
        &mut self,
        subject: &S,
        keys: &Keys,
        threads: usize,
        runtime: &Runtime,
    ) -> Result {
        // The first write of a key is another operation than the ones after it.
        pass(Operation::Set, subject, keys, threads, runtime)?;
        for (operation, series) in OPERATIONS.iter().zip(&mut self.0) {
            let elapsed = pass(*operation, subject, keys, threads, runtime)?;
            series.push(elapsed.as_nanos() as f64 / KEYS as f64);
        }
        Ok(())
    }
}

/// One operation on every key, the keys shared out among the threads.
fn pass<S: Subject>(
    operation: Operation,
    subject: &S,
    keys: &Keys,
    threads: usize,
    runtime: &Runtime,
) -> Result<Duration> {
    let start = Instant::now();
    let succeeded: usize = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                scope.spawn(move || {
                    let _runtime = runtime.enter();
                    // A stride that visits every key, none beside the one before it.
                    (first..KEYS)
                        .step_by(threads)
                        .map(|count| count * 7919 % KEYS)
                        .filter(|&index| operation.apply(subject, keys, index))
                        .count()
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_default())
            .sum()
    });
    let elapsed = start.elapsed();
    if succeeded == KEYS {
        Ok(elapsed)
    } else {
        let name = operation.name();
        Err(format!("store, {name}: {succeeded} of {KEYS} answered as they have to").into())
    }
}
