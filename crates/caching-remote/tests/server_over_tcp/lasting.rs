//! Calls whose client does not wait for them, and stores that panic.

use bytes::Bytes;
use caching_abstractions::ErrorCode;
use caching_remote::proto::*;
use tonic::Code;
use tonic_types::StatusExt;

use crate::gated::Gated;
use crate::support::{Running, get, lease, leave, raw, reference, round_trips, set};

#[tokio::test]
async fn s5_a_mutation_runs_to_its_end_when_its_client_leaves() {
    let (store, gate) = Gated::new(reference());
    let server = Running::of(store, |settings| settings).await;
    let mut client = server.client().await;
    leave(&gate, client.try_lease(lease("lock:a", "token"))).await;
    round_trips(&mut client).await;
    gate.open(1);
    gate.reaches(1, 1).await;
    let got = server.client().await.get(get("lock:a")).await.unwrap();
    assert_eq!(got.into_inner().value, Some("token".into()));
}

#[tokio::test]
async fn s5_a_read_ends_with_its_client() {
    let (store, gate) = Gated::new(reference());
    let server = Running::of(store, |settings| settings).await;
    let mut client = server.client().await;
    let keys = vec!["a".to_owned()];
    leave(&gate, client.get_many(GetManyRequest { keys })).await;
    round_trips(&mut client).await;
    gate.open(1);
    // What is let through comes from another call.
    client.set(set("a", "1")).await.unwrap();
    assert_eq!(gate.counts(), (2, 1));
}

#[tokio::test]
async fn part6_a_panic_of_the_store_is_an_error_and_the_connection_goes_on() {
    let (store, gate) = Gated::new(reference());
    gate.open(2);
    let server = Running::of(store, |settings| settings).await;
    let mut client = server.client().await;
    for _ in 0..3 {
        for status in [
            client.get(get("panic")).await.unwrap_err(),
            client.set(set("panic", "SECRET")).await.unwrap_err(),
        ] {
            assert_eq!(status.code(), Code::Internal);
            let info = status.get_details_error_info().unwrap();
            assert_eq!(info.reason, ErrorCode::Internal.as_str());
            assert!(
                !status.message().contains("as the test wants it"),
                "{status}"
            );
        }
    }
    client.set(set("a", "1")).await.unwrap();
}

#[tokio::test]
async fn a_call_whose_time_is_over_is_not_begun() {
    let (store, gate) = Gated::new(reference());
    let server = Running::of(store, |settings| settings).await;
    let empty = || Bytes::from_static(&[0; 5]);
    let call = async |path, timeout| raw(&server, path, timeout, empty()).await;
    for timeout in ["0n", "1n"] {
        let status = call("/xihan.caching.v1.Store/Remove", timeout).await;
        assert_eq!(status.code(), Code::DeadlineExceeded);
        let info = status.get_details_error_info().unwrap();
        assert_eq!(info.reason, ErrorCode::StoreUnavailable.as_str());
    }
    // What is no time is no limit.
    let status = call("/xihan.caching.v1.Store/Ping", "soon").await;
    assert_eq!(status.code(), Code::Ok);
    let status = call("/xihan.caching.v1.Store/Drop", "1S").await;
    assert_eq!(status.code(), Code::Unimplemented);
    let status = call("/xihan.caching.v2.Store/Get", "1S").await;
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(gate.counts(), (0, 0));
}
