//! How the provider checks its settings and starts.
#![cfg(all(feature = "client", feature = "server"))]
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use caching_abstractions::{
    CacheEntryOptions, CacheStore, CachingProvider, CachingSettings, ErrorCode, KeyPrefix, seconds,
};
use caching_remote::server::{AccessToken, StoreServerBuilder};
use caching_remote::{RemoteProvider, RemoteStore, Transport};
use support::{
    CERTIFICATES, Server, key, reference, settings, tls, tls_settings, with_token, within,
};

const TOKEN: &str = "a-token-that-nobody-guesses-0123";
const OTHER: &str = "another-token-for-the-tests-4567";

async fn server(set_up: impl FnOnce(StoreServerBuilder) -> StoreServerBuilder) -> Server {
    Server::start(reference(), set_up).await
}

fn token(text: &str) -> AccessToken {
    AccessToken::new(text).unwrap()
}

async fn works(settings: &CachingSettings) {
    for transport in [Transport::Session, Transport::Unary] {
        let store = RemoteStore::connect_over(settings, transport)
            .await
            .unwrap();
        let options = CacheEntryOptions::default();
        store.set(&key("k"), "v".into(), options).await.unwrap();
        assert_eq!(store.get(&key("k")).await.unwrap(), Some("v".into()));
    }
}

/// It starts, and says at the first call why it does not work.
async fn is_away(settings: &CachingSettings, because: &str) {
    let store = RemoteStore::connect(settings).await.unwrap();
    let error = store.get(&key("k")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
    assert!(error.to_string().contains(because), "{error}");
}

/// The text of everything that can be printed of a refusal to start.
async fn refused(settings: &CachingSettings, code: ErrorCode) -> String {
    let mut text = String::new();
    for transport in [Transport::Session, Transport::Unary] {
        let started = RemoteStore::connect_over(settings, transport).await;
        let error = started.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        text += &format!("{error} {error:?}");
    }
    text
}

fn problems(settings: &CachingSettings) -> Vec<String> {
    let problems = RemoteProvider::new().check(settings);
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn r1_the_manifest_says_what_it_is() {
    let manifest = RemoteProvider::new().manifest();
    assert_eq!(manifest.name(), "remote");
    assert_eq!(manifest.supplied(), ["caching.distributed"]);
    assert!(!manifest.is_fallback() && manifest.is_networked());
}

#[test]
fn r2_missing_settings_are_a_problem_with_a_remedy() {
    let found = problems(&CachingSettings::default());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("XiHan:Caching:Remote:Endpoint: it is not set; set it"));
    assert!(problems(&settings(1)).is_empty());
}

#[test]
fn c1_all_problems_are_found_at_once_and_none_shows_a_secret() {
    let mut wrong = with_token(tls_settings(1), "s3cret\nof two lines");
    wrong.remote.operation_timeout = seconds(0);
    wrong.remote.max_message_bytes = 9;
    wrong.remote.ca_file = Some("no-such-authority.pem".into());
    wrong.remote.client_key_file = Some("no-such-key.pem".into());
    let found = problems(&wrong).join("\n");
    for subject in [
        "OperationTimeoutMilliseconds",
        "MaxMessageBytes",
        "CaFile",
        "ClientCertificateFile",
        "Remote:Token",
    ] {
        assert!(found.contains(subject), "{subject} is missing: {found}");
    }
    wrong.remote.endpoint = Some("grpc://user:s3cret@host:1".into());
    let all = found + &problems(&wrong).join("\n");
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn c1_files_that_would_be_ignored_are_named() {
    let mut wrong = settings(1);
    wrong.remote.ca_file = Some("ca.pem".into());
    let found = problems(&wrong);
    assert!(
        found[0].contains("CaFile") && found[0].contains("grpcs://"),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn part6_a_missing_or_wrong_token_is_refused_at_the_start_and_never_shown() {
    let server = server(|builder| builder.token(token(TOKEN))).await;
    works(&with_token(settings(server.port), TOKEN)).await;
    let text = refused(&settings(server.port), ErrorCode::Unauthenticated).await;
    assert!(text.contains("set XiHan:Caching:Remote:Token"), "{text}");
    let wrong = with_token(settings(server.port), OTHER);
    let text = refused(&wrong, ErrorCode::Unauthenticated).await;
    assert!(
        text.contains("correct XiHan:Caching:Remote:Token"),
        "{text}"
    );
    assert!(!text.contains(OTHER), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn k4_a_token_of_another_prefix_is_refused_at_the_start() {
    let (shop, bank) = (
        KeyPrefix::new("shop").unwrap(),
        KeyPrefix::new("bank").unwrap(),
    );
    let bound = token(TOKEN).bound_to(shop.clone());
    let server = server(|builder| builder.token(bound)).await;
    let known = with_token(settings(server.port), TOKEN);
    works(&known).await;
    works(&within(known.clone(), Some(&shop))).await;
    let text = refused(&within(known, Some(&bank)), ErrorCode::Forbidden).await;
    assert!(text.contains("XiHan:Caching:KeyPrefix"), "{text}");
}

/// A server that no longer knows the token says so to every call, with the same code.
#[tokio::test(flavor = "multi_thread")]
async fn part6_a_token_that_is_withdrawn_is_no_outage() {
    let first = server(|builder| builder.token(token(TOKEN))).await;
    let proxy = redis_support::Proxy::start(first.port);
    let known = with_token(settings(proxy.port()), TOKEN);
    let store = RemoteStore::connect(&known).await.unwrap();
    let second = server(|builder| builder.token(token(OTHER))).await;
    proxy.redirect(second.port);
    let begun = tokio::time::Instant::now();
    loop {
        let Err(error) = store.get(&key("k")).await else {
            continue;
        };
        if error.code() == ErrorCode::Unauthenticated {
            break;
        }
        assert!(begun.elapsed() < seconds(10), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_checks_who_the_server_is() {
    let server = server(|builder| builder.tls(tls())).await;
    works(&tls_settings(server.port)).await;
    let mut elsewhere = tls_settings(server.port);
    elsewhere.remote.endpoint = Some(format!("https://127.0.0.2:{}", server.port));
    is_away(&elsewhere, "cannot be reached").await;
    let mut unknown = tls_settings(server.port);
    let others = redis_support::Certificates::make();
    unknown.remote.ca_file = Some(others.authority());
    is_away(&unknown, "certificate").await;
    is_away(&settings(server.port), "cannot be reached").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_shows_who_the_client_is() {
    let asking = tls()
        .client_authority_file(CERTIFICATES.authority())
        .unwrap();
    let server = server(|builder| builder.tls(asking)).await;
    let mut shown = tls_settings(server.port);
    shown.remote.client_certificate_file = Some(CERTIFICATES.certificate());
    shown.remote.client_key_file = Some(CERTIFICATES.key());
    works(&shown).await;
    is_away(&tls_settings(server.port), "cannot be reached").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_something_else_is_away() {
    let plain = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let port = plain.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await;
        }
    });
    is_away(&settings(port), "cannot be reached").await;
    let server = server(|builder| builder).await;
    is_away(&tls_settings(server.port), "cannot be reached").await;
}
