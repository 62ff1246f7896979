//! A provider that lacks what it can lack passes by the clean consequence, and one that declares
//! too much or too little fails.
#![allow(clippy::panic, reason = "the whole program is test code")]

use std::panic::{RefUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{CacheStore, KeyPrefix, ManualClock};
use conformance::{
    CASES, Gap, Pace, ReferenceRunning, ReferenceStore, RunningStore, Setup, StoreHarness, run,
};

const EVERYTHING: &[Gap] = &[
    Gap::FullStore,
    Gap::TwoBudgets,
    Gap::Restart,
    Gap::ForeignValue,
    Gap::Outage,
    Gap::Clock,
    Gap::WholeKeyspace,
];

/// A store that can do nothing beyond the contract.
#[derive(Debug)]
struct Bare(&'static [Gap]);

#[async_trait]
impl StoreHarness for Bare {
    fn gaps(&self) -> &'static [Gap] {
        self.0
    }

    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        if setup.budgets.is_some() {
            return Err(Gap::FullStore);
        }
        let clock = ManualClock::new();
        let store = ReferenceStore::with_setup(Arc::new(clock.clone()), &setup);
        Ok(Box::new(BareRunning { store, clock }))
    }
}

struct BareRunning {
    store: ReferenceStore,
    clock: ManualClock,
}

#[async_trait]
impl RunningStore for BareRunning {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        // Somewhere in a store that others use as well.
        let part = match prefix {
            Some(prefix) => format!("case-{prefix}"),
            None => "case".to_owned(),
        };
        let part = KeyPrefix::new(part).unwrap_or_else(|error| panic!("{error}"));
        Arc::new(self.store.with_prefix(Some(&part)))
    }

    async fn pass(&self, duration: Duration) {
        self.clock.advance(duration);
    }
}

mod everything_is_lacking {
    use super::{Bare, EVERYTHING};

    conformance::suite!(Bare(EVERYTHING));
}

/// A store that can do everything, and declares gaps all the same.
#[derive(Debug)]
struct Modest(&'static [Gap]);

#[async_trait]
impl StoreHarness for Modest {
    fn gaps(&self) -> &'static [Gap] {
        self.0
    }

    fn pace(&self) -> Pace {
        Pace::in_process()
    }

    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        Ok(Box::new(ReferenceRunning::new(&setup)))
    }
}

fn fails(harness: &(impl StoreHarness + RefUnwindSafe), name: &str) -> bool {
    let case = CASES.iter().find(|case| case.name == name);
    let body = case.unwrap_or_else(|| panic!("{name} is a case")).body;
    catch_unwind(|| run(harness, body)).is_err()
}

#[test]
fn a_declared_gap_that_is_closed_fails() {
    for (gap, case) in [
        (
            &[Gap::FullStore][..],
            "s2_a_full_store_refuses_and_forgets_nothing",
        ),
        (
            &[Gap::Restart],
            "s6_numbers_rise_after_the_store_lost_its_data",
        ),
        (
            &[Gap::ForeignValue],
            "s7_leases_on_another_kind_of_value_conflict",
        ),
        (&[Gap::Outage], "s3_a_client_comes_back_by_itself"),
        (&[Gap::Clock], "s6_numbers_rise_though_the_clock_steps_back"),
        (
            &[Gap::WholeKeyspace],
            "k4_without_a_prefix_the_whole_keyspace_is_owned",
        ),
    ] {
        assert!(
            fails(&Modest(gap), case),
            "{case} passes with {gap:?} closed"
        );
    }
}

#[test]
fn a_gap_that_is_not_declared_fails() {
    for case in [
        "s2_a_full_store_refuses_and_forgets_nothing",
        "s6_numbers_rise_after_the_store_lost_its_data",
        "s7_leases_on_another_kind_of_value_conflict",
        "s3_a_client_comes_back_by_itself",
        "s6_numbers_rise_though_the_clock_steps_back",
        "k4_without_a_prefix_the_whole_keyspace_is_owned",
    ] {
        assert!(fails(&Bare(&[]), case), "{case} passes with a gap");
    }
}
