//! How the provider checks its settings and starts.
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::sync::Arc;

use caching_abstractions::{
    CacheEntryOptions, CacheKey, CacheStore, CacheStoreExt, CachingProvider, CachingSettings,
    DistributedLock, ErrorCode, KeyPrefix, minutes, seconds,
};
use caching_redis::{RedisProvider, RedisStore};
use redis_support::{Certificates, Cluster, Server, TlsCluster, TlsSentinel};
use support::settings;

async fn works(settings: &CachingSettings) {
    let store = RedisStore::connect(settings).await.unwrap();
    let key = CacheKey::new("k").unwrap();
    let options = CacheEntryOptions::default();
    store.set(&key, "v".into(), options).await.unwrap();
    assert_eq!(store.get(&key).await.unwrap(), Some("v".into()));
}

/// The text of everything that can be printed of a refusal to start.
async fn refused(settings: &CachingSettings, code: ErrorCode) -> String {
    let error = RedisStore::connect(settings).await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    format!("{error} {error:?}")
}

fn problems(settings: &CachingSettings) -> Vec<String> {
    let problems = RedisProvider::new().check(settings);
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn r1_the_manifest_says_what_it_is() {
    let manifest = RedisProvider::new().manifest();
    assert_eq!(manifest.name(), "redis");
    assert_eq!(manifest.supplied(), ["caching.distributed"]);
    assert!(!manifest.is_fallback());
}

#[test]
fn r2_missing_settings_are_a_problem_with_a_remedy() {
    let found = problems(&CachingSettings::default());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("XiHan:Caching:Redis:Url: it is not set; set it"));
    assert!(problems(&settings("redis://localhost")).is_empty());
}

#[test]
fn c1_all_problems_are_found_at_once() {
    let mut wrong = settings("rediss://localhost");
    wrong.redis.operation_timeout = seconds(0);
    wrong.redis.ca_file = Some("no-such-authority.pem".into());
    wrong.redis.client_key_file = Some("no-such-key.pem".into());
    let found = problems(&wrong).join("\n");
    for subject in [
        "OperationTimeoutMilliseconds",
        "CaFile",
        "ClientCertificateFile",
    ] {
        assert!(found.contains(subject), "{subject} is missing: {found}");
    }
    let found = problems(&settings("redis://:s3cret@h:0/999?timeout=1"));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(!found.join("\n").contains("s3cret"));
}

