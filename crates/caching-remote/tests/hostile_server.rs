//! The client against servers that break the contract: whatever they say, nobody hangs, and nothing
//! is taken for a success that is none.
#![cfg(all(feature = "client", feature = "server"))]
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use caching_abstractions::{CacheStore, LeaseToken, Result, milliseconds};
use caching_remote::RemoteStore;
use caching_remote::proto::call::Operation;
use caching_remote::proto::reply::Result as Outcome;
use caching_remote::proto::*;
use prost::Message;
use support::{is_unavailable, key, long, long_life, settings};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};

const LIMIT: Duration = milliseconds(400);
const MARGIN: Duration = milliseconds(500);

/// What a server does about a call of a session.
enum Act {
    Say(Vec<u8>),
    /// The same as a moment later.
    SayAfter(Duration, Vec<u8>),
    /// Says the beginning of something, and closes the connection.
    SayAndClose(Vec<u8>),
}

type Script = fn(&Call) -> Act;

/// A server that pings work on, and anything else is up to the script.
struct Hostile {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Hostile {
    async fn start(script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(converse(stream, script));
            }
        });
        Self { port, connections }
    }

    async fn store(&self) -> RemoteStore {
        let mut settings = settings(self.port);
        settings.remote.operation_timeout = LIMIT;
        RemoteStore::connect(&settings).await.unwrap()
    }
}

/// Serves the one session of a connection.
async fn converse(stream: TcpStream, script: Script) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let Some(Ok((request, mut respond))) = connection.accept().await else {
        return;
    };
    let (close, mut closed) = tokio::sync::mpsc::channel::<()>(1);
    tokio::spawn(async move {
        tokio::select! {
            _ = connection.accept() => {}
            // Whatever was said before is to arrive.
            _ = closed.recv() => {
                let _ = timeout(milliseconds(20), connection.accept()).await;
            }
        }
    });
    let head = http::Response::builder().header("content-type", "application/grpc");
    let mut answers = respond
        .send_response(head.body(()).unwrap(), false)
        .unwrap();
    let (mut body, mut come) = (request.into_body(), BytesMut::new());
    while let Some(Ok(piece)) = body.data().await {
        let _ = body.flow_control().release_capacity(piece.len());
        come.extend_from_slice(&piece);
        while let Some(message) = next(&mut come) {
            for call in SessionRequest::decode(message).unwrap().calls {
                let act = match call.operation {
                    Some(Operation::Ping(_)) => {
                        Act::Say(reply(call.id, Outcome::Ping(PingResponse {})))
                    }
                    _ => script(&call),
                };
                let (bytes, is_last) = match act {
                    Act::Say(bytes) => (bytes, false),
                    Act::SayAfter(time, bytes) => {
                        sleep(time).await;
                        (bytes, false)
                    }
                    Act::SayAndClose(bytes) => (bytes, true),
                };
                let _ = answers.send_data(bytes.into(), false);
                if is_last {
                    let _ = close.send(()).await;
                    return;
                }
            }
        }
    }
}

fn next(come: &mut BytesMut) -> Option<Bytes> {
    let length = come.get(1..5)?.iter();
    let length = length.fold(0, |length, byte| length << 8 | usize::from(*byte));
    if come.len() < 5 + length {
        return None;
    }
    come.advance(5);
    Some(come.split_to(length).freeze())
}

fn message(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    [&[0], &length.to_be_bytes()[..], bytes].concat()
}

fn reply(id: u64, result: Outcome) -> Vec<u8> {
    let result = Some(result);
    let replies = vec![Reply { id, result }];
    message(&SessionResponse { replies }.encode_to_vec())
}

fn number(id: u64, number: i64) -> Vec<u8> {
    reply(id, Outcome::Increment(IncrementResponse { number }))
}

fn delta(call: &Call) -> i64 {
    match &call.operation {
        Some(Operation::Increment(request)) => request.delta,
        other => unreachable!("{other:?}"),
    }
}

