//! Throughput of operations over one connection, measured in turns.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::Result;

/// How many tasks call at the same time, never two of them about one key.
pub(crate) const TASKS: [usize; 2] = [1, 64];
/// How many keys there are; a multiple of each number of tasks.
pub(crate) const KEYS: usize = 32_000;
pub(crate) const VALUE: [u8; 100] = [1; 100];
/// As long as a generated token is.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const ENTRY_MILLISECONDS: u64 = 60 * 60 * 1000;
pub(crate) const LEASE_MILLISECONDS: u64 = 30 * 1000;

/// With one task each call waits for the one before it.
const ONE_AT_A_TIME: usize = 1500;
/// How often each contender has its turn; odd, as the median counts.
const TURNS: usize = 3;

/// What is measured.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) enum Operation {
    /// `get` of a key that stands
    Get,
    /// `get_or_add` of a key that stands
    GetStanding,
    /// `get_or_add` of a new key
    Add,
    /// Taking a lease with a fencing number and releasing it: two calls
    Lease,
    /// The same through a lock handle
    Lock,
}

impl Operation {
    pub(crate) const ALL: [Self; 5] = [
        Self::Get,
        Self::GetStanding,
        Self::Add,
        Self::Lease,
        Self::Lock,
    ];
}

/// Who makes calls; each task has a clone.
pub(crate) trait Contender: Clone + Send + 'static {
    fn name(&self) -> &'static str;

    /// Sees to it, before the time is taken, that the operation finds what it has to.
    fn prepare(&mut self, operation: Operation) -> impl Future<Output = Result> + Send;

    /// Does it once on the key `index`; `true` if it was answered as it has to be.
    fn apply(&mut self, operation: Operation, index: usize) -> impl Future<Output = bool> + Send;
}

/// What a process measured.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) contender: String,
    pub(crate) operation: Operation,
    pub(crate) tasks: usize,
    pub(crate) per_second: f64,
}

/// The name of the entry `index`.
pub(crate) fn entry(index: usize) -> String {
    format!("tenant:order:{index:08}")
}

/// The resource `index` that is locked.
pub(crate) fn resource(index: usize) -> String {
    format!("orders:{index:08}")
}

/// The key that holds the lease of the resource `index`.
pub(crate) fn lease(index: usize) -> String {
    format!("lock:{}", resource(index))
}

/// Measures `contenders` against each other: after a turn to warm up, each has its turns in an
/// order that rotates.
pub(crate) async fn measure<C: Contender>(
    contenders: &[(C, Operation)],
    tasks: usize,
) -> Result<Vec<Figure>> {
    let count = if tasks == 1 { ONE_AT_A_TIME } else { KEYS };
    let mut elapsed = vec![Vec::with_capacity(TURNS); contenders.len()];
    for turn in 0..=TURNS {
        for place in 0..contenders.len() {
            let index = (place + turn) % contenders.len();
            let (contender, operation) = &contenders[index];
            contender.clone().prepare(*operation).await?;
            let pass = pass(contender, *operation, count, tasks).await?;
            if turn > 0 {
                elapsed[index].push(pass);
            }
        }
    }
    let figure = |((contender, operation), mut turns): (&(C, Operation), Vec<Duration>)| {
        turns.sort_unstable();
        Figure {
            contender: contender.name().to_owned(),
            operation: *operation,
            tasks,
            per_second: count as f64 / turns[TURNS / 2].as_secs_f64(),
        }
    };
    Ok(contenders.iter().zip(elapsed).map(figure).collect())
}

/// One operation on each of `count` keys, the keys shared out among the tasks.
async fn pass<C: Contender>(
    contender: &C,
    operation: Operation,
    count: usize,
    tasks: usize,
) -> Result<Duration> {
    let start = Instant::now();
    let work = |first| {
        let mut contender = contender.clone();
        tokio::spawn(async move {
            let mut done = 0;
            for index in (first..count).step_by(tasks) {
                done += usize::from(contender.apply(operation, index).await);
            }
            done
        })
    };
    let workers: Vec<_> = (0..tasks).map(work).collect();
    let mut done = 0;
    for worker in workers {
        done += worker.await?;
    }
    let elapsed = start.elapsed();
    if done == count {
        return Ok(elapsed);
    }
    let name = contender.name();
    Err(format!("{name}, {operation:?}: {done} of {count} were answered as they have to").into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts how often it is asked, and fails on one key.
    #[derive(Clone, Default)]
    struct Counting {
        asked: Arc<AtomicUsize>,
        fails_on: Option<usize>,
    }

    impl Contender for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        async fn prepare(&mut self, _: Operation) -> Result {
            Ok(())
        }

        async fn apply(&mut self, _: Operation, index: usize) -> bool {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.fails_on != Some(index)
        }
    }

    #[tokio::test]
    async fn every_key_has_its_turn_whatever_the_number_of_tasks() {
        for (tasks, keys) in [(1, ONE_AT_A_TIME), (64, KEYS)] {
            let contender = Counting::default();
            let alone = [(contender.clone(), Operation::Get)];
            let figures = measure(&alone, tasks).await.unwrap();
            assert_eq!(figures.len(), 1);
            let asked = contender.asked.load(Ordering::SeqCst);
            assert_eq!(asked, keys * (TURNS + 1));
        }
    }

    #[tokio::test]
    async fn one_wrong_answer_makes_a_measurement_void() {
        let contender = Counting {
            fails_on: Some(63),
            ..Counting::default()
        };
        let error = measure(&[(contender, Operation::Get)], 64).await;
        let says = error.unwrap_err().to_string();
        assert!(says.contains("31999 of 32000"), "{says}");
    }
}
