//! A part of a store below a prefix passes the whole suite, as a store of its own (K4).
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{
    CacheEntryOptions, CacheKey, CacheStore, CacheStoreExt, Clock, ErrorCode, KeyPrefix,
    ManualClock, PrefixedStore,
};
use caching_inmemory::InMemoryStore;
use conformance::{Gap, RunningStore, Setup, StoreHarness};

conformance::suite!(PrefixedHarness);

#[derive(Debug)]
struct PrefixedHarness;

#[async_trait]
impl StoreHarness for PrefixedHarness {
    fn gaps(&self) -> &'static [Gap] {
        &[Gap::ForeignValue, Gap::Outage]
    }

    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        let clock = ManualClock::new();
        Ok(Box::new(PrefixedRunning {
            store: store(&setup, &clock),
            setup,
            clock,
        }))
    }
}

/// Every client works below `tenant`; a client with a prefix below that one as well.
struct PrefixedRunning {
    store: InMemoryStore,
    setup: Setup,
    clock: ManualClock,
}

#[async_trait]
impl RunningStore for PrefixedRunning {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        let tenant = below(Arc::new(self.store.clone()), "tenant");
        match prefix {
            None => tenant,
            Some(prefix) => below(tenant, prefix.as_str()),
        }
    }

    async fn pass(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    async fn restart_empty(&mut self) -> Result<(), Gap> {
        self.store = store(&self.setup, &self.clock);
        Ok(())
    }

    async fn step_wall_clock_back(&self, by: Duration) -> Result<(), Gap> {
        let now = self.clock.unix_time();
        self.clock.set_unix_time(now.saturating_sub(by));
        Ok(())
    }
}

fn store(setup: &Setup, clock: &ManualClock) -> InMemoryStore {
    let mut builder = InMemoryStore::builder().clock(Arc::new(clock.clone()));
    if let Some(time_to_live) = setup.default_time_to_live {
        builder = builder.default_time_to_live(time_to_live);
    }
    if let Some(budgets) = setup.budgets {
        builder = builder
            .max_capacity_bytes(budgets.evictable_bytes)
            .max_protected_bytes(budgets.protected_bytes);
    }
    builder.build()
}

fn below(store: Arc<dyn CacheStore>, prefix: &str) -> Arc<dyn CacheStore> {
    let prefix = KeyPrefix::new(prefix).unwrap();
    Arc::new(PrefixedStore::new(store, prefix))
}

#[tokio::test]
async fn k4_the_longest_key_is_stored_read_and_listed_below_a_prefix() {
    let whole: Arc<dyn CacheStore> = Arc::new(InMemoryStore::new());
    let shop = below(Arc::clone(&whole), "shop");
    let longest = CacheKey::new("é".repeat(CacheKey::MAX_CHARACTERS)).unwrap();
    let options = CacheEntryOptions::default();
    for protected in [false, true] {
        if protected {
            assert!(shop.remove(&longest).await.unwrap());
            assert!(shop.try_add(&longest, "1".into(), options).await.unwrap());
        } else {
            shop.set(&longest, "1".into(), options).await.unwrap();
        }
        assert_eq!(shop.get(&longest).await.unwrap().unwrap(), "1");
        let listed = shop.sorted_keys("").await.unwrap();
        assert_eq!(listed, std::slice::from_ref(&longest));
        let stored = whole.sorted_keys("shop:").await.unwrap();
        assert_eq!(stored.len(), 1);
        assert_eq!(stored[0].as_str(), format!("shop:{longest}"));
    }
}

#[tokio::test]
async fn k4_an_error_names_the_key_without_the_prefix() {
    let whole: Arc<dyn CacheStore> = Arc::new(InMemoryStore::new());
    let shop = below(whole, "shop");
    let key = CacheKey::new("count").unwrap();
    let options = CacheEntryOptions::default();
    shop.set(&key, "many".into(), options).await.unwrap();
    let error = shop.increment(&key, 1, options).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::WrongKind);
    assert_eq!(error.parameter("key"), Some("count"));
    assert!(error.to_string().contains("`count`"), "{error}");
    assert!(!format!("{error:?}").contains("shop"), "{error:?}");
}
