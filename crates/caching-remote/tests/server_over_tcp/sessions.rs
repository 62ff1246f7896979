//! Many operations over one stream.

use std::collections::HashMap;

use caching_remote::proto::call::Operation;
use caching_remote::proto::reply::Result as Outcome;
use caching_remote::proto::*;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming};

use crate::gated::Gated;
use crate::support::{Running, get, lease, reference, set};

/// The client's side of a session.
struct Session {
    requests: mpsc::Sender<SessionRequest>,
    replies: Streaming<SessionResponse>,
}

impl Session {
    async fn open(server: &Running) -> Self {
        let (requests, receiver) = mpsc::channel(64);
        let mut client = server.client().await;
        let replies = client.session(ReceiverStream::new(receiver)).await.unwrap();
        Self {
            requests,
            replies: replies.into_inner(),
        }
    }

    async fn send(&self, operations: impl IntoIterator<Item = (u64, Operation)>) {
        let call = |(id, operation)| Call {
            id,
            timeout_milliseconds: 0,
            operation: Some(operation),
        };
        let calls = operations.into_iter().map(call).collect();
        self.requests.send(SessionRequest { calls }).await.unwrap();
    }

    /// The next `count` replies, by id, and how many messages they came in.
    async fn replies(&mut self, count: usize) -> (HashMap<u64, Outcome>, usize) {
        let (mut replies, mut messages) = (HashMap::new(), 0);
        while replies.len() < count {
            let message = self.replies.next().await.unwrap().unwrap();
            messages += 1;
            for reply in message.replies {
                let second = replies.insert(reply.id, reply.result.unwrap());
                assert!(second.is_none(), "{} is answered twice", reply.id);
            }
        }
        (replies, messages)
    }
}

fn add(key: &str) -> Operation {
    Operation::TryAdd(TryAddRequest {
        key: key.to_owned(),
        value: "1".into(),
        expiration: None,
    })
}

fn count(key: &str) -> Operation {
    Operation::Increment(IncrementRequest {
        key: key.to_owned(),
        delta: 1,
        expiration: None,
    })
}

#[track_caller]
fn failure(outcome: &Outcome) -> (Code, &str) {
    let Outcome::Failure(failure) = outcome else {
        unreachable!("{outcome:?} is no failure");
    };
    (Code::from_i32(failure.status), &failure.message)
}

