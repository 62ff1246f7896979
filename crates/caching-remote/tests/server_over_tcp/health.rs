//! `grpc.health.v1.Health`.

use tokio_stream::StreamExt;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::gated::Gated;
use crate::support::{Running, access, reference};

const STORE: &str = "xihan.caching.v1.Store";

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: service.to_owned(),
    }
}

#[tokio::test]
async fn health_follows_the_store_and_asks_for_no_token() {
    let (store, gate) = Gated::new(reference());
    let server = Running::of(store, |settings| settings.token(access("SECRET"))).await;
    let mut client = HealthClient::new(server.endpoint().connect().await.unwrap());
    let mut check = async |service: &str| {
        let answer = client.check(of(service)).await;
        answer.map(|answer| answer.into_inner().status())
    };
    assert_eq!(check("").await.unwrap(), ServingStatus::Serving);
    assert_eq!(check(STORE).await.unwrap(), ServingStatus::Serving);
    assert_eq!(check("other").await.unwrap_err().code(), Code::NotFound);
    gate.set_away(true);
    // What the store said counts for a second.
    while check(STORE).await.unwrap() == ServingStatus::Serving {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(check("").await.unwrap(), ServingStatus::NotServing);
}

#[tokio::test]
async fn health_tells_watchers_of_a_shutdown_before_it_closes() {
    let mut server = Running::new().await;
    let mut client = HealthClient::new(server.endpoint().connect().await.unwrap());
    let mut states = client.watch(of(STORE)).await.unwrap().into_inner();
    let first = states.next().await.unwrap().unwrap().status();
    assert_eq!(first, ServingStatus::Serving);
    server.begin_shutdown();
    let mut last = first;
    while let Some(Ok(answer)) = states.next().await {
        last = answer.status();
    }
    assert_eq!(last, ServingStatus::NotServing);
    server.ended().await;
}

#[tokio::test]
async fn health_of_an_unknown_service_is_watched_as_unknown() {
    let server = Running::new().await;
    let mut client = HealthClient::new(server.endpoint().connect().await.unwrap());
    let mut states = client.watch(of("other")).await.unwrap().into_inner();
    let first = states.next().await.unwrap().unwrap().status();
    assert_eq!(first, ServingStatus::ServiceUnknown);
}
