//! Who is let in, and to which keys.

use caching_abstractions::ErrorCode;
use caching_remote::proto::*;
use caching_remote::server::{ServerError, StoreServer};
use tokio_stream::StreamExt;
use tonic::metadata::{AsciiMetadataValue, BinaryMetadataValue};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

use crate::support::{Running, access, get, lease, prefix, reference, set};

/// A request with a token and a prefix.
fn with<T>(message: T, authorization: &str, prefix: &str) -> Request<T> {
    let mut request = Request::new(message);
    if !authorization.is_empty() {
        let value: AsciiMetadataValue = authorization.parse().unwrap();
        request.metadata_mut().insert("authorization", value);
    }
    if !prefix.is_empty() {
        let value = BinaryMetadataValue::from_bytes(prefix.as_bytes());
        request
            .metadata_mut()
            .insert_bin("xihan-key-prefix-bin", value);
    }
    request
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, reason: ErrorCode) {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.reason, reason.as_str());
    assert!(!format!("{status:?}").contains("SECRET"), "{status:?}");
}

async fn guarded() -> Running {
    Running::of(reference(), |settings| {
        settings
            .token(access("SECRET-all"))
            .token(access("SECRET-shop").bound_to(prefix("shop")))
            .token(access("SECRET-blog").bound_to(prefix("blog")))
    })
    .await
}

#[tokio::test]
async fn part6_a_missing_or_wrong_token_is_unauthenticated() {
    let server = guarded().await;
    let mut client = server.client().await;
    for authorization in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer SECRET",
        "Bearer SECRET-all2",
        "Bearer  SECRET-all",
        "Basic SECRET-all",
        "SECRET-all",
    ] {
        let answer = client.get(with(get("a"), authorization, "")).await;
        refused(answer, Code::Unauthenticated, ErrorCode::Unauthenticated);
    }
    let mut twice = with(get("a"), "Bearer SECRET-all", "");
    let value = "Bearer SECRET-shop".parse().unwrap();
    twice.metadata_mut().append("authorization", value);
    refused(
        client.get(twice).await,
        Code::Unauthenticated,
        ErrorCode::Unauthenticated,
    );
    client
        .get(with(get("a"), "bearer SECRET-all", ""))
        .await
        .unwrap();
}

#[tokio::test]
async fn part6_every_call_asks_for_the_token_streams_included() {
    let server = guarded().await;
    let mut client = server.client().await;
    let unauthenticated = |status: Status| {
        refused(
            Err::<(), _>(status),
            Code::Unauthenticated,
            ErrorCode::Unauthenticated,
        );
    };
    let key = || "a".to_owned();
    unauthenticated(client.ping(PingRequest {}).await.unwrap_err());
    unauthenticated(client.set(set("a", "1")).await.unwrap_err());
    unauthenticated(client.try_lease(lease("a", "t")).await.unwrap_err());
    let prefix = String::new();
    unauthenticated(client.keys(KeysRequest { prefix }).await.unwrap_err());
    unauthenticated(client.watch(WatchRequest { key: key() }).await.unwrap_err());
    let nothing = tokio_stream::pending::<SessionRequest>();
    unauthenticated(client.session(nothing).await.unwrap_err());
}

#[tokio::test]
async fn k4_a_bound_token_sees_its_prefix_and_nothing_else() {
    let server = guarded().await;
    let mut client = server.client().await;
    let (all, shop, blog) = (
        "Bearer SECRET-all",
        "Bearer SECRET-shop",
        "Bearer SECRET-blog",
    );
    client.set(with(set("a", "shop"), shop, "")).await.unwrap();
    client
        .set(with(set("a", "blog"), blog, "blog"))
        .await
        .unwrap();

    let read = async |authorization, prefix, key: &str| {
        let mut client = server.client().await;
        let got = client.get(with(get(key), authorization, prefix)).await;
        got.unwrap().into_inner().value
    };
    assert_eq!(read(shop, "shop", "a").await, Some("shop".into()));
    assert_eq!(read(blog, "", "a").await, Some("blog".into()));
    assert_eq!(read(all, "", "shop:a").await, Some("shop".into()));
    assert_eq!(read(all, "blog", "a").await, Some("blog".into()));
    assert_eq!(read(all, "", "a").await, None);
    assert_eq!(read(shop, "", "blog:a").await, None);

    let listing = client
        .keys(with(
            KeysRequest {
                prefix: String::new(),
            },
            shop,
            "",
        ))
        .await;
    let listed: Vec<_> = listing.unwrap().into_inner().collect().await;
    let keys: Vec<_> = listed
        .into_iter()
        .flat_map(|keys| keys.unwrap().keys)
        .collect();
    assert_eq!(keys, ["a"]);
}

