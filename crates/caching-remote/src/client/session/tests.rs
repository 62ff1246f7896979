use std::sync::Arc;
use std::task::Wake;

use caching_abstractions::CacheKey;
use futures_util::FutureExt;
use prost::Message;

use super::*;
use crate::client::queue::HEAD;
use crate::client::request::Kind;
use crate::proto;

const LIMIT: Duration = Duration::from_secs(2);

fn key(text: &str) -> CacheKey {
    CacheKey::new(text).unwrap()
}

fn call<'a>(session: &'a Session, text: &str, limit: Duration) -> Waiting<'a> {
    let now = Instant::now();
    let key = key(text);
    let called = session.call(&Request::on(Kind::Get, &key), now, now + limit);
    called.unwrap()
}

/// The numbers and keys of the next message.
fn sent(session: &Session) -> Vec<(u64, String)> {
    let Some(message) = session.next_message() else {
        return Vec::new();
    };
    let request = proto::SessionRequest::decode(message.slice(HEAD..)).unwrap();
    let key = |call: proto::Call| match call.operation {
        Some(proto::call::Operation::Get(get)) => (call.id, get.key),
        other => panic!("{other:?}"),
    };
    request.calls.into_iter().map(key).collect()
}

fn keys(session: &Session) -> Vec<String> {
    sent(session).into_iter().map(|(_, key)| key).collect()
}

fn deliver(session: &Session, id: u64) {
    let answer = Answer::Get(proto::GetResponse { value: None });
    session.deliver([(id, answer)].into_iter(), &mut Vec::new());
}

fn is_not_sent(waiting: Waiting<'_>) -> bool {
    matches!(waiting.now_or_never(), Some(Err(Fault::NotSent(_))))
}

fn is_unknown(waiting: Waiting<'_>) -> bool {
    matches!(waiting.now_or_never(), Some(Err(Fault::Unknown(_))))
}

#[tokio::test]
async fn answers_find_their_calls_in_any_order() {
    let session = Session::new(LIMIT, 1 << 20);
    let (mut a, mut b) = (call(&session, "a", LIMIT), call(&session, "b", LIMIT));
    let calls = sent(&session);
    assert_eq!(
        calls.iter().map(|(_, key)| key).collect::<Vec<_>>(),
        ["a", "b"]
    );
    deliver(&session, calls[1].0);
    assert!((&mut a).now_or_never().is_none());
    assert!(matches!((&mut b).now_or_never(), Some(Ok(Answer::Get(_)))));
    deliver(&session, calls[0].0);
    assert!(matches!(a.now_or_never(), Some(Ok(Answer::Get(_)))));
}

#[tokio::test]
async fn s5_a_call_that_is_dropped_before_its_message_is_not_in_it() {
    let session = Session::new(LIMIT, 1 << 20);
    let dropped = call(&session, "dropped", LIMIT);
    let _kept = call(&session, "kept", LIMIT);
    drop(dropped);
    // Its place is taken by somebody else, who must not be mistaken for it.
    let _next = call(&session, "next", LIMIT);
    assert_eq!(keys(&session), ["kept", "next"]);
    assert!(keys(&session).is_empty());
}

#[tokio::test]
async fn the_late_answer_to_a_call_that_was_given_up_goes_to_nobody() {
    let session = Session::new(LIMIT, 1 << 20);
    let given_up = call(&session, "given-up", LIMIT);
    let first = sent(&session);
    drop(given_up);
    let mut next = call(&session, "next", LIMIT);
    let second = sent(&session);
    assert_ne!(first[0].0, second[0].0, "no number is used twice");
    deliver(&session, first[0].0);
    assert!((&mut next).now_or_never().is_none());
    deliver(&session, second[0].0);
    assert!(next.now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn s3_each_call_ends_at_its_own_time_and_says_whether_it_was_sent() {
    let session = Session::new(LIMIT, 1 << 20);
    let on_its_way = call(&session, "sent", LIMIT);
    assert_eq!(keys(&session), ["sent"]);
    let queued = call(&session, "queued", LIMIT);
    let mut later = call(&session, "later", 2 * LIMIT);
    let now = Instant::now();
    assert_eq!(session.expire(now, &mut Vec::new()), Some(now + LIMIT));
    let next = session.expire(now + LIMIT, &mut Vec::new());
    assert_eq!(next, Some(now + 2 * LIMIT));
    assert!(is_unknown(on_its_way) && is_not_sent(queued));
    assert!((&mut later).now_or_never().is_none());
    assert_eq!(keys(&session), ["later"], "what ran out is not sent");
}

#[tokio::test]
async fn s4_the_end_tells_what_was_sent_from_what_was_not() {
    for has_begun in [true, false] {
        let session = Session::new(LIMIT, 1 << 20);
        let on_its_way = call(&session, "sent", LIMIT);
        assert_eq!(keys(&session), ["sent"]);
        let queued = call(&session, "queued", LIMIT);
        session.end(&Cause::new("it broke"), has_begun);
        assert!(is_not_sent(queued));
        if has_begun {
            assert!(is_unknown(on_its_way));
        } else {
            assert!(is_not_sent(on_its_way));
        }
        assert!(keys(&session).is_empty());
        let now = Instant::now();
        let late = session.call(&Request::ping(), now, now + LIMIT);
        assert!(matches!(late, Err(Fault::NotSent(_))));
    }
}

#[tokio::test]
async fn a_server_that_goes_away_answers_what_it_has_and_gets_nothing_new() {
    let session = Session::new(LIMIT, 1 << 20);
    let on_its_way = call(&session, "sent", LIMIT);
    let id = sent(&session)[0].0;
    let queued = call(&session, "queued", LIMIT);
    session.retire(&Cause::new("it goes away"));
    assert!(is_not_sent(queued));
    assert!(keys(&session).is_empty());
    deliver(&session, id);
    assert!(matches!(on_its_way.now_or_never(), Some(Ok(_))));
}

#[tokio::test]
async fn s3_too_many_calls_at_once_are_refused_and_not_sent() {
    let session = Session::new(LIMIT, 1 << 20);
    let calls: Vec<_> = (0..PLACES).map(|_| call(&session, "k", LIMIT)).collect();
    let now = Instant::now();
    let refused = session.call(&Request::ping(), now, now + LIMIT);
    assert!(matches!(refused, Err(Fault::NotSent(_))));
    drop(calls);
    assert!(session.call(&Request::ping(), now, now + LIMIT).is_ok());
}

#[derive(Default)]
struct Count(std::sync::atomic::AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[tokio::test]
async fn the_task_is_woken_once_for_many_calls_and_when_one_ends_early() {
    let session = Session::new(LIMIT, 1 << 20);
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let wakes = || count.0.load(std::sync::atomic::Ordering::SeqCst);
    let alarm = Instant::now() + LIMIT / 2;
    let parked = session.park(&waker, true, alarm);
    assert!(!parked.has_calls && parked.alarm == alarm);
    let _calls: Vec<_> = (0..10).map(|_| call(&session, "k", LIMIT)).collect();
    assert_eq!(wakes(), 1);
    assert!(session.park(&waker, true, alarm).has_calls);
    // While nothing can be sent, only the clock matters.
    assert!(!session.park(&waker, false, alarm).has_calls);
    let _late = call(&session, "k", LIMIT);
    assert_eq!(wakes(), 1);
    let _early = call(&session, "k", LIMIT / 4);
    assert_eq!(wakes(), 2);
    assert!(session.park(&waker, false, alarm).alarm < alarm);
}
