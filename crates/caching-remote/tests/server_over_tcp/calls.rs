//! Every call of the contract, over TCP, as a client of any language sees it.

use std::time::Duration;

use caching_remote::proto::expiration::Kind;
use caching_remote::proto::*;
use tokio_stream::StreamExt;
use tonic::Code;

use crate::support::{Running, get, lease, set};

fn fixed(milliseconds: u64) -> Option<Expiration> {
    Some(Expiration {
        essential: false,
        kind: Some(Kind::TimeToLiveMilliseconds(milliseconds)),
    })
}

#[tokio::test]
async fn part3_values_are_written_read_compared_and_removed() {
    let server = Running::new().await;
    let mut client = server.client().await;
    let key = || "greeting".to_owned();
    let value = |text: &'static str| Some(text.into());

    assert_eq!(
        client
            .get(get("greeting"))
            .await
            .unwrap()
            .into_inner()
            .value,
        None
    );
    client.set(set("greeting", "hello")).await.unwrap();
    let got = client.get(get("greeting")).await.unwrap().into_inner();
    assert_eq!(got.value, value("hello"));

    let add = TryAddRequest {
        key: key(),
        value: "again".into(),
        expiration: None,
    };
    assert!(!client.try_add(add).await.unwrap().into_inner().added);
    let get_or_add = GetOrAddRequest {
        key: key(),
        value: "again".into(),
        expiration: None,
    };
    let stands = client.get_or_add(get_or_add).await.unwrap().into_inner();
    assert_eq!(stands.value, value("hello"));

    let replace = |expected: &'static str| TryReplaceRequest {
        key: key(),
        expected: expected.into(),
        value: "bye".into(),
        expiration: fixed(60_000),
    };
    assert!(
        !client
            .try_replace(replace("else"))
            .await
            .unwrap()
            .into_inner()
            .replaced
    );
    assert!(
        client
            .try_replace(replace("hello"))
            .await
            .unwrap()
            .into_inner()
            .replaced
    );

    let extend = TryExtendRequest {
        key: key(),
        expected: "bye".into(),
        time_to_live_milliseconds: 120_000,
    };
    assert!(
        client
            .try_extend(extend)
            .await
            .unwrap()
            .into_inner()
            .extended
    );
    let left = client
        .time_to_live(TimeToLiveRequest { key: key() })
        .await
        .unwrap();
    let left = Duration::from_micros(left.into_inner().remaining_microseconds.unwrap());
    assert!(
        left > Duration::from_secs(100) && left <= Duration::from_secs(120),
        "{left:?}"
    );

    let remove = |expected: &'static str| TryRemoveRequest {
        key: key(),
        expected: expected.into(),
    };
    assert!(
        !client
            .try_remove(remove("hello"))
            .await
            .unwrap()
            .into_inner()
            .removed
    );
    assert!(
        client
            .try_remove(remove("bye"))
            .await
            .unwrap()
            .into_inner()
            .removed
    );
    assert!(
        !client
            .remove(RemoveRequest { key: key() })
            .await
            .unwrap()
            .into_inner()
            .removed
    );
    let gone = client
        .time_to_live(TimeToLiveRequest { key: key() })
        .await
        .unwrap();
    assert_eq!(gone.into_inner().remaining_microseconds, None);
    client.ping(PingRequest {}).await.unwrap();
}

#[tokio::test]
async fn part3_batches_answer_in_the_order_asked() {
    let server = Running::new().await;
    let mut client = server.client().await;
    let items = vec![set("a", "1"), set("b", ""), set("a", "3")];
    client.set_many(SetManyRequest { items }).await.unwrap();
    let keys = || ["b", "none", "a"].map(str::to_owned).to_vec();
    let got = client
        .get_many(GetManyRequest { keys: keys() })
        .await
        .unwrap();
    let values: Vec<_> = got
        .into_inner()
        .entries
        .into_iter()
        .map(|entry| entry.value)
        .collect();
    assert_eq!(values, [Some("".into()), None, Some("3".into())]);
    let removed = client
        .remove_many(RemoveManyRequest { keys: keys() })
        .await
        .unwrap();
    assert_eq!(removed.into_inner().removed, [true, false, true]);
}

