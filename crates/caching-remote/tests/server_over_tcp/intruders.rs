//! Who connects and is no client.

use std::time::Duration;

use caching_remote::server::{Limits, TlsSettings};
use redis_support::Certificates;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::support::{Running, get, reference, resident_bytes};

const GARBAGE: [&[u8]; 5] = [
    b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03 a hello of TLS on a plain port",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r! almost",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff and then no frame",
    b"AUTH secret\r\nPING\r\n",
];

/// What comes back, until the server closes.
async fn say(server: &Running, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let closed = timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    // Whether it closes or resets is all the same.
    let _ = closed.unwrap();
    answer
}

async fn impatient(tls: Option<TlsSettings>, connections: usize) -> Running {
    let mut limits = Limits::default();
    limits.handshake_timeout = Duration::from_millis(300);
    limits.max_connections = connections;
    Running::of(reference(), |settings| {
        let settings = settings.limits(limits);
        match tls {
            Some(tls) => settings.tls(tls),
            None => settings,
        }
    })
    .await
}

fn tls() -> TlsSettings {
    let made = Certificates::make();
    TlsSettings::from_files(made.certificate(), made.key()).unwrap()
}

#[tokio::test]
async fn garbage_on_a_plain_port_is_refused_at_once_and_memory_stays_flat() {
    let server = Running::new().await;
    let before = resident_bytes();
    for _ in 0..50 {
        for garbage in GARBAGE {
            say(&server, garbage).await;
        }
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 16 * 1024 * 1024, "{grown} bytes more");
    server.client().await.get(get("a")).await.unwrap();
}

#[tokio::test]
async fn garbage_on_a_tls_port_is_refused_at_once() {
    // Patience of seconds would make this test take minutes.
    let server = Running::of(reference(), |settings| settings.tls(tls())).await;
    for garbage in [GARBAGE[0], GARBAGE[2], GARBAGE[4]] {
        say(&server, garbage).await;
    }
}

#[tokio::test]
async fn a_browser_is_told_what_the_port_speaks() {
    let server = Running::new().await;
    let answer = say(&server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 505 "), "{answer}");
    assert!(answer.contains("gRPC"), "{answer}");
}

#[tokio::test]
async fn who_says_nothing_loses_the_place_and_who_is_one_too_many_is_refused_at_once() {
    for tls in [None, Some(tls())] {
        let server = impatient(tls, 2).await;
        let first = TcpStream::connect(server.address).await.unwrap();
        let second = TcpStream::connect(server.address).await.unwrap();
        let refused = say(&server, b"");
        let refused = timeout(Duration::from_millis(250), refused).await;
        assert!(refused.is_ok(), "the third one is kept waiting");
        for mut silent in [first, second] {
            let mut nothing = Vec::new();
            let closed = timeout(Duration::from_secs(20), silent.read_to_end(&mut nothing)).await;
            let _ = closed.unwrap();
        }
    }
}

#[tokio::test]
async fn places_are_free_again_when_their_connections_are_gone() {
    let server = impatient(None, 1).await;
    for _ in 0..20 {
        let found_place = async {
            while server.endpoint().connect().await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(20), found_place).await.unwrap();
    }
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_OF_HEADERS: u8 = 4;

/// The head of a call that waits for its message, as HPACK without any compression.
fn head() -> Vec<u8> {
    let path = b"/xihan.caching.v1.Store/Get";
    let length = u8::try_from(path.len()).unwrap();
    // POST, http, and a path by the static table's names.
    [&[0x83, 0x86, 0x04, length], &path[..]].concat()
}

/// Sends what `next` gives, unless the server closes before. The task ends when it has closed.
async fn flood(server: &Running, mut next: impl FnMut(u32) -> Vec<u8>) -> JoinHandle<()> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let begin = [GREETING, &frame(SETTINGS, 0, 0, &[])].concat();
    writing.write_all(&begin).await.unwrap();
    let closed = tokio::spawn(async move {
        let _ = reading.read_to_end(&mut Vec::new()).await;
    });
    for piece in 0..PIECES {
        let sent = timeout(Duration::from_secs(20), writing.write_all(&next(piece))).await;
        if sent.unwrap().is_err() {
            break;
        }
    }
    // Whether it closes is up to the server.
    writing.forget();
    closed
}

const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const PIECES: u32 = 2000;

#[tokio::test(flavor = "multi_thread")]
async fn floods_end_their_own_connection_and_nothing_else() {
    let server = Running::new().await;
    let mut client = server.client().await;
    let before = resident_bytes();
    // A server that is quick enough may bear all of them.
    flood(&server, |piece| {
        let calls = (0..100).map(|call| {
            let stream = 200 * piece + 2 * call + 1;
            let opened = frame(HEADERS, END_OF_HEADERS, stream, &head());
            [opened, frame(RESET, 0, stream, &[0, 0, 0, 8])].concat()
        });
        calls.collect::<Vec<_>>().concat()
    })
    .await;
    let headers = flood(&server, |piece| match piece {
        0 => frame(HEADERS, 0, 1, &head()),
        _ => frame(CONTINUATION, 0, 1, &[]).repeat(100),
    });
    let closed = timeout(Duration::from_secs(20), headers.await).await;
    assert!(closed.is_ok(), "headers without an end are read for ever");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "{grown} bytes more");
    client.get(get("a")).await.unwrap();
}