#[test]
fn c1_files_that_would_be_ignored_are_named() {
    let mut wrong = settings("redis://localhost");
    wrong.redis.ca_file = Some("ca.pem".into());
    let found = problems(&wrong);
    assert!(
        found[0].contains("CaFile") && found[0].contains("rediss://"),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_with_every_special_character_works_and_is_never_shown() {
    let password = "p@ss/w?rd#1:%é";
    let encoded = "p%40ss%2Fw%3Frd%231%3A%25%C3%A9";
    let server = Server::with(&[("requirepass", password)]);
    works(&settings(&format!(
        "redis://:{encoded}@127.0.0.1:{}",
        server.port()
    )))
    .await;
    let wrong = settings(&format!("redis://:wr0ng@127.0.0.1:{}", server.port()));
    let text = refused(&wrong, ErrorCode::Unauthenticated).await;
    assert!(
        text.contains("Redis:Url") && !text.contains("wr0ng"),
        "{text}"
    );
    refused(&settings(&server.url()), ErrorCode::Unauthenticated).await;
}

/// The rights that `docs/redis.md` names are enough, and the only way in.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_the_documented_rights_can_do_everything_under_its_prefix() {
    const RIGHTS: &str = "~shop:* ~{*}?F* &xihan:wake:* +@read +@write -@dangerous +@scripting \
                          +@pubsub +@connection +info +time";
    let documentation = include_str!("../../../docs/redis.md");
    let documented = RIGHTS.replace("shop", "<prefix>");
    assert!(documentation.contains(&documented), "it names other rights");
    let server = Server::start();
    let mut rule = vec!["ACL", "SETUSER", "shop", "on", ">pw"];
    rule.extend(RIGHTS.split_whitespace());
    assert_eq!(server.raw().command(&rule).text(), "OK");
    let mut settings = settings(&format!("redis://shop:pw@127.0.0.1:{}/1", server.port()));
    let strange = RedisStore::connect(&settings).await.unwrap();
    let key = CacheKey::new("k").unwrap();
    let error = strange.get(&key).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable, "another's key");

    settings.key_prefix = Some(KeyPrefix::new("shop").unwrap());
    works(&settings).await;
    let store = RedisStore::connect(&settings).await.unwrap();
    let sliding = CacheEntryOptions::sliding_expiration(minutes(1)).unwrap();
    store.set(&key, "1".into(), sliding).await.unwrap();
    assert_eq!(store.increment(&key, 1, sliding).await.unwrap(), 2);
    assert_eq!(store.sorted_keys("").await.unwrap(), [key]);
    let locks = DistributedLock::new(Arc::new(store.clone()));
    let held = locks.acquire("report", minutes(1)).await.unwrap();
    let waiting = locks.acquire_within("report", minutes(1), seconds(20));
    let (released, acquired) = tokio::join!(held.release(), waiting);
    assert!(released.unwrap());
    assert!(acquired.unwrap().release().await.unwrap());
    let hints = store.watch(&CacheKey::new("a").unwrap()).await;
    assert!(hints.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_with_an_own_authority_works_and_another_one_is_not_trusted() {
    let (ours, others) = (Certificates::make(), Certificates::make());
    let (_server, port) = ours.server(false);
    let mut trusted = settings(&format!("rediss://127.0.0.1:{port}"));
    trusted.redis.ca_file = Some(ours.authority());
    works(&trusted).await;
    let mut by_name = settings(&format!("rediss://localhost:{port}/2"));
    by_name.redis.ca_file = Some(ours.authority());
    works(&by_name).await;
    let mut distrusted = trusted.clone();
    distrusted.redis.ca_file = Some(others.authority());
    let store = RedisStore::connect(&distrusted).await.unwrap();
    let error = store.ping().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.to_string().contains("ertificate"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_shows_a_certificate_to_a_server_that_asks_for_one() {
    let certificates = Certificates::make();
    let (_server, port) = certificates.server(true);
    let mut settings = settings(&format!("rediss://127.0.0.1:{port}"));
    settings.redis.ca_file = Some(certificates.authority());
    let store = RedisStore::connect(&settings).await.unwrap();
    assert!(store.ping().await.is_err(), "it shows none");
    settings.redis.client_certificate_file = Some(certificates.certificate());
    settings.redis.client_key_file = Some(certificates.key());
    assert!(problems(&settings).is_empty());
    works(&settings).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_reaches_every_primary_of_a_cluster() {
    let (certificates, others) = (Certificates::make(), Certificates::make());
    let cluster = TlsCluster::start(&certificates);
    let mut settings = settings(&cluster.url());
    settings.redis.ca_file = Some(certificates.authority());
    works(&settings).await;
    let store = RedisStore::connect(&settings).await.unwrap();
    for number in 0..30 {
        let key = CacheKey::new(format!("k{number}")).unwrap();
        let options = CacheEntryOptions::time_to_live(minutes(1)).unwrap();
        store.set(&key, "v".into(), options).await.unwrap();
        assert_eq!(store.get(&key).await.unwrap(), Some("v".into()));
    }
    assert!(!cluster.sizes().contains(&"0".to_owned()), "{cluster:?}");
    settings.redis.ca_file = Some(others.authority());
    let store = RedisStore::connect(&settings).await.unwrap();
    let error = store.ping().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_reaches_sentinels_and_the_primary_they_know() {
    let (certificates, others) = (Certificates::make(), Certificates::make());
    let group = TlsSentinel::start(&certificates);
    let mut settings = settings(&group.url());
    settings.redis.ca_file = Some(certificates.authority());
    works(&settings).await;
    settings.redis.ca_file = Some(others.authority());
    let store = RedisStore::connect(&settings).await.unwrap();
    let error = store.ping().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s2_a_server_that_evicts_is_refused_where_that_is_required() {
    let server = Server::with(&[("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")]);
    let mut settings = settings(&server.url());
    works(&settings).await;
    settings.redis.require_no_eviction = true;
    let text = refused(&settings, ErrorCode::StoreUnavailable).await;
    assert!(
        text.contains("allkeys-lru") && text.contains("noeviction"),
        "{text}"
    );
    server
        .raw()
        .command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    works(&settings).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_and_one_server_are_not_taken_for_each_other() {
    let (server, cluster) = (Server::start(), Cluster::start());
    let one = server.url().replace("redis://", "redis-cluster://");
    let text = refused(&settings(&one), ErrorCode::StoreUnavailable).await;
    assert!(text.contains("use a redis:// URL"), "{text}");
    let node = cluster.servers()[0].url();
    let text = refused(&settings(&node), ErrorCode::StoreUnavailable).await;
    assert!(text.contains("redis-cluster://"), "{text}");
    works(&settings(&cluster.url())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn x3_a_store_prints_no_secret() {
    let server = Server::with(&[("requirepass", "s3cret")]);
    let url = format!("redis://:s3cret@127.0.0.1:{}", server.port());
    let store = RedisStore::connect(&settings(&url)).await.unwrap();
    assert!(!format!("{store:?}").contains("s3cret"));
}
