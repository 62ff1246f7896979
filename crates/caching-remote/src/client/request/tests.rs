use caching_abstractions::seconds;
use prost::Message;
use proto::call::Operation;

use super::*;

fn call_of(request: &Request<'_>) -> proto::Call {
    let mut frame = BytesMut::new();
    let measured = request.measure(70_000, 1999);
    request.encode_call(70_000, 1999, measured, &mut frame);
    assert_eq!(frame.len(), measured.whole);
    let mut alone = BytesMut::new();
    request.encode(&mut alone);
    assert_eq!(alone.len(), request.len());
    let mut decoded = proto::SessionRequest::decode(frame.freeze()).unwrap();
    let call = decoded.calls.remove(0);
    assert!(decoded.calls.is_empty());
    assert_eq!((call.id, call.timeout_milliseconds), (70_000, 1999));
    call
}

fn operation(request: &Request<'_>) -> Operation {
    call_of(request).operation.unwrap()
}

fn options() -> [CacheEntryOptions; 4] {
    let fixed = CacheEntryOptions::time_to_live(seconds(5)).unwrap();
    let sliding = CacheEntryOptions::sliding_expiration(seconds(7)).unwrap();
    let default = CacheEntryOptions::default();
    [default, default.essential(), fixed, sliding.essential()]
}

/// Every request reads back as the generated code would have written it.
#[test]
fn what_writes_a_value_is_read_as_it_was_meant() {
    let key = CacheKey::new("k:é").unwrap();
    for options in options() {
        for value in [&b""[..], b"v", &[7; 300]] {
            let expiration = wire::expiration(options);
            let bytes = bytes::Bytes::copy_from_slice(value);
            let set = proto::SetRequest {
                key: "k:é".into(),
                value: bytes.clone(),
                expiration,
            };
            let write = |kind| operation(&Request::write(kind, &key, value, options));
            assert_eq!(write(Kind::Set), Operation::Set(set.clone()));
            let expected = Operation::TryAdd(proto::TryAddRequest {
                key: set.key.clone(),
                value: bytes.clone(),
                expiration,
            });
            assert_eq!(write(Kind::TryAdd), expected);
            let expected = Operation::GetOrAdd(proto::GetOrAddRequest {
                key: set.key.clone(),
                value: bytes.clone(),
                expiration,
            });
            assert_eq!(write(Kind::GetOrAdd), expected);
            let replace = Request::try_replace(&key, b"old", value, options);
            let expected = Operation::TryReplace(proto::TryReplaceRequest {
                key: set.key.clone(),
                expected: b"old"[..].into(),
                value: bytes.clone(),
                expiration,
            });
            assert_eq!(operation(&replace), expected);
            let item = CacheItem::new(key.clone(), bytes.clone(), options);
            let items = [item.clone(), item];
            let many = operation(&Request::set_many(&items));
            let items = vec![set.clone(), set];
            assert_eq!(many, Operation::SetMany(proto::SetManyRequest { items }));
        }
    }
}

#[test]
fn what_asks_for_a_key_is_read_as_it_was_meant() {
    let key = CacheKey::new("k").unwrap();
    let text = || "k".to_owned();
    let on = |kind| operation(&Request::on(kind, &key));
    let get = proto::GetRequest { key: text() };
    assert_eq!(on(Kind::Get), Operation::Get(get));
    let remove = proto::RemoveRequest { key: text() };
    assert_eq!(on(Kind::Remove), Operation::Remove(remove));
    let left = proto::TimeToLiveRequest { key: text() };
    assert_eq!(on(Kind::TimeToLive), Operation::TimeToLive(left));
    assert_eq!(
        operation(&Request::ping()),
        Operation::Ping(proto::PingRequest {})
    );
    let keys = [key.clone(), key];
    let texts = || vec![text(), text()];
    let many = |kind| operation(&Request::on_many(kind, &keys));
    let get = proto::GetManyRequest { keys: texts() };
    assert_eq!(many(Kind::GetMany), Operation::GetMany(get));
    let remove = proto::RemoveManyRequest { keys: texts() };
    assert_eq!(many(Kind::RemoveMany), Operation::RemoveMany(remove));
}

#[test]
fn what_is_about_a_lease_is_read_as_it_was_meant() {
    let key = CacheKey::new("k").unwrap();
    let (one, other) = (
        LeaseToken::new("one").unwrap(),
        LeaseToken::new("other").unwrap(),
    );
    let life = TimeToLive::MAX;
    let time_to_live_milliseconds = life.as_millis();
    let lease = proto::TryLeaseRequest {
        key: "k".into(),
        token: "one".into(),
        time_to_live_milliseconds,
    };
    let request = Request::try_lease(&key, &one, life);
    assert_eq!(operation(&request), Operation::TryLease(lease));
    let relay = proto::TryRelayRequest {
        key: "k".into(),
        token: "one".into(),
        new_token: "other".into(),
        time_to_live_milliseconds,
    };
    let request = Request::try_relay(&key, &one, &other, life);
    assert_eq!(operation(&request), Operation::TryRelay(relay));
    let release = proto::ReleaseRequest {
        key: "k".into(),
        token: "one".into(),
    };
    let request = Request::release(&key, &one);
    assert_eq!(operation(&request), Operation::Release(release));
    let extend = proto::TryExtendRequest {
        key: "k".into(),
        expected: b"one"[..].into(),
        time_to_live_milliseconds,
    };
    let request = Request::try_extend(&key, b"one", life);
    assert_eq!(operation(&request), Operation::TryExtend(extend));
    let remove = proto::TryRemoveRequest {
        key: "k".into(),
        expected: b"one"[..].into(),
    };
    let request = Request::try_remove(&key, b"one");
    assert_eq!(operation(&request), Operation::TryRemove(remove));
}

#[test]
fn every_number_is_read_as_it_was_meant() {
    let key = CacheKey::new("k").unwrap();
    for delta in [0, 1, -1, 300, i64::MIN, i64::MAX] {
        let request = Request::increment(&key, delta, CacheEntryOptions::default());
        let expected = proto::IncrementRequest {
            key: "k".into(),
            delta,
            expiration: None,
        };
        assert_eq!(operation(&request), Operation::Increment(expected));
    }
}
