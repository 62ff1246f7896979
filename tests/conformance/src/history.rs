//! Whether what concurrent clients saw could have happened one step at a time.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use caching_abstractions::{CacheStore, ManualClock};
use futures_util::FutureExt;

use crate::operation::{Operation, Outcome, rank_fencing_numbers};
use crate::reference::ReferenceStore;

/// One call of one client: what it asked, what it was told, and between which moments.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What was asked.
    pub operation: Operation,
    /// What was answered.
    pub outcome: Outcome,
    /// The moment before the request.
    pub called: u64,
    /// The moment after the answer.
    pub answered: u64,
}

/// A clock that only counts: its moments tell before from after, and nothing else.
#[derive(Debug, Default)]
pub struct Moments(AtomicU64);

impl Moments {
    /// Runs `operation` on `store` and notes when.
    pub async fn call(&self, store: &dyn CacheStore, area: &str, operation: &Operation) -> Call {
        let called = self.0.fetch_add(1, Ordering::SeqCst);
        let outcome = operation.run(store, area).await;
        Call {
            operation: operation.clone(),
            outcome,
            called,
            answered: self.0.fetch_add(1, Ordering::SeqCst),
        }
    }
}

/// Whether some order of `history` explains every answer on an empty [`ReferenceStore`]: one in
/// which each call takes effect at one moment between its request and its answer.
///
/// The search is the one of Wing and Gong, with a memory of what was tried. It is meant for short
/// histories, of at most 64 calls, over which no entry expires.
#[must_use]
pub fn is_linearizable(history: &[Call]) -> bool {
    assert!(history.len() <= 64, "a longer history takes too long");
    let mut history = history.to_vec();
    // On a clock at zero the model issues 1, 2, 3, …: the ranks of the numbers in each order in
    // which numbers rise.
    rank_fencing_numbers(history.iter_mut().map(|call| &mut call.outcome));
    let clock = ManualClock::new();
    clock.set_unix_time(Duration::ZERO);
    let mut search = Search {
        history: &history,
        tried: HashSet::new(),
    };
    search.explains(0, &ReferenceStore::with_clock(clock))
}

struct Search<'a> {
    history: &'a [Call],
    /// Which calls were done, and the state they left: a dead end.
    tried: HashSet<(u64, String)>,
}

impl Search<'_> {
    /// Whether the calls that are not in the set `done` can follow on `state`.
    fn explains(&mut self, done: u64, state: &ReferenceStore) -> bool {
        let history = self.history;
        let open = || {
            let calls = history.iter().enumerate();
            calls.filter(move |(position, _)| done & (1 << position) == 0)
        };
        let Some(deadline) = open().map(|(_, call)| call.answered).min() else {
            return true;
        };
        if !self.tried.insert((done, state.state())) {
            return false;
        }
        // Whatever was called before the first answer may come first.
        open()
            .filter(|(_, call)| call.called < deadline)
            .any(|(position, call)| {
                let next = state.fork();
                let outcome = call.operation.run(&next, "").now_or_never();
                outcome.as_ref() == Some(&call.outcome)
                    && self.explains(done | (1 << position), &next)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Life;
    use crate::scene::bytes;

    fn call(called: u64, answered: u64, operation: Operation, outcome: Outcome) -> Call {
        Call {
            operation,
            outcome,
            called,
            answered,
        }
    }

    fn add(called: u64, answered: u64, added: bool) -> Call {
        let operation = Operation::TryAdd(0, "1", Life::Default);
        call(called, answered, operation, Outcome::Bool(added))
    }

    fn get(called: u64, answered: u64, found: Option<&str>) -> Call {
        let outcome = Outcome::Value(found.map(bytes));
        call(called, answered, Operation::Get(0), outcome)
    }

    fn lease(called: u64, answered: u64, own: &'static str, number: Option<u64>) -> Call {
        let operation = Operation::TryLease(0, own, Duration::from_secs(60));
        call(called, answered, operation, Outcome::Fence(0, number))
    }

    #[test]
    fn overlapping_calls_may_take_effect_in_either_order() {
        assert!(is_linearizable(&[add(0, 3, false), add(1, 2, true)]));
        assert!(is_linearizable(&[add(0, 3, true), get(1, 2, None)]));
        assert!(is_linearizable(&[add(0, 3, true), get(1, 2, Some("1"))]));
    }

    #[test]
    fn two_winners_are_not_linearizable() {
        assert!(!is_linearizable(&[add(0, 3, true), add(1, 2, true)]));
    }

    #[test]
    fn a_stale_read_is_not_linearizable() {
        assert!(!is_linearizable(&[add(0, 1, true), get(2, 3, None)]));
        let back = [add(0, 9, true), get(1, 2, Some("1")), get(3, 4, None)];
        assert!(!is_linearizable(&back));
    }

    #[test]
    fn fencing_numbers_are_compared_by_their_rank() {
        let release = |called, answered| {
            let operation = Operation::Release(0, "t");
            call(called, answered, operation, Outcome::Bool(true))
        };
        let risen = [
            lease(0, 1, "t", Some(70)),
            release(2, 3),
            lease(4, 5, "u", Some(900)),
        ];
        assert!(is_linearizable(&risen));
        let again = [
            lease(0, 1, "t", Some(70)),
            release(2, 3),
            lease(4, 5, "u", Some(70)),
        ];
        assert!(!is_linearizable(&again));
        let fallen = [
            lease(0, 1, "t", Some(70)),
            release(2, 3),
            lease(4, 5, "u", Some(9)),
        ];
        assert!(!is_linearizable(&fallen));
    }
}
