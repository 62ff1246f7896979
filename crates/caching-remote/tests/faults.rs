//! What the store does when the way to the server fails, however operations get there.
#![cfg(all(feature = "client", feature = "server"))]
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

#[path = "support/gated.rs"]
mod gated;
mod support;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::{
    CacheItem, CacheStore, LeaseToken, TimeToLive, milliseconds, minutes, seconds,
};
use caching_remote::{RemoteStore, Transport};
use futures_util::{FutureExt, StreamExt};
use gated::Gated;
use redis_support::{Fault, Proxy};
use support::{Server, is_unavailable, key, long, long_life, recovery, reference, settings};
use tokio::time::{Instant, sleep, timeout};

const LIMIT: Duration = milliseconds(2000);
const MARGIN: Duration = milliseconds(500);
const BOTH: [Transport; 2] = [Transport::Session, Transport::Unary];

/// A server, a proxy before it, and a store behind the proxy.
struct Scene {
    /// What the server has, without a network.
    inside: Arc<dyn CacheStore>,
    _server: Server,
    proxy: Proxy,
    store: RemoteStore,
}

async fn behind_proxy(transport: Transport) -> Scene {
    behind_proxy_within(transport, LIMIT).await
}

async fn behind_proxy_within(transport: Transport, limit: Duration) -> Scene {
    let inside = reference();
    let server = Server::start(Arc::clone(&inside), |builder| builder).await;
    let proxy = Proxy::start(server.port);
    let mut settings = settings(proxy.port());
    settings.remote.operation_timeout = limit;
    let store = RemoteStore::connect_over(&settings, transport).await;
    let scene = Scene {
        inside,
        _server: server,
        proxy,
        store: store.unwrap(),
    };
    // What a connection begins with is said.
    scene.store.ping().await.unwrap();
    sleep(milliseconds(100)).await;
    scene
}