#[tokio::test]
async fn a_session_answers_every_kind_of_operation() {
    let server = Running::new().await;
    let mut session = Session::open(&server).await;
    let key = || "a".to_owned();
    let keys = || vec!["a".to_owned(), "b".to_owned()];
    let operations = [
        Operation::Set(set("a", "1")),
        Operation::Get(get("a")),
        Operation::SetMany(SetManyRequest {
            items: vec![set("b", "2")],
        }),
        Operation::GetMany(GetManyRequest { keys: keys() }),
        add("a"),
        Operation::GetOrAdd(GetOrAddRequest {
            key: key(),
            value: "9".into(),
            expiration: None,
        }),
        Operation::TryReplace(TryReplaceRequest {
            key: key(),
            expected: "1".into(),
            value: "3".into(),
            expiration: None,
        }),
        Operation::TryExtend(TryExtendRequest {
            key: key(),
            expected: "3".into(),
            time_to_live_milliseconds: 60_000,
        }),
        Operation::TimeToLive(TimeToLiveRequest { key: key() }),
        count("a"),
        Operation::TryRemove(TryRemoveRequest {
            key: key(),
            expected: "4".into(),
        }),
        Operation::TryLease(lease("lock:a", "one")),
        Operation::TryRelay(TryRelayRequest {
            key: "lock:a".to_owned(),
            token: "one".to_owned(),
            new_token: "two".to_owned(),
            time_to_live_milliseconds: 60_000,
        }),
        Operation::Release(ReleaseRequest {
            key: "lock:a".to_owned(),
            token: "two".to_owned(),
        }),
        Operation::Remove(RemoveRequest {
            key: "b".to_owned(),
        }),
        Operation::RemoveMany(RemoveManyRequest { keys: keys() }),
        Operation::Ping(PingRequest {}),
    ];
    // One at a time: operations of one message may be answered in any order.
    let mut outcomes = Vec::new();
    for (id, operation) in (1..).zip(operations) {
        session.send([(id, operation)]).await;
        let (mut replies, _) = session.replies(1).await;
        outcomes.push(replies.remove(&id).unwrap());
    }
    let value = |text: &'static str| GetResponse {
        value: Some(text.into()),
    };
    assert!(matches!(outcomes[0], Outcome::Set(_)));
    assert_eq!(outcomes[1], Outcome::Get(value("1")));
    assert!(matches!(outcomes[2], Outcome::SetMany(_)));
    let entries = vec![value("1"), value("2")];
    assert_eq!(outcomes[3], Outcome::GetMany(GetManyResponse { entries }));
    assert_eq!(
        outcomes[4],
        Outcome::TryAdd(TryAddResponse { added: false })
    );
    let stands = GetOrAddResponse {
        value: Some("1".into()),
    };
    assert_eq!(outcomes[5], Outcome::GetOrAdd(stands));
    assert_eq!(
        outcomes[6],
        Outcome::TryReplace(TryReplaceResponse { replaced: true })
    );
    assert_eq!(
        outcomes[7],
        Outcome::TryExtend(TryExtendResponse { extended: true })
    );
    assert!(
        matches!(outcomes[8], Outcome::TimeToLive(TimeToLiveResponse { remaining_microseconds: Some(left) }) if left > 0)
    );
    assert_eq!(
        outcomes[9],
        Outcome::Increment(IncrementResponse { number: 4 })
    );
    assert_eq!(
        outcomes[10],
        Outcome::TryRemove(TryRemoveResponse { removed: true })
    );
    assert!(matches!(
        outcomes[11],
        Outcome::TryLease(TryLeaseResponse { fencing: Some(_) })
    ));
    assert!(matches!(
        outcomes[12],
        Outcome::TryRelay(TryRelayResponse { fencing: Some(_) })
    ));
    assert_eq!(
        outcomes[13],
        Outcome::Release(ReleaseResponse { released: true })
    );
    assert_eq!(
        outcomes[14],
        Outcome::Remove(RemoveResponse { removed: true })
    );
    let removed = vec![false, false];
    assert_eq!(
        outcomes[15],
        Outcome::RemoveMany(RemoveManyResponse { removed })
    );
    assert!(matches!(outcomes[16], Outcome::Ping(_)));
}