#[tokio::test]
async fn k4_leases_and_numbers_of_two_prefixes_do_not_meet() {
    let server = guarded().await;
    let mut client = server.client().await;
    let mut take = async |authorization| {
        let request = with(lease("lock:a", "token"), authorization, "");
        client
            .try_lease(request)
            .await
            .unwrap()
            .into_inner()
            .fencing
    };
    assert!(take("Bearer SECRET-shop").await.is_some());
    assert!(take("Bearer SECRET-blog").await.is_some());
    assert!(take("Bearer SECRET-all").await.is_some());
}

#[tokio::test]
async fn k4_a_token_of_another_prefix_is_forbidden() {
    let server = guarded().await;
    let mut client = server.client().await;
    for asked in ["blog", "shop2", "sho"] {
        let answer = client
            .get(with(get("a"), "Bearer SECRET-shop", asked))
            .await;
        refused(answer, Code::PermissionDenied, ErrorCode::Forbidden);
    }
}

#[tokio::test]
async fn k4_without_tokens_a_client_has_the_prefix_it_asks_for() {
    let server = Running::new().await;
    let mut client = server.client().await;
    client.set(with(set("a", "1"), "", "shöp")).await.unwrap();
    let got = client.get(get("shöp:a")).await.unwrap().into_inner();
    assert_eq!(got.value, Some("1".into()));
    for wrong in ["a:b", "a b"] {
        let answer = client.get(with(get("a"), "", wrong)).await;
        refused(answer, Code::InvalidArgument, ErrorCode::InvalidKey);
    }
}

#[tokio::test]
async fn k4_the_longest_key_works_below_a_prefix_and_is_not_listed_above() {
    let server = Running::new().await;
    let mut client = server.client().await;
    let longest = "é".repeat(512);
    client
        .set(with(set(&longest, "1"), "", "shop"))
        .await
        .unwrap();
    let mut list = async |prefix| {
        let request = with(
            KeysRequest {
                prefix: String::new(),
            },
            "",
            prefix,
        );
        let listed: Vec<_> = client
            .keys(request)
            .await
            .unwrap()
            .into_inner()
            .collect()
            .await;
        let keys = listed.into_iter().flat_map(|keys| keys.unwrap().keys);
        keys.collect::<Vec<_>>()
    };
    assert_eq!(list("shop").await, [longest]);
    // No client of the whole store could name it.
    assert!(list("").await.is_empty());
}

#[tokio::test]
async fn part6_an_address_that_others_reach_needs_a_token_and_tls() {
    let open = StoreServer::builder(reference()).build().unwrap();
    let with_token = StoreServer::builder(reference())
        .token(access("SECRET"))
        .build()
        .unwrap();
    for (server, says) in [(&open, "no token and no TLS"), (&with_token, "no TLS")] {
        for address in ["0.0.0.0:0", "[::]:0", "[::ffff:10.0.0.1]:0"] {
            let error = server.bind(address).await.unwrap_err();
            assert!(matches!(error, ServerError::Exposed { .. }), "{error}");
            assert!(error.to_string().contains(says), "{error}");
            assert!(error.to_string().contains("`insecure`"), "{error}");
        }
        let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
        assert!(
            server
                .serve(listener, std::future::ready(()))
                .await
                .is_err()
        );
        assert!(server.bind("localhost:0").await.is_ok());
    }
    let told = StoreServer::builder(reference())
        .insecure(true)
        .build()
        .unwrap();
    assert!(told.bind("0.0.0.0:0").await.is_ok());
}
