//! Messages that are too long, and servers that do not offer everything.
#![cfg(all(feature = "client", feature = "server"))]
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use caching_abstractions::{CacheItem, CacheKey, CacheStore, CachingError, ErrorCode};
use caching_remote::server::{Limits, StoreServer, StoreService};
use caching_remote::{RemoteStore, Transport};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use redis_support::Proxy;
use support::{Server, key, long, reference, settings};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;

const KIB: usize = 1024;
const BOTH: [Transport; 2] = [Transport::Session, Transport::Unary];

/// A server, a proxy before it, and a store; each side with a limit of its own.
async fn limited(transport: Transport, here: usize, there: usize) -> (Server, Proxy, RemoteStore) {
    let mut limits = Limits::default();
    limits.max_message_bytes = there;
    let server = Server::start(reference(), |builder| builder.limits(limits)).await;
    let proxy = Proxy::start(server.port);
    let mut settings = settings(proxy.port());
    settings.remote.max_message_bytes = here as u64;
    let store = RemoteStore::connect_over(&settings, transport).await;
    (server, proxy, store.unwrap())
}

fn value(length: usize) -> Bytes {
    vec![b'v'; length].into()
}

fn names_the_setting(error: &CachingError) {
    assert_eq!(error.code(), ErrorCode::StoreFull, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("MaxMessageBytes") && text.contains("server"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn s2_what_is_too_long_is_refused_before_it_is_sent() {
    for transport in BOTH {
        let (_server, proxy, store) = limited(transport, 64 * KIB, 1024 * KIB).await;
        let connections = proxy.accepted();
        let k = key("k");
        let long_value = value(65 * KIB);
        names_the_setting(&store.set(&k, long_value.clone(), long()).await.unwrap_err());
        names_the_setting(
            &store
                .try_add(&k, long_value.clone(), long())
                .await
                .unwrap_err(),
        );
        names_the_setting(&store.try_remove(&k, &long_value).await.unwrap_err());
        let items = [
            CacheItem::new(key("short"), value(1), long()),
            CacheItem::new(k.clone(), long_value, long()),
        ];
        names_the_setting(&store.set_many(&items).await.unwrap_err());
        assert_eq!(store.get(&k).await.unwrap(), None);
        store.set(&k, value(60 * KIB), long()).await.unwrap();
        assert_eq!(store.get(&k).await.unwrap(), Some(value(60 * KIB)));
        assert_eq!(proxy.accepted(), connections, "the connection stands");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_longer_than_a_message_go_in_pieces() {
    for transport in BOTH {
        let (_server, proxy, store) = limited(transport, 64 * KIB, 64 * KIB).await;
        let connections = proxy.accepted();
        let keys: Vec<CacheKey> = (0..3000).map(|n| key(&format!("key-{n:0>100}"))).collect();
        let item = |key: &CacheKey| CacheItem::new(key.clone(), value(200), long());
        let items: Vec<CacheItem> = keys.iter().map(item).collect();
        store.set_many(&items).await.unwrap();
        let found = store.get_many(&keys).await.unwrap();
        assert_eq!(found.len(), keys.len());
        assert!(found.iter().all(|found| *found == Some(value(200))));
        let removed = store.remove_many(&keys).await.unwrap();
        assert_eq!(removed, vec![true; keys.len()]);
        assert_eq!(proxy.accepted(), connections, "the connection stands");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_longer_than_a_message_together_are_asked_for_in_halves() {
    for transport in BOTH {
        let (_server, proxy, store) = limited(transport, 64 * KIB, 64 * KIB).await;
        let connections = proxy.accepted();
        let keys: Vec<CacheKey> = (0..20).map(|n| key(&format!("k{n}"))).collect();
        for (length, k) in (1..).zip(&keys) {
            store.set(k, value(length * 2 * KIB), long()).await.unwrap();
        }
        let found = store.get_many(&keys).await.unwrap();
        let lengths: Vec<usize> = found.iter().flatten().map(|v| v.len() / KIB).collect();
        let expected: Vec<usize> = (1..=20).map(|n| n * 2).collect();
        assert_eq!(lengths, expected);
        assert_eq!(proxy.accepted(), connections, "the connection stands");
    }
}

/// Whoever waits for locks of other keys leaves room for releasing them.
#[tokio::test(flavor = "multi_thread")]
async fn watches_leave_streams_for_everything_else() {
    for transport in BOTH {
        let mut limits = Limits::default();
        limits.max_concurrent_streams = 10;
        let server = Server::start(reference(), |builder| builder.limits(limits)).await;
        let store = RemoteStore::connect_over(&settings(server.port), transport).await;
        let store = store.unwrap();
        // The limit has come with the first answers.
        store.ping().await.unwrap();
        let mut watches = Vec::new();
        for number in 0..5 {
            let watch = store.watch(&key(&format!("k{number}"))).await;
            watches.push(watch.unwrap());
        }
        let refused = store.watch(&key("one-too-many")).await.err().unwrap();
        assert_eq!(refused.code(), ErrorCode::StoreUnavailable, "{refused}");
        store.set(&key("k0"), value(1), long()).await.unwrap();
        assert_eq!(store.keys("").collect::<Vec<_>>().await.len(), 1);
        watches.pop();
        watches.push(store.watch(&key("in-its-place")).await.unwrap());
    }
}

/// The server sends more than this side takes: that call fails, and nobody else's.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_too_long_for_this_side_is_passed_over() {
    for transport in BOTH {
        let (server, proxy, store) = limited(transport, 64 * KIB, 1024 * KIB).await;
        let large = RemoteStore::connect(&settings(server.port)).await.unwrap();
        large
            .set(&key("k"), value(300 * KIB), long())
            .await
            .unwrap();
        let connections = proxy.accepted();
        let others = (0..8).map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..200 {
                    let k = key(&format!("{task}-{number}"));
                    store.set(&k, value(10), long()).await.unwrap();
                }
            })
        });
        let others: Vec<_> = others.collect();
        for _ in 0..20 {
            names_the_setting(&store.get(&key("k")).await.unwrap_err());
            let added = store.get_or_add(&key("k"), value(1), long()).await;
            names_the_setting(&added.unwrap_err());
        }
        for other in others {
            other.await.unwrap();
        }
        assert_eq!(proxy.accepted(), connections, "the connection stands");
    }
}

/// The server takes less than this side sends: that call fails, and nobody else's.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_lower_limit_refuses_that_call_only() {
    for transport in BOTH {
        let (_server, proxy, store) = limited(transport, 1024 * KIB, 64 * KIB).await;
        let others = (0..8).map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..200 {
                    let k = key(&format!("{task}-{number}"));
                    store.set(&k, value(10), long()).await.unwrap();
                }
            })
        });
        let others: Vec<_> = others.collect();
        let error = store.set(&key("k"), value(100 * KIB), long()).await;
        let error = error.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreFull, "{error}");
        for other in others {
            other.await.unwrap();
        }
        let connections = proxy.accepted();
        let again = store.set(&key("k"), value(100 * KIB), long()).await;
        assert_eq!(again.unwrap_err().code(), ErrorCode::StoreFull);
        assert_eq!(proxy.accepted(), connections, "it has learned");
        store.set(&key("k"), value(60 * KIB), long()).await.unwrap();
    }
}

/// A server of another make: it knows the calls and not the session.
#[derive(Clone)]
struct WithoutSessions {
    store: StoreService,
    refused: Arc<AtomicUsize>,
}

impl NamedService for WithoutSessions {
    const NAME: &'static str = StoreService::NAME;
}

impl Service<http::Request<Body>> for WithoutSessions {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path().ends_with("/Session") {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let answer = tonic::Status::unimplemented("no such call").into_http();
            return Box::pin(async move { Ok(answer) });
        }
        Box::pin(self.store.call(request))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_sessions_gets_a_call_for_each_operation() {
    let store = StoreServer::builder(reference()).build().unwrap();
    let refused = Arc::new(AtomicUsize::new(0));
    let service = WithoutSessions {
        store: store.store_service(),
        refused: Arc::clone(&refused),
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    tokio::spawn(
        tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_incoming(incoming),
    );
    let store = RemoteStore::connect(&settings(port)).await.unwrap();
    store.set(&key("k"), "v".into(), long()).await.unwrap();
    assert_eq!(store.get(&key("k")).await.unwrap(), Some("v".into()));
    assert_eq!(refused.load(Ordering::Relaxed), 1, "it was asked once");
}