#[tokio::test]
async fn a_session_puts_what_is_ready_into_few_messages() {
    let server = Running::new().await;
    let mut session = Session::open(&server).await;
    session.send((0..2000).map(|id| (id, count("a")))).await;
    let (replies, messages) = session.replies(2000).await;
    assert!(messages <= 4, "{messages}");
    let mut numbers: Vec<i64> = replies
        .into_values()
        .map(|outcome| match outcome {
            Outcome::Increment(answer) => answer.number,
            other => unreachable!("{other:?}"),
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=2000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_session_says_what_failed_and_goes_on() {
    let (store, gate) = Gated::new(reference());
    gate.open(10);
    let server = Running::of(store, |settings| settings).await;
    let mut session = Session::open(&server).await;
    let empty = Call {
        id: 7,
        timeout_milliseconds: 0,
        operation: None,
    };
    session
        .requests
        .send(SessionRequest { calls: vec![empty] })
        .await
        .unwrap();
    session
        .send([
            (1, Operation::Get(get("two words"))),
            (2, Operation::Get(get("panic"))),
        ])
        .await;
    session
        .send([(3, Operation::Set(set("panic", "SECRET"))), (4, add("a"))])
        .await;
    let (replies, _) = session.replies(5).await;
    assert_eq!(failure(&replies[&1]).0, Code::InvalidArgument);
    assert_eq!(failure(&replies[&2]).0, Code::Internal);
    assert_eq!(failure(&replies[&3]).0, Code::Internal);
    assert_eq!(failure(&replies[&7]).0, Code::Internal);
    assert_eq!(replies[&4], Outcome::TryAdd(TryAddResponse { added: true }));
}

#[tokio::test]
async fn s5_what_a_session_has_begun_ends_when_its_client_leaves() {
    let (store, gate) = Gated::new(reference());
    let server = Running::of(store, |settings| settings).await;
    let session = Session::open(&server).await;
    session
        .send((0..50).map(|id| (id, add(&format!("key:{id}")))))
        .await;
    gate.reaches(50, 0).await;
    drop(session);
    gate.open(50);
    gate.reaches(50, 50).await;
    let keys = (0..50).map(|id| format!("key:{id}")).collect();
    gate.open(1);
    let got = server
        .client()
        .await
        .get_many(GetManyRequest { keys })
        .await
        .unwrap();
    assert!(
        got.into_inner()
            .entries
            .iter()
            .all(|entry| entry.value.is_some())
    );
}

#[tokio::test]
async fn a_session_runs_no_more_at_a_time_than_it_may() {
    let (store, gate) = Gated::new(reference());
    let server = Running::of(store, |settings| {
        let mut limits = caching_remote::server::Limits::default();
        limits.max_session_operations = 8;
        settings.limits(limits)
    })
    .await;
    let mut session = Session::open(&server).await;
    session.send((0..100).map(|id| (id, count("a")))).await;
    gate.reaches(8, 0).await;
    gate.open(1);
    gate.reaches(9, 1).await;
    gate.open(99);
    let (replies, _) = session.replies(100).await;
    assert_eq!(replies.len(), 100);
}

#[tokio::test]
async fn an_operation_whose_time_is_over_is_not_begun() {
    let (store, gate) = Gated::new(reference());
    let server = Running::of(store, |settings| {
        let mut limits = caching_remote::server::Limits::default();
        limits.max_session_operations = 1;
        settings.limits(limits)
    })
    .await;
    let mut session = Session::open(&server).await;
    let call = |id, timeout_milliseconds| Call {
        id,
        timeout_milliseconds,
        operation: Some(count("a")),
    };
    let calls = vec![call(1, 0), call(2, 20), call(3, 60_000)];
    session
        .requests
        .send(SessionRequest { calls })
        .await
        .unwrap();
    gate.reaches(1, 0).await;
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    gate.open(10);
    let (replies, _) = session.replies(3).await;
    let (code, message) = failure(&replies[&2]);
    assert_eq!(code, Code::DeadlineExceeded);
    assert!(message.contains("before the operation began"), "{message}");
    let number = |number| Outcome::Increment(IncrementResponse { number });
    assert_eq!((&replies[&1], &replies[&3]), (&number(1), &number(2)));
}

#[tokio::test]
async fn a_session_ends_when_its_client_has_no_more_to_ask() {
    let (store, gate) = Gated::new(reference());
    let server = Running::of(store, |settings| settings).await;
    let mut session = Session::open(&server).await;
    session.send([(1, count("a"))]).await;
    let Session { requests, .. } = &mut session;
    *requests = mpsc::channel(1).0;
    gate.reaches(1, 0).await;
    gate.open(1);
    let (replies, _) = session.replies(1).await;
    assert_eq!(replies.len(), 1);
    assert!(session.replies.next().await.is_none());
}

#[tokio::test]
async fn a_shutdown_answers_what_has_begun_and_nothing_else() {
    let (store, gate) = Gated::new(reference());
    let mut server = Running::of(store, |settings| settings).await;
    let mut session = Session::open(&server).await;
    session.send([(1, count("a"))]).await;
    gate.reaches(1, 0).await;
    server.begin_shutdown();
    gate.open(10);
    let (replies, _) = session.replies(1).await;
    assert!(matches!(replies[&1], Outcome::Increment(_)));
    let status = session.replies.next().await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(
        status.message().contains("open another session"),
        "{status}"
    );
    drop(session);
    server.ended().await;
    assert_eq!(gate.counts(), (1, 1));
}