async fn is_known_to_be_away(store: &dyn CacheStore) -> bool {
    let answer = store.ping().await;
    answer.is_err_and(|error| !error.may_have_been_applied())
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_lease_whose_answer_is_lost_is_asked_for_again() {
    for transport in BOTH {
        let Scene { proxy, store, .. } = &behind_proxy(transport).await;
        let (k, token) = (key("lease"), LeaseToken::generate());
        proxy.set(Fault::LoseNextReply);
        let number = store.try_lease(&k, &token, long_life()).await.unwrap();
        assert_eq!(proxy.lost(), 1, "an answer was lost");
        assert!(number.is_some(), "its own lease does not stand in its way");
        let again = store.try_lease(&k, &token, long_life()).await.unwrap();
        assert_eq!(again, number, "it was issued once");
        assert!(store.release(&k, &token).await.unwrap());
        let next = LeaseToken::generate();
        let next = store.try_lease(&k, &next, long_life()).await.unwrap();
        assert!(next > number);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_read_whose_answer_is_lost_is_repeated() {
    for transport in BOTH {
        let Scene { proxy, store, .. } = &behind_proxy(transport).await;
        store.set(&key("k"), "v".into(), long()).await.unwrap();
        proxy.set(Fault::LoseNextReply);
        assert_eq!(store.get(&key("k")).await.unwrap(), Some("v".into()));
        proxy.set(Fault::LoseNextReply);
        let many = store.get_many(&[key("k"), key("l")]).await.unwrap();
        assert_eq!(many, [Some("v".into()), None]);
        proxy.set(Fault::LoseNextReply);
        assert!(store.time_to_live(&key("k")).await.unwrap().is_some());
        proxy.set(Fault::LoseNextReply);
        let listed: Vec<_> = store.keys("").collect().await;
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].as_ref().unwrap().as_str(), "k");
        assert_eq!(proxy.lost(), 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_write_whose_answer_is_lost_is_reported_and_not_repeated() {
    for transport in BOTH {
        let scene = behind_proxy(transport).await;
        let (proxy, store, inside) = (&scene.proxy, &scene.store, &scene.inside);
        proxy.set(Fault::LoseNextReply);
        let error = store.increment(&key("n"), 1, long()).await.unwrap_err();
        assert!(
            is_unavailable(&error) && error.may_have_been_applied(),
            "{error}"
        );
        recovery(store).await;
        let number = inside.get(&key("n")).await.unwrap();
        assert_eq!(number, Some("1".into()), "it ran once");

        sleep(milliseconds(100)).await;
        proxy.set(Fault::LoseNextReply);
        let added = store.try_add(&key("a"), "v".into(), long()).await;
        assert!(added.unwrap_err().may_have_been_applied());
        recovery(store).await;
        assert!(!store.try_add(&key("a"), "w".into(), long()).await.unwrap());
        assert_eq!(inside.get(&key("a")).await.unwrap(), Some("v".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_swallowed_answer_ends_with_the_time_limit() {
    for transport in BOTH {
        let Scene { proxy, store, .. } = &behind_proxy(transport).await;
        proxy.set(Fault::SwallowReplies);
        let begun = Instant::now();
        let error = store.set(&key("k"), "v".into(), long()).await.unwrap_err();
        assert!(
            is_unavailable(&error) && error.may_have_been_applied(),
            "{error}"
        );
        // A connection that says nothing at all may be given up before the limit.
        assert!(begun.elapsed() >= LIMIT / 2, "{:?}", begun.elapsed());
        assert!(begun.elapsed() < LIMIT + MARGIN, "{:?}", begun.elapsed());
        proxy.set(Fault::None);
        let took = recovery(store).await;
        assert!(took < LIMIT + MARGIN, "{took:?}");
        assert_eq!(store.get(&key("k")).await.unwrap(), Some("v".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_an_unreachable_server_is_told_at_once() {
    let Scene { proxy, store, .. } = &behind_proxy(Transport::Session).await;
    proxy.set(Fault::Refuse);
    // Until it is known that nobody listens, a call may be on its way.
    while !is_known_to_be_away(store).await {
        sleep(milliseconds(5)).await;
    }
    let begun = Instant::now();
    let error = store.set(&key("k"), "v".into(), long()).await.unwrap_err();
    assert!(is_unavailable(&error), "{error}");
    assert!(!error.may_have_been_applied(), "nothing was sent: {error}");
    assert!(begun.elapsed() < MARGIN, "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_store_whose_server_is_away_at_the_start_starts() {
    let server = Server::start(reference(), |builder| builder).await;
    let proxy = Proxy::start(server.port);
    proxy.set(Fault::Refuse);
    while tokio::net::TcpStream::connect(("127.0.0.1", proxy.port()))
        .await
        .is_ok()
    {
        sleep(milliseconds(5)).await;
    }
    let begun = Instant::now();
    let store = RemoteStore::connect(&settings(proxy.port())).await.unwrap();
    let took = begun.elapsed();
    assert!(
        took < seconds(1),
        "it waited for an absent server: {took:?}"
    );
    let error = store.get(&key("k")).await.unwrap_err();
    assert!(is_unavailable(&error), "{error}");
    assert!(store.watch(&key("k")).await.is_err());
    proxy.set(Fault::None);
    let took = recovery(&store).await;
    assert!(took < seconds(2), "{took:?}");
    store.set(&key("k"), "v".into(), long()).await.unwrap();
}

/// Nobody calls, so only a sign of life that is missing can tell.
#[tokio::test(flavor = "multi_thread")]
async fn s3_a_dead_connection_is_noticed_while_nobody_uses_it() {
    let Scene { proxy, store, .. } = &behind_proxy(Transport::Session).await;
    let before = proxy.accepted();
    proxy.set(Fault::Hang);
    let begun = Instant::now();
    while proxy.accepted() == before {
        assert!(begun.elapsed() < LIMIT + MARGIN, "nothing is noticed");
        sleep(milliseconds(5)).await;
    }
    proxy.set(Fault::None);
    recovery(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_a_dropped_call_is_not_sent_after_a_reconnect() {
    for transport in BOTH {
        let scene = behind_proxy(transport).await;
        let (proxy, store, inside) = (&scene.proxy, &scene.store, &scene.inside);
        proxy.set(Fault::Hang);
        for number in 0..20 {
            let k = key(&format!("dropped{number}"));
            let _ = store.set(&k, "v".into(), long()).now_or_never();
        }
        proxy.set(Fault::Cut);
        sleep(milliseconds(50)).await;
        proxy.set(Fault::None);
        recovery(store).await;
        // What waited for a connection would go before this.
        store.set(&key("marker"), "v".into(), long()).await.unwrap();
        sleep(milliseconds(200)).await;
        assert_eq!(inside.keys("").count().await, 1);
    }
}

/// A dropped call that waits in this process is forgotten there, though nobody waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn s5_what_waits_behind_a_blocked_socket_is_never_sent() {
    for transport in BOTH {
        let scene = behind_proxy_within(transport, milliseconds(400)).await;
        let (proxy, store, inside) = (&scene.proxy, &scene.store, &scene.inside);
        proxy.set(Fault::Hang);
        // Far more than sockets and windows hold.
        let large = vec![b'x'; 1024 * 1024];
        for number in 0..64 {
            let k = key(&format!("large{number:02}"));
            let call = store.set(&k, large.clone().into(), long());
            let _ = timeout(milliseconds(2), call).await;
        }
        let last = key("last");
        let call = store.set(&last, "v".into(), long());
        let _ = timeout(milliseconds(2), call).await;
        // Far longer than the time limit.
        sleep(milliseconds(1500)).await;
        proxy.set(Fault::None);
        recovery(store).await;
        store.set(&key("marker"), "v".into(), long()).await.unwrap();
        sleep(milliseconds(200)).await;
        for gone in ["last", "large63"] {
            assert_eq!(inside.get(&key(gone)).await.unwrap(), None, "{gone}");
        }
    }
}

/// Callers that give up after a millisecond leave nothing behind but what their lease allows.
#[tokio::test(flavor = "multi_thread")]
async fn s5_a_thousand_calls_of_a_millisecond_leave_nothing_behind() {
    for transport in BOTH {
        let Scene { proxy, store, .. } = &behind_proxy(transport).await;
        proxy.set(Fault::Delay(milliseconds(1)));
        let short = TimeToLive::new(milliseconds(300)).unwrap();
        let calls = (0..1000).map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let (k, token) = (key(&format!("lease{number}")), LeaseToken::generate());
                let lease = store.try_lease(&k, &token, short);
                timeout(milliseconds(1), lease).await.is_err()
            })
        });
        let calls: Vec<_> = calls.collect();
        let mut given_up = 0;
        for call in calls {
            given_up += u32::from(call.await.unwrap());
        }
        assert!(given_up > 0, "everybody was in time");
        proxy.set(Fault::None);
        sleep(milliseconds(600)).await;
        for number in 0..1000 {
            let (k, token) = (key(&format!("lease{number}")), LeaseToken::generate());
            let leased = store.try_lease(&k, &token, short).await.unwrap();
            assert!(leased.is_some(), "{k} is held by nobody");
        }
    }
}

/// The server goes away between two messages of one batch: the second was certainly not executed,
/// and yet the batch has changed something.
#[tokio::test(flavor = "multi_thread")]
async fn s4_a_batch_that_was_written_in_part_does_not_say_that_nothing_changed() {
    for transport in BOTH {
        let inside = reference();
        let (gated, gate) = Gated::new(Arc::clone(&inside));
        let server = Server::start(gated, |builder| builder).await;
        let mut settings = settings(server.port);
        settings.remote.operation_timeout = milliseconds(1000);
        let store = RemoteStore::connect_over(&settings, transport)
            .await
            .unwrap();
        let item = |number| CacheItem::new(key(&format!("key{number}")), Bytes::from("v"), long());
        let items: Vec<CacheItem> = (0..1500).map(item).collect();
        let writing = tokio::spawn(async move { store.set_many(&items).await });
        gate.reaches(1, 0).await;
        let shutting_down = tokio::spawn(server.shut_down());
        sleep(milliseconds(100)).await;
        gate.open(1);
        let error = timeout(minutes(1), writing)
            .await
            .unwrap()
            .unwrap()
            .unwrap_err();
        let first = inside.get(&key("key0")).await.unwrap();
        assert_eq!(first, Some("v".into()), "the first message was executed");
        assert!(error.may_have_been_applied(), "{error}");
        assert_eq!(gate.counts(), (1, 1));
        shutting_down.await.unwrap();
    }
}

/// Giving up is no offence: whoever else uses the connection goes on with it.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_given_up_in_a_burst_do_not_break_the_connection() {
    for transport in BOTH {
        let Scene { proxy, store, .. } = &behind_proxy(transport).await;
        let connections = proxy.accepted();
        proxy.set(Fault::Delay(milliseconds(1)));
        for _ in 0..5 {
            let calls = (0..400).map(|number| {
                let store = store.clone();
                tokio::spawn(async move {
                    let k = key(&format!("k{number}"));
                    let read = timeout(milliseconds(1), store.get(&k)).await.is_err();
                    let watch = timeout(milliseconds(1), store.watch(&k)).await.is_err();
                    u32::from(read) + u32::from(watch)
                })
            });
            let calls: Vec<_> = calls.collect();
            let mut given_up = 0;
            for call in calls {
                given_up += call.await.unwrap();
            }
            assert!(given_up > 0, "everybody was in time");
        }
        proxy.set(Fault::None);
        store.ping().await.unwrap();
        assert_eq!(proxy.accepted(), connections, "the connection stands");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_hears_of_what_it_may_have_missed() {
    let Scene { proxy, store, .. } = &behind_proxy(Transport::Session).await;
    let mut hints = store.watch(&key("k")).await.unwrap();
    let early = timeout(milliseconds(100), hints.next()).await;
    assert!(early.is_err(), "nothing happened yet");
    sleep(milliseconds(1200)).await;
    proxy.break_once();
    let hint = timeout(seconds(5), hints.next()).await;
    assert_eq!(
        hint.unwrap(),
        Some(()),
        "the connection was lost for a while"
    );
    let token = LeaseToken::generate();
    let leased = store.try_lease(&key("k"), &token, long_life()).await;
    assert!(leased.unwrap().is_some());
    assert!(store.release(&key("k"), &token).await.unwrap());
    let hint = timeout(seconds(5), hints.next()).await;
    assert_eq!(hint.unwrap(), Some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_network_is_no_fault() {
    for transport in BOTH {
        let Scene { proxy, store, .. } = &behind_proxy(transport).await;
        proxy.set(Fault::Delay(milliseconds(60)));
        store.set(&key("k"), "v".into(), long()).await.unwrap();
        assert_eq!(store.get(&key("k")).await.unwrap(), Some("v".into()));
    }
}
