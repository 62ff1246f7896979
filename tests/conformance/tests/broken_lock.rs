//! Every case of the lease lock can fail: for each there is a store on which it does.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the whole file is test code"
)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, ErrorCode, KeyPrefix, LeaseToken, Result,
    TimeToLive, WakeHints, hours, milliseconds,
};
use conformance::{
    CASES, Case, Gap, Pace, ReferenceHarness, ReferenceRunning, RunningStore, Setup, StoreHarness,
    key,
};
use futures_util::stream::BoxStream;

/// What is wrong with a store, in what the lock asks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    Nothing,
    /// It grants what is held.
    GrantsHeld,
    /// It stores more than the token.
    WrapsToken,
    /// It takes every lock for the same one.
    OneLockForAll,
    /// It takes a long key for one that is held.
    RefusesLongKeys,
    /// A lease does not end.
    LeaseLivesForEver,
    /// Every number is 1.
    NumberIsConstant,
    /// It says "held" when it is away.
    HeldWhenAway,
    /// A dropped request is applied a little later.
    AppliesWhatWasDropped,
    /// A release answers as it should and changes nothing.
    ReleaseDoesNothing,
    /// A release takes away whatever stands there.
    ReleaseTakesAnothers,
    /// A renewal answers as it should and changes nothing.
    ExtendDoesNothing,
    /// A renewal writes the token, whatever stands there.
    ExtendWrites,
}

use Defect::*;

/// Each case, and a store on which it fails.
const FAILS_ON: &[(&str, Defect)] = &[
    ("l1_a_free_lock_is_leased_under_its_key", WrapsToken),
    ("l1_a_held_lock_gives_none_and_stays_as_it_is", GrantsHeld),
    ("l1_every_grant_has_a_token_of_its_own", GrantsHeld),
    (
        "l1_different_resources_do_not_exclude_each_other",
        OneLockForAll,
    ),
    ("l1_a_resource_that_is_no_key_is_refused", RefusesLongKeys),
    ("l1_one_of_64_wins", GrantsHeld),
    (
        "l2_a_held_lock_is_a_conflict_that_names_the_resource",
        GrantsHeld,
    ),
    ("l3_other_programs_exclude_and_are_excluded", WrapsToken),
    ("l7_a_lock_is_not_reentrant", GrantsHeld),
    ("l7_after_its_time_anyone_may_acquire", LeaseLivesForEver),
    (
        "l8_an_unreachable_store_is_never_not_acquired",
        HeldWhenAway,
    ),
    (
        "l13_fencing_numbers_rise_from_holder_to_holder",
        NumberIsConstant,
    ),
    (
        "l13_a_resource_that_keeps_the_largest_number_refuses_late_holders",
        NumberIsConstant,
    ),
    (
        "l5_the_first_release_is_true_and_the_next_false",
        ReleaseDoesNothing,
    ),
    (
        "l5_of_releases_at_the_same_time_one_is_true",
        ReleaseDoesNothing,
    ),
    ("l5_release_of_an_expired_lease_is_false", LeaseLivesForEver),
    (
        "l5_a_value_that_is_not_ours_is_left_alone",
        ReleaseTakesAnothers,
    ),
    ("l6_dropping_the_handle_frees_the_lock", ReleaseDoesNothing),
    (
        "l6_dropping_the_handle_outside_a_runtime_frees_the_lock",
        ReleaseDoesNothing,
    ),
    (
        "l6_dropping_a_late_handle_takes_nothing_from_the_next_holder",
        ReleaseTakesAnothers,
    ),
    (
        "l9_a_cancelled_acquire_leaves_no_lock",
        AppliesWhatWasDropped,
    ),
    ("l9_a_cancelled_waiter_leaves_no_lock", GrantsHeld),
    (
        "l10_the_works_own_result_comes_back_and_the_lock_is_free",
        ReleaseDoesNothing,
    ),
    ("l10_the_work_runs_under_the_lock", GrantsHeld),
    ("l10_under_a_held_lock_the_work_does_not_run", GrantsHeld),
    (
        "l10_a_late_release_never_replaces_the_result",
        ReleaseTakesAnothers,
    ),
    ("l10_a_panic_frees_the_lock", ReleaseDoesNothing),
    ("l10_a_cancellation_frees_the_lock", ReleaseDoesNothing),
    (
        "l11_a_waiter_gets_the_lock_after_a_release",
        ReleaseDoesNothing,
    ),
    ("l11_a_wait_that_is_too_short_times_out", GrantsHeld),
    (
        "l11_a_waiter_outlives_a_holder_that_vanished",
        LeaseLivesForEver,
    ),
    ("l11_a_cancelled_waiter_blocks_nobody", GrantsHeld),
    ("l11_64_waiters_get_their_turns_one_at_a_time", GrantsHeld),
    ("l12_a_lock_is_kept_beyond_its_time", ExtendDoesNothing),
    (
        "l12_without_it_a_lock_ends_with_its_time",
        LeaseLivesForEver,
    ),
    ("l12_renewal_ends_with_the_handle", ReleaseDoesNothing),
    ("l12_a_deleted_key_is_a_loss", ExtendWrites),
    ("l12_an_overwritten_key_is_a_loss", ExtendWrites),
    ("l12_renewal_never_brings_a_lost_lock_back", ExtendWrites),
    ("l14_each_resource_is_locked_once", ReleaseDoesNothing),
    ("l14_one_that_is_held_means_none", GrantsHeld),
    (
        "l14_dropping_the_handle_frees_every_lock",
        ReleaseDoesNothing,
    ),
    ("l14_opposite_orders_do_not_deadlock", GrantsHeld),
    ("l14_the_loss_of_one_is_the_loss_of_all", ExtendWrites),
];