#[tokio::test]
async fn part3_numbers_are_counted_and_other_values_refused() {
    let server = Running::new().await;
    let mut client = server.client().await;
    let add = |delta| IncrementRequest {
        key: "count".to_owned(),
        delta,
        expiration: None,
    };
    assert_eq!(
        client.increment(add(5)).await.unwrap().into_inner().number,
        5
    );
    assert_eq!(
        client.increment(add(-7)).await.unwrap().into_inner().number,
        -2
    );
    client.set(set("count", "many")).await.unwrap();
    let status = client.increment(add(1)).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted);
    assert!(status.message().contains("`count`"), "{status}");
}

#[tokio::test]
async fn s6_leases_are_taken_relayed_and_released_with_rising_numbers() {
    let server = Running::new().await;
    let mut client = server.client().await;
    let first = client
        .try_lease(lease("lock:a", "one"))
        .await
        .unwrap()
        .into_inner()
        .fencing;
    let again = client
        .try_lease(lease("lock:a", "one"))
        .await
        .unwrap()
        .into_inner()
        .fencing;
    assert_eq!(first, again);
    let other = client
        .try_lease(lease("lock:a", "two"))
        .await
        .unwrap()
        .into_inner()
        .fencing;
    assert_eq!(other, None);
    let relay = TryRelayRequest {
        key: "lock:a".to_owned(),
        token: "one".to_owned(),
        new_token: "two".to_owned(),
        time_to_live_milliseconds: 60_000,
    };
    let relayed = client.try_relay(relay).await.unwrap().into_inner().fencing;
    assert!(relayed > first, "{relayed:?} {first:?}");
    let release = |token: &str| ReleaseRequest {
        key: "lock:a".to_owned(),
        token: token.to_owned(),
    };
    assert!(
        !client
            .release(release("one"))
            .await
            .unwrap()
            .into_inner()
            .released
    );
    assert!(
        client
            .release(release("two"))
            .await
            .unwrap()
            .into_inner()
            .released
    );
}

#[tokio::test]
async fn part3_keys_lists_a_literal_prefix_in_messages_of_many() {
    let server = Running::new().await;
    let mut client = server.client().await;
    let items = (0..1000).map(|number| set(&format!("a*:{number}"), "1"));
    let mut items: Vec<_> = items.collect();
    items.push(set("ab:1", "1"));
    client.set_many(SetManyRequest { items }).await.unwrap();
    let listing = client
        .keys(KeysRequest {
            prefix: "a*".to_owned(),
        })
        .await
        .unwrap();
    let messages: Vec<_> = listing.into_inner().collect().await;
    assert!(messages.len() < 100, "{}", messages.len());
    let mut keys: Vec<String> = messages
        .into_iter()
        .flat_map(|message| message.unwrap().keys)
        .collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 1000);
    assert!(keys.iter().all(|key| key.starts_with("a*:")));
}

#[tokio::test]
async fn part3_watch_says_that_it_is_registered_and_hints_at_a_release() {
    let server = Running::new().await;
    let mut client = server.client().await;
    client.try_lease(lease("lock:a", "one")).await.unwrap();
    let key = "lock:a".to_owned();
    let mut hints = client
        .watch(WatchRequest { key: key.clone() })
        .await
        .unwrap()
        .into_inner();
    hints.next().await.unwrap().unwrap();
    let token = "one".to_owned();
    client.release(ReleaseRequest { key, token }).await.unwrap();
    hints.next().await.unwrap().unwrap();
}

#[tokio::test]
async fn k1_e3_what_breaks_a_rule_is_refused_with_its_code() {
    let server = Running::new().await;
    let mut client = server.client().await;
    let status = client.get(get("two words")).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("character 4"), "{status}");
    let mut request = set("a", "1");
    request.expiration = fixed(0);
    let status = client.set(request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let status = client.try_lease(lease("a", "")).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}
