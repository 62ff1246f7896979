//! Rules R1 to R5, C1 and C2 through the facade.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use caching_inmemory::InMemoryStore;
use xihan_caching::prelude::*;
use xihan_caching::{
    AssemblyProblem, CacheStoreDistributedCache, CachingBuilder, CachingProvider, ProviderManifest,
};

/// A provider under any name that counts its starts.
#[derive(Clone, Debug)]
struct Fake {
    name: &'static str,
    fallback: bool,
    needs_url: bool,
    starts: Arc<AtomicUsize>,
    failure: Option<CachingError>,
}

fn fake(name: &'static str) -> Fake {
    Fake {
        name,
        fallback: false,
        needs_url: false,
        starts: Arc::default(),
        failure: None,
    }
}

impl Fake {
    fn fallback(mut self) -> Self {
        self.fallback = true;
        self
    }

    fn needs_url(mut self) -> Self {
        self.needs_url = true;
        self
    }

    fn fails(mut self, error: CachingError) -> Self {
        self.failure = Some(error);
        self
    }

    fn starts(&self) -> usize {
        self.starts.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl CachingProvider for Fake {
    fn manifest(&self) -> ProviderManifest {
        let manifest = ProviderManifest::new(self.name).supplies(CachingCapabilities::DISTRIBUTED);
        match self.fallback {
            true => manifest.fallback(),
            false => manifest,
        }
    }

    fn check(&self, settings: &CachingSettings) -> Vec<AssemblyProblem> {
        if !self.needs_url || settings.redis.url.is_some() {
            return Vec::new();
        }
        vec![AssemblyProblem::new(
            "XiHan:Caching:Redis:Url",
            "is required",
            "set it",
        )]
    }

    async fn start(&self, _: &CachingSettings) -> xihan_caching::Result<Arc<dyn CacheStore>> {
        self.starts.fetch_add(1, Ordering::SeqCst);
        match &self.failure {
            Some(error) => Err(error.clone()),
            None => Ok(Arc::new(InMemoryStore::new())),
        }
    }
}

fn toml(text: &str) -> Configuration {
    Configuration::from_toml(text).unwrap()
}

fn named(provider: &str) -> Configuration {
    Configuration::empty().with("XiHan:Caching:Provider", provider)
}

async fn problems(builder: CachingBuilder) -> Vec<String> {
    let error = builder.build().await.unwrap_err();
    error.problems().iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn r2_with_nothing_configured_the_fallback_works() {
    let builder = Caching::builder().provider(InMemoryProvider::new());
    let caching = builder.build().await.unwrap();
    assert_eq!(caching.provider_name(), "inmemory");
    assert_eq!(caching.settings(), &CachingSettings::default());
    caching.store().ping().await.unwrap();
}

#[tokio::test]
async fn r3_only_the_selected_provider_is_started_and_once() {
    let (memory, redis, remote) = (fake("inmemory").fallback(), fake("redis"), fake("remote"));
    let builder = Caching::builder()
        .provider(memory.clone())
        .provider(redis.clone())
        .provider(remote.clone())
        .configuration(named("remote"));
    let caching = builder.build().await.unwrap();
    assert_eq!(caching.provider_name(), "remote");
    assert_eq!(
        [memory.starts(), redis.starts(), remote.starts()],
        [0, 0, 1]
    );
}

#[tokio::test]
async fn r2_the_only_provider_that_is_no_fallback_is_preferred() {
    let builder = Caching::builder()
        .provider(InMemoryProvider::new())
        .provider(fake("redis"));
    assert_eq!(builder.build().await.unwrap().provider_name(), "redis");
}

#[tokio::test]
async fn r3_everything_sits_on_one_store() {
    let builder = Caching::builder().provider(InMemoryProvider::new());
    let caching = builder.build().await.unwrap();
    let store = caching.store();
    assert!(Arc::ptr_eq(store, caching.shared_cache().store()));
    assert!(Arc::ptr_eq(store, caching.locks().store()));
    assert!(Arc::ptr_eq(store, CachingServices::store(&caching)));
    assert!(Arc::ptr_eq(store, caching.clone().store()));

    let cache = caching.distributed_cache();
    let options = DistributedCacheEntryOptions::new();
    cache.set("plain", b"1", options).await.unwrap();
    assert_eq!(cache.get_blocking("plain").unwrap().unwrap(), "1");
    let number = caching.shared_cache().get::<u8>("plain").await.unwrap();
    assert_eq!(number, Some(1));
    let lock = caching.locks().try_acquire("report", minutes(1)).await;
    let key = CacheKey::new("lock:report").unwrap();
    assert!(store.get(&key).await.unwrap().is_some());
    assert!(lock.unwrap().unwrap().release().await.unwrap());
}

#[tokio::test]
async fn part10_the_one_store_is_measured_once() {
    let builder = Caching::builder().provider(InMemoryProvider::new());
    let caching = builder.build().await.unwrap();
    let store = format!("{:?}", caching.store());
    assert_eq!(store.matches("MeteredStore").count(), 1, "{store}");
}

#[tokio::test]
async fn r4_the_applications_own_distributed_cache_wins() {
    let own = CacheStoreDistributedCache::new(Arc::new(InMemoryStore::new()));
    let own: Arc<dyn DistributedCache> = Arc::new(own);
    let builder = Caching::builder()
        .distributed_cache(own.clone())
        .provider(InMemoryProvider::new());
    let caching = builder.build().await.unwrap();
    assert!(Arc::ptr_eq(&own, &caching.distributed_cache()));
    let key = CacheKey::new("k").unwrap();
    caching
        .store()
        .set(&key, Bytes::new(), CacheEntryOptions::default())
        .await
        .unwrap();
    assert_eq!(own.get("k").await.unwrap(), None);
}

#[tokio::test]
async fn r5_the_same_assembly_runs_with_every_provider() {
    for name in ["inmemory", "redis", "remote"] {
        let builder = Caching::builder()
            .provider(InMemoryProvider::new())
            .provider(fake("redis"))
            .provider(fake("remote"))
            .configuration(
                Configuration::empty().environment([("XIHAN__CACHING__PROVIDER", name)]),
            );
        assert_eq!(builder.build().await.unwrap().provider_name(), name);
    }
}

#[tokio::test]
async fn r2_two_candidates_start_neither() {
    let (redis, remote) = (fake("redis"), fake("remote"));
    let builder = Caching::builder()
        .provider(redis.clone())
        .provider(remote.clone());
    let problems = problems(builder).await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("redis, remote"));
    assert!(problems[0].contains("XiHan:Caching:Provider"));
    assert_eq!(redis.starts() + remote.starts(), 0);
}

#[tokio::test]
async fn r2_a_provider_that_is_not_compiled_in_names_its_cargo_feature() {
    let builder = Caching::builder()
        .provider(InMemoryProvider::new())
        .configuration(named("redis"));
    let problems = problems(builder).await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("registered: inmemory"));
    assert!(problems[0].contains("Cargo feature `redis`"));
}

#[tokio::test]
async fn r2_without_a_provider_every_feature_and_the_facade_hear_of_it() {
    let builder = Caching::builder().feature("daily-report", [CachingCapabilities::DISTRIBUTED]);
    let problems = problems(builder).await;
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("feature `xihan-caching`"));
    assert!(problems[1].contains("feature `daily-report`"));
    assert!(problems[1].contains("caching-redis"));
}