fn lock_cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(|case| case.group == "lock")
}

/// Runs every pair at once and gives the names of those that pass.
fn passing(pairs: impl Iterator<Item = (&'static Case, Defect)>) -> BTreeSet<&'static str> {
    std::thread::scope(|scope| {
        let runs: Vec<_> = pairs
            .map(|(case, defect)| {
                let run = move || conformance::run(&BrokenHarness(defect), case.body);
                let run = scope.spawn(move || catch_unwind(AssertUnwindSafe(run)).is_ok());
                (case.name, run)
            })
            .collect();
        let passed = runs
            .into_iter()
            .filter_map(|(name, run)| run.join().unwrap().then_some(name));
        passed.collect()
    })
}

#[test]
fn every_lock_case_fails_on_its_broken_store() {
    let pairs = lock_cases().map(|case| {
        let found = FAILS_ON.iter().find(|(name, _)| *name == case.name);
        let (_, defect) = found.unwrap_or_else(|| panic!("{} has no broken store", case.name));
        (case, *defect)
    });
    assert_eq!(passing(pairs), BTreeSet::new(), "these cases cannot fail");
    assert_eq!(
        lock_cases().count(),
        FAILS_ON.len(),
        "the table names a case that is gone"
    );
}

#[test]
fn every_lock_case_passes_without_a_defect() {
    let passed = passing(lock_cases().map(|case| (case, Nothing)));
    assert_eq!(passed, lock_cases().map(|case| case.name).collect());
}

#[derive(Debug)]
struct BrokenHarness(Defect);

#[async_trait]
impl StoreHarness for BrokenHarness {
    fn pace(&self) -> Pace {
        Pace {
            hint: milliseconds(500),
            ..ReferenceHarness::default().pace()
        }
    }

    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        Ok(Box::new(BrokenRunning {
            reference: ReferenceRunning::new(&setup),
            defect: self.0,
        }))
    }
}

struct BrokenRunning {
    reference: ReferenceRunning,
    defect: Defect,
}

#[async_trait]
impl RunningStore for BrokenRunning {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        Arc::new(BrokenStore {
            inner: self.reference.client(prefix).await,
            defect: self.defect,
        })
    }

    async fn pass(&self, duration: Duration) {
        self.reference.pass(duration).await;
    }

    async fn restart_empty(&mut self) -> Result<(), Gap> {
        self.reference.restart_empty().await
    }

    async fn plant_foreign_value(&self, key: &CacheKey) -> Result<(), Gap> {
        self.reference.plant_foreign_value(key).await
    }

    async fn cut(&mut self) -> Result<(), Gap> {
        self.reference.cut().await
    }

    async fn mend(&mut self) {
        self.reference.mend().await;
    }

    async fn step_wall_clock_back(&self, by: Duration) -> Result<(), Gap> {
        self.reference.step_wall_clock_back(by).await
    }
}