/// Counts with the number of the call as its difference, so that answers tell whose they are.
async fn count(store: &RemoteStore, delta: i64) -> Result<i64> {
    let begun = Instant::now();
    let answer = store.increment(&key("n"), delta, long()).await;
    assert!(begun.elapsed() < LIMIT + MARGIN, "{:?}", begun.elapsed());
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_nobody_and_second_answers_reach_nobody() {
    let server = Hostile::start(|call| {
        let wrong = |id| number(id, -1);
        let (id, right) = (call.id, number(call.id, delta(call)));
        let other_places = [id ^ 1, id + (1 << 16), id - (1 << 16), 0, u64::MAX].map(wrong);
        Act::Say([other_places.concat(), right, wrong(id), wrong(id)].concat())
    })
    .await;
    let store = server.store().await;
    for delta in 1..50 {
        assert_eq!(count(&store, delta).await.unwrap(), delta);
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_a_late_answer_does_not_reach_the_next_call() {
    let server = Hostile::start(|call| {
        let bytes = number(call.id, delta(call));
        match delta(call) {
            1 => Act::SayAfter(LIMIT + milliseconds(100), bytes),
            _ => Act::Say(bytes),
        }
    })
    .await;
    let store = server.store().await;
    let late = count(&store, 1).await.unwrap_err();
    assert!(late.may_have_been_applied(), "{late}");
    assert_eq!(count(&store, 2).await.unwrap(), 2);
    assert_eq!(count(&store, 3).await.unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_an_answer_to_another_operation_is_no_success() {
    let server = Hostile::start(|call| {
        Act::Say(match &call.operation {
            Some(Operation::TryLease(_)) => {
                let fencing = Some(7);
                reply(call.id, Outcome::TryRelay(TryRelayResponse { fencing }))
            }
            Some(Operation::TryAdd(_)) => {
                let released = true;
                reply(call.id, Outcome::Release(ReleaseResponse { released }))
            }
            _ => reply(call.id, Outcome::Set(SetResponse {})),
        })
    })
    .await;
    let store = server.store().await;
    let (k, token) = (key("k"), LeaseToken::generate());
    let leased = store.try_lease(&k, &token, long_life()).await.unwrap_err();
    assert!(leased.may_have_been_applied(), "{leased}");
    let added = store.try_add(&k, "v".into(), long()).await.unwrap_err();
    assert!(added.may_have_been_applied(), "{added}");
    assert!(is_unavailable(&store.get(&k).await.unwrap_err()));
    store.ping().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_what_cannot_be_read_ends_within_the_time_limit() {
    let scripts: [Script; 7] = [
        // A message of 4 GiB, of which nothing comes.
        |_| Act::Say(vec![0, 0xff, 0xff, 0xff, 0xff]),
        // One of which the first answer has no end.
        |_| Act::Say([&[0, 0xff, 0xff, 0xff, 0xff, 0x0a][..], &[0xff; 64]].concat()),
        |_| Act::Say(vec![1, 0, 0, 0, 1, 0]),
        |_| Act::Say(message(&[0x0a, 0x7f, 0x08])),
        |_| Act::Say(vec![]),
        |call| Act::SayAndClose(number(call.id, 1)[..7].to_vec()),
        |_| Act::SayAndClose(vec![]),
    ];
    for script in scripts {
        let server = Hostile::start(script).await;
        let store = server.store().await;
        for delta in 1..4 {
            let error = count(&store, delta).await.unwrap_err();
            assert!(is_unavailable(&error), "{error}");
            if delta == 1 {
                assert!(error.may_have_been_applied(), "{error}");
            }
        }
    }
}

/// Connections that break young are not opened again as fast as that goes.
#[tokio::test(flavor = "multi_thread")]
async fn s3_a_server_that_always_hangs_up_is_not_called_all_the_time() {
    let server = Hostile::start(|_| Act::SayAndClose(vec![])).await;
    let store = server.store().await;
    let begun = Instant::now();
    while begun.elapsed() < milliseconds(2000) {
        let _ = count(&store, 1).await;
        sleep(milliseconds(1)).await;
    }
    let connections = server.connections.load(Ordering::SeqCst);
    assert!(connections < 40, "{connections} connections in 2 s");
}

/// Nothing of a connection that was given up arrives later, when its way is free again.
#[tokio::test(flavor = "multi_thread")]
async fn s5_what_the_system_still_holds_of_a_given_up_connection_is_thrown_away() {
    const WINDOW: u32 = 64 << 20;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let mut settings = settings(listener.local_addr().unwrap().port());
    settings.remote.operation_timeout = LIMIT;
    let connecting = tokio::spawn(async move { RemoteStore::connect(&settings).await.unwrap() });
    let (stream, _) = listener.accept().await.unwrap();
    drop(listener);
    // It answers the first call, and then takes nothing more from its socket.
    let mut raw = stream.into_std().unwrap();
    let served = TcpStream::from_std(raw.try_clone().unwrap()).unwrap();
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    let mut connection = builder.handshake::<_, Bytes>(served).await.unwrap();
    let (request, mut respond) = connection.accept().await.unwrap().unwrap();
    let head = http::Response::builder().header("content-type", "application/grpc");
    let mut answers = respond
        .send_response(head.body(()).unwrap(), false)
        .unwrap();
    let mut body = request.into_body();
    let first = async {
        let mut come = BytesMut::new();
        loop {
            come.extend_from_slice(&body.data().await.unwrap().unwrap());
            if let Some(message) = next(&mut come) {
                let id = SessionRequest::decode(message).unwrap().calls[0].id;
                let pong = reply(id, Outcome::Ping(PingResponse {}));
                answers.send_data(pong.into(), false).unwrap();
                return;
            }
        }
    };
    tokio::select! {
        () = first => {}
        _ = connection.accept() => unreachable!("there is one session"),
    }
    let store = tokio::select! {
        store = connecting => store.unwrap(),
        _ = connection.accept() => unreachable!("there is one session"),
    };
    let large = Bytes::from(vec![7; 1024 * 1024]);
    let calls = (0..8).map(|n| {
        let (store, large) = (store.clone(), large.clone());
        tokio::spawn(async move { store.set(&key(&format!("k{n}")), large, long()).await })
    });
    for call in calls.collect::<Vec<_>>() {
        let error = call.await.unwrap().unwrap_err();
        assert!(is_unavailable(&error), "{error}");
    }
    while store.ping().await.unwrap_err().may_have_been_applied() {}
    drop(store);
    // The way is free again.
    raw.set_nonblocking(false).unwrap();
    let ended = tokio::task::spawn_blocking(move || raw.read_to_end(&mut Vec::new()));
    let error = ended.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}