#[tokio::test]
async fn r2_a_selected_provider_without_its_settings_is_an_error_and_no_fallback() {
    let redis = fake("redis").needs_url();
    let builder = || {
        Caching::builder()
            .provider(InMemoryProvider::new())
            .provider(redis.clone())
    };
    let missing = problems(builder()).await;
    assert_eq!(missing, ["XiHan:Caching:Redis:Url: is required; set it"]);
    assert_eq!(redis.starts(), 0);
    let configured = Configuration::empty().with("XiHan:Caching:Redis:Url", "redis://localhost");
    builder().configuration(configured).build().await.unwrap();
    assert_eq!(redis.starts(), 1);
}

#[tokio::test]
async fn r2_a_secret_whose_file_cannot_be_read_is_not_missing_as_well() {
    let builder = Caching::builder()
        .provider(fake("redis").needs_url())
        .configuration(toml("[XiHan.Caching.Redis]\nUrlFile = '/nowhere/url'"));
    let problems = problems(builder).await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("/nowhere/url"));
}

#[tokio::test]
async fn c1_problems_of_selection_settings_and_provider_come_at_once() {
    let redis = fake("redis").needs_url();
    let builder = Caching::builder()
        .provider(redis.clone())
        .feature("search", ["search.index"])
        .configuration(
            toml("[XiHan.Caching]\nKeyPrefx = 'a'\n[XiHan.Caching.Idempotency]\nTimeToLiveSeconds = 0")
                .environment([("XIHAN__CACHING__PROVIDER", "redis")]),
        );
    let error = builder.build().await.unwrap_err();
    let text = error.to_string();
    for part in ["search.index", "KeyPrefx", "TimeToLiveSeconds", "Redis:Url"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(error.problems().len(), 4, "{text}");
    assert_eq!(redis.starts(), 0);
}

#[tokio::test]
async fn c1_a_name_that_is_no_name_is_one_problem() {
    for name in ["['inmemory']", "''", "5"] {
        let builder = Caching::builder()
            .provider(InMemoryProvider::new())
            .configuration(toml(&format!("[XiHan.Caching]\nProvider = {name}")));
        let problems = problems(builder).await;
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("XiHan:Caching:Provider"));
    }
}