/// A correct store with one defect in front of it.
#[derive(Clone, Debug)]
struct BrokenStore {
    inner: Arc<dyn CacheStore>,
    defect: Defect,
}

/// Applies a lease later if its caller does not wait for it.
struct Dropped {
    store: BrokenStore,
    lease: Option<(CacheKey, LeaseToken, TimeToLive)>,
}

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some((key, token, time_to_live)) = self.lease.take() {
            let store = self.store.inner.clone();
            tokio::spawn(async move {
                tokio::time::sleep(milliseconds(5)).await;
                store.try_lease(&key, &token, time_to_live).await
            });
        }
    }
}

impl BrokenStore {
    async fn lease(
        &self,
        k: &CacheKey,
        token: &LeaseToken,
        life: TimeToLive,
    ) -> Result<Option<u64>> {
        match self.defect {
            GrantsHeld => {
                let granted = self.inner.try_lease(k, token, life).await?;
                if granted.is_none() {
                    let value = Bytes::copy_from_slice(token.as_bytes());
                    self.inner.set(k, value, life.into()).await?;
                }
                Ok(granted.or(Some(1)))
            }
            WrapsToken => {
                let wrapped = LeaseToken::new(format!("token={}", token.as_str()))?;
                self.inner.try_lease(k, &wrapped, life).await
            }
            OneLockForAll => self.inner.try_lease(&key("lock:"), token, life).await,
            RefusesLongKeys if k.as_str().len() > 500 => Ok(None),
            LeaseLivesForEver => {
                self.inner
                    .try_lease(k, token, TimeToLive::new(hours(9))?)
                    .await
            }
            NumberIsConstant => Ok(self.inner.try_lease(k, token, life).await?.map(|_| 1)),
            HeldWhenAway => match self.inner.try_lease(k, token, life).await {
                Err(error) if error.code() == ErrorCode::StoreUnavailable => Ok(None),
                answer => answer,
            },
            AppliesWhatWasDropped => {
                let mut dropped = Dropped {
                    store: self.clone(),
                    lease: Some((k.clone(), token.clone(), life)),
                };
                tokio::task::yield_now().await;
                dropped.lease = None;
                self.inner.try_lease(k, token, life).await
            }
            _ => self.inner.try_lease(k, token, life).await,
        }
    }

    /// What `release` and `try_extend` compare with.
    async fn stands(&self, key: &CacheKey, token: &[u8]) -> Result<bool> {
        Ok(self
            .inner
            .get(key)
            .await?
            .is_some_and(|value| value == token))
    }
}

#[async_trait]
impl CacheStore for BrokenStore {
    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        self.lease(key, token, time_to_live).await
    }

    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        match self.defect {
            ExtendDoesNothing => self.stands(key, expected).await,
            ExtendWrites => {
                let value = Bytes::copy_from_slice(expected);
                self.inner.set(key, value, time_to_live.into()).await?;
                Ok(true)
            }
            _ => self.inner.try_extend(key, expected, time_to_live).await,
        }
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        match self.defect {
            ReleaseDoesNothing => self.stands(key, token.as_bytes()).await,
            ReleaseTakesAnothers => self.inner.remove(key).await,
            _ => self.inner.release(key, token).await,
        }
    }

    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        self.inner.get(key).await
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        self.inner.get_many(keys).await
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        self.inner.set(key, value, options).await
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        self.inner.set_many(items).await
    }

    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        self.inner.try_add(key, value, options).await
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        self.inner.get_or_add(key, value, options).await
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        self.inner.try_replace(key, expected, value, options).await
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        self.inner.try_remove(key, expected).await
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        self.inner
            .try_relay(key, token, new_token, time_to_live)
            .await
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        self.inner.watch(key).await
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        self.inner.remove(key).await
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        self.inner.remove_many(keys).await
    }

    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        self.inner.increment(key, delta, options).await
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        self.inner.time_to_live(key).await
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        self.inner.keys(prefix)
    }

    async fn ping(&self) -> Result<()> {
        self.inner.ping().await
    }
}
