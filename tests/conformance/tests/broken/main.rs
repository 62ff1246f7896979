//! Each case of the store fails on a store that breaks its rule, so that none of them is one that
//! cannot fail. (The cases of the lease lock have a file of their own.)
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "the whole program is test code"
)]

mod defect;
mod harness;
mod primitives;
mod store;
mod table;
mod watchers;
mod wrongly;

use std::collections::HashSet;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use conformance::{CASES, Case, run};
use defect::Defect;
use harness::BrokenHarness;
use parking_lot::Mutex;
use table::TABLE;

/// The cases that this file answers for.
fn cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(|case| case.group != "lock")
}

fn fails(case: &Case, defect: Defect) -> bool {
    let body = case.body;
    catch_unwind(|| run(&BrokenHarness(defect), body)).is_err()
}

#[test]
fn every_case_has_a_store_on_which_it_fails() {
    let names: HashSet<_> = cases().map(|case| case.name).collect();
    let listed: HashSet<_> = TABLE.iter().map(|(name, _)| *name).collect();
    let missing: Vec<_> = names.difference(&listed).collect();
    assert!(missing.is_empty(), "no broken store for {missing:?}");
    let unknown: Vec<_> = listed.difference(&names).collect();
    assert!(unknown.is_empty(), "no such case: {unknown:?}");
}

#[test]
fn every_case_fails_on_its_broken_store() {
    // Hundreds of expected panics say nothing.
    std::panic::set_hook(Box::new(|_| {}));
    let (next, passed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((name, defect)) = TABLE.get(next.fetch_add(1, Ordering::SeqCst)) {
            let case = cases().find(|case| case.name == *name).unwrap();
            if !fails(case, *defect) {
                passed.lock().push((*name, *defect));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(work);
        }
    });
    let _ = std::panic::take_hook();
    let passed = passed.into_inner();
    assert!(
        passed.is_empty(),
        "these pass on a broken store: {passed:#?}"
    );
}

#[test]
fn every_case_passes_without_a_defect() {
    let failing: Vec<_> = cases()
        .filter(|case| fails(case, Defect::None))
        .map(|case| case.name)
        .collect();
    assert!(
        failing.is_empty(),
        "these fail without a defect: {failing:?}"
    );
}