#[tokio::test]
async fn c1_settings_of_a_provider_that_is_not_selected_do_not_matter() {
    let builder = Caching::builder()
        .provider(InMemoryProvider::new())
        .configuration(toml("[XiHan.Caching.Redis]\nUrlFile = '/nowhere/url'"));
    assert_eq!(builder.build().await.unwrap().provider_name(), "inmemory");
}

#[tokio::test]
async fn c1_the_default_of_the_provider_remote_is_its_servers_also_if_nobody_names_it() {
    let builder = Caching::builder()
        .provider(fake("remote"))
        .configuration(toml("[XiHan.Caching]\nDefaultTimeToLiveSeconds = 60"));
    let problems = problems(builder).await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("DefaultTimeToLiveSeconds"));
}

#[tokio::test]
async fn c2_no_printed_form_holds_a_secret() {
    let configuration =
        Configuration::empty().with("XiHan:Caching:Redis:Url", "redis://:hunter2@host");
    let builder = Caching::builder()
        .provider(fake("redis").needs_url())
        .configuration(configuration);
    assert!(!format!("{builder:?}").contains("hunter2"));
    let caching = builder.build().await.unwrap();
    assert!(!format!("{caching:?}").contains("hunter2"));
}

#[tokio::test]
async fn r3_a_provider_that_cannot_start_is_named_with_its_reason() {
    let failure = CachingError::unavailable("the server is older than version 6");
    let builder = Caching::builder()
        .provider(InMemoryProvider::new())
        .provider(fake("redis").fails(failure));
    let problems = problems(builder).await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("provider `redis`: cannot start"));
    assert!(problems[0].contains("older than version 6"));
}

#[tokio::test]
async fn part8_the_distributed_cache_keeps_its_options_on_the_real_store() {
    let builder = Caching::builder().provider(InMemoryProvider::new());
    let caching = builder.build().await.unwrap();
    let cache = caching.distributed_cache();
    let key = CacheKey::new("k").unwrap();
    let left = async || caching.store().time_to_live(&key).await.unwrap().unwrap();
    let new = DistributedCacheEntryOptions::new;
    cache.set("k", b"1", new()).await.unwrap();
    assert!(left().await > seconds(290) && left().await <= seconds(300));
    cache
        .set("k", b"2", new().sliding(hours(1)).relative(minutes(1)))
        .await
        .unwrap();
    assert!(left().await > seconds(50) && left().await <= minutes(1));
    cache.refresh("k").await.unwrap();
    cache.remove("k").await.unwrap();
    assert_eq!(cache.get("k").await.unwrap(), None);
}

#[test]
fn d3_the_blocking_face_works_inside_both_kinds_of_runtime_and_outside() {
    let current = tokio::runtime::Builder::new_current_thread();
    let multi = tokio::runtime::Builder::new_multi_thread();
    for mut kind in [current, multi] {
        let runtime = kind.enable_all().build().unwrap();
        let cache = runtime.block_on(async {
            let builder = Caching::builder().provider(InMemoryProvider::new());
            let cache = builder.build().await.unwrap().distributed_cache();
            let inside = cache.clone();
            let task = tokio::spawn(async move {
                let options = DistributedCacheEntryOptions::new().sliding(minutes(1));
                inside.set_blocking("k", b"v", options).unwrap();
                inside.refresh_blocking("k").unwrap();
                assert_eq!(inside.get_blocking("k").unwrap().unwrap(), "v");
            });
            task.await.unwrap();
            cache
        });
        drop(runtime);
        let outside = std::thread::spawn(move || {
            assert_eq!(cache.get_blocking("k").unwrap().unwrap(), "v");
            cache.remove_blocking("k").unwrap();
            assert_eq!(cache.get_blocking("k").unwrap(), None);
        });
        outside.join().unwrap();
    }
}
