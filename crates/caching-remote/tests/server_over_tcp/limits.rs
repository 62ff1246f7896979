//! Messages, metadata and calls beyond the limits.

use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::ErrorCode;
use caching_remote::proto::call::Operation;
use caching_remote::proto::reply::Result as Outcome;
use caching_remote::proto::*;
use caching_remote::server::{Limits, ServerError, StoreServer};
use tokio::net::TcpStream;
use tokio_stream::StreamExt;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

use crate::gated::Gated;
use crate::support::{Running, get, reference, resident_bytes, set};

const MIB: usize = 1024 * 1024;

async fn with_limits(change: impl FnOnce(&mut Limits)) -> Running {
    let mut limits = Limits::default();
    change(&mut limits);
    Running::of(reference(), |settings| settings.limits(limits)).await
}

fn large(key: &str, bytes: usize) -> SetRequest {
    SetRequest {
        key: key.to_owned(),
        value: vec![7; bytes].into(),
        expiration: None,
    }
}

#[track_caller]
fn too_large(status: &Status) {
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains("`max_message_bytes`"), "{status}");
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.reason, ErrorCode::StoreFull.as_str());
}

#[tokio::test]
async fn a_message_beyond_the_limit_is_refused_and_the_connection_goes_on() {
    let server = with_limits(|limits| limits.max_message_bytes = 1000).await;
    let mut client = server.client().await;
    client.set(large("a", 900)).await.unwrap();
    too_large(&client.set(large("a", 1001)).await.unwrap_err());
    too_large(&client.set(large("a", MIB)).await.unwrap_err());
    let got = client.get(get("a")).await.unwrap().into_inner();
    assert_eq!(got.value.unwrap().len(), 900);
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_an_error_that_says_so() {
    let server = with_limits(|limits| limits.max_message_bytes = 1000).await;
    let mut client = server.client().await;
    client.set(large("a", 600)).await.unwrap();
    let keys = || vec!["a".to_owned(), "a".to_owned()];
    too_large(
        &client
            .get_many(GetManyRequest { keys: keys() })
            .await
            .unwrap_err(),
    );
    client.get(get("a")).await.unwrap();

    // In a session it is the one operation that fails, and the others take several messages.
    let call = |id, operation| Call {
        id,
        timeout_milliseconds: 0,
        operation: Some(operation),
    };
    let calls = vec![
        call(1, Operation::Get(get("a"))),
        call(2, Operation::GetMany(GetManyRequest { keys: keys() })),
        call(3, Operation::Get(get("a"))),
    ];
    let request = tokio_stream::once(SessionRequest { calls });
    let answers = client.session(request).await.unwrap().into_inner();
    let replies: Vec<Reply> = answers
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .flat_map(|message| message.unwrap().replies)
        .collect();
    assert_eq!(replies.len(), 3);
    for reply in replies {
        match (reply.id, reply.result.unwrap()) {
            (2, Outcome::Failure(failure)) => {
                assert_eq!(failure.status, i32::from(Code::ResourceExhausted));
            }
            (1 | 3, Outcome::Get(got)) => assert_eq!(got.value.unwrap().len(), 600),
            (id, other) => unreachable!("{id}: {other:?}"),
        }
    }
}

/// Sends a message of 100 MiB for as long as the server takes any of it.
async fn send_100_mib(server: &Running, path: &str) -> (Code, usize) {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::post(format!("http://{}{path}", server.address))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let mut client = client.ready().await.unwrap();
    let (answer, mut body) = client.send_request(request, false).unwrap();
    let length = u32::try_from(100 * MIB).unwrap().to_be_bytes();
    body.send_data([&[0], &length[..]].concat().into(), false)
        .unwrap();
    let chunk = Bytes::from(vec![7; MIB]);
    let mut taken = 0;
    let sending = async {
        for _ in 0..100 {
            body.reserve_capacity(chunk.len());
            let Some(Ok(room)) = std::future::poll_fn(|context| body.poll_capacity(context)).await
            else {
                break;
            };
            if body.send_data(chunk.slice(..room), false).is_err() {
                break;
            }
            taken += room;
        }
        std::future::pending::<()>().await;
    };
    let answer = tokio::select! {
        answer = answer => answer.unwrap(),
        () = sending => unreachable!(),
    };
    let status = Status::from_header_map(answer.headers()).unwrap();
    (status.code(), taken)
}

#[tokio::test]
async fn a_message_of_100_mib_is_refused_unread() {
    let server = Running::new().await;
    let before = resident_bytes();
    for path in [
        "/xihan.caching.v1.Store/Set",
        "/grpc.health.v1.Health/Check",
    ] {
        for _ in 0..10 {
            let (code, taken) = send_100_mib(&server, path).await;
            assert_eq!(code, Code::ResourceExhausted);
            // The window of one call, and nothing beyond it.
            assert!(taken <= 3 * MIB, "{taken}");
        }
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 * MIB, "{grown} bytes more");
    server.client().await.set(set("a", "1")).await.unwrap();
}

#[tokio::test]
async fn metadata_beyond_the_limit_is_refused() {
    let server = Running::new().await;
    let mut client = server.client().await;
    let mut request = Request::new(get("a"));
    let value = "x".repeat(17 * 1024).parse().unwrap();
    request.metadata_mut().insert("too-long", value);
    client.get(request).await.unwrap_err();
    client.get(get("a")).await.unwrap();
}

#[tokio::test]
async fn a_connection_has_no_more_calls_at_a_time_than_it_may() {
    let (store, gate) = Gated::new(reference());
    let mut limits = Limits::default();
    limits.max_concurrent_streams = 4;
    let server = Running::of(store, |settings| settings.limits(limits)).await;
    let client = server.client().await;
    // The client learns of the limit with the first answer.
    client.clone().ping(PingRequest {}).await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..20 {
        let mut client = client.clone();
        calls.spawn(async move {
            client
                .set(set(&format!("key:{number}"), "1"))
                .await
                .unwrap();
        });
    }
    gate.reaches(4, 0).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(gate.counts(), (4, 0));
    gate.open(20);
    calls.join_all().await;
}

#[tokio::test]
async fn a_limit_of_zero_is_refused_by_name() {
    let mut limits = Limits::default();
    limits.max_connections = 0;
    let built = StoreServer::builder(reference()).limits(limits).build();
    let error = built.unwrap_err();
    assert!(matches!(error, ServerError::Limit { .. }));
    assert!(error.to_string().contains("`max_connections`"), "{error}");
}
