//! A server that shuts down.

use std::time::Duration;

use caching_remote::proto::store_client::StoreClient;
use caching_remote::proto::*;
use caching_remote::server::{Limits, StoreServer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Endpoint;

use crate::gated::Gated;
use crate::support::{Running, access, get, lease, reference, set};

#[tokio::test]
async fn what_runs_ends_and_nobody_else_is_let_in() {
    let (store, gate) = Gated::new(reference());
    let mut server = Running::of(store, |settings| settings).await;
    let mut client = server.client().await;
    let running = tokio::spawn(async move { client.set(set("a", "1")).await });
    gate.reaches(1, 0).await;
    server.begin_shutdown();
    let refused = async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), refused).await.unwrap();
    gate.open(1);
    running.await.unwrap().unwrap();
    server.ended().await;
    assert_eq!(gate.counts(), (1, 1));
}

#[tokio::test]
async fn watches_and_idle_connections_do_not_hold_it_up() {
    let mut server = Running::new().await;
    let mut client = server.client().await;
    let _idle = server.client().await;
    let key = "lock:a".to_owned();
    let mut hints = client
        .watch(WatchRequest { key })
        .await
        .unwrap()
        .into_inner();
    hints.next().await.unwrap().unwrap();
    server.begin_shutdown();
    assert!(hints.next().await.is_none());
    timeout(Duration::from_secs(20), server.ended())
        .await
        .unwrap();
}

#[tokio::test]
async fn what_does_not_end_is_cut_when_its_time_is_over() {
    let (store, gate) = Gated::new(reference());
    let mut limits = Limits::default();
    limits.shutdown_timeout = Duration::from_millis(200);
    let mut server = Running::of(store, |settings| settings.limits(limits)).await;
    let mut client = server.client().await;
    let running = tokio::spawn(async move { client.set(set("a", "1")).await });
    gate.reaches(1, 0).await;
    let begun = Instant::now();
    server.begin_shutdown();
    timeout(Duration::from_secs(20), server.ended())
        .await
        .unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(200));
    running.await.unwrap().unwrap_err();
}

#[tokio::test]
async fn the_services_can_be_mounted_in_another_server() {
    let server = StoreServer::builder(reference())
        .token(access("SECRET"))
        .build()
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tonic::transport::Server::builder()
        .add_routes(server.routes())
        .serve_with_incoming(TcpListenerStream::new(listener));
    let task = tokio::spawn(serving);
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = StoreClient::new(endpoint.connect().await.unwrap());
    client.get(get("a")).await.unwrap_err();
    let mut request = tonic::Request::new(lease("lock:a", "one"));
    let value = "Bearer SECRET".parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    let leased = client.try_lease(request).await.unwrap().into_inner();
    assert!(leased.fencing.is_some());
    server.shut_down().await;
    task.abort();
}
