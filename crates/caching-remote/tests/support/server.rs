//! A server of the obviously correct store, and raw clients of it.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "test code, of which each file uses a part"
)]

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use caching_abstractions::{CacheStore, KeyPrefix, SystemClock};
use caching_remote::proto::store_client::StoreClient;
use caching_remote::proto::{GetRequest, PingRequest, SetRequest, TryLeaseRequest};
use caching_remote::server::{AccessToken, StoreServer, StoreServerBuilder};
use conformance::{ReferenceStore, Setup};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::gated::Gate;

/// A server that runs until it is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) server: StoreServer,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    /// A server of `store`, with settings of the test.
    pub(crate) async fn of(
        store: Arc<dyn CacheStore>,
        settings: impl FnOnce(StoreServerBuilder) -> StoreServerBuilder,
    ) -> Self {
        let server = settings(StoreServer::builder(store)).build().unwrap();
        let listening = server.bind("127.0.0.1:0").await.unwrap();
        let address = listening.local_address();
        let (shutdown, told) = oneshot::channel();
        let task = tokio::spawn(listening.run_until(async {
            let _ = told.await;
        }));
        Self {
            address,
            server,
            shutdown: Some(shutdown),
            task,
        }
    }

    /// A server of a new store.
    pub(crate) async fn new() -> Self {
        Self::of(reference(), |settings| settings).await
    }

    /// Tells it to shut down, and goes on.
    pub(crate) fn begin_shutdown(&mut self) {
        let _ = self.shutdown.take().unwrap().send(());
    }

    /// Waits until the shutdown is done.
    pub(crate) async fn ended(&mut self) {
        (&mut self.task).await.unwrap();
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::from_shared(format!("http://{}", self.address)).unwrap()
    }

    /// A client with a connection of its own.
    pub(crate) async fn client(&self) -> StoreClient<Channel> {
        StoreClient::new(self.endpoint().connect().await.unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A new store, on the machine's clock.
pub(crate) fn reference() -> Arc<dyn CacheStore> {
    let clock = Arc::new(SystemClock::new());
    Arc::new(ReferenceStore::with_setup(clock, &Setup::default()))
}

pub(crate) fn access(secret: &str) -> AccessToken {
    AccessToken::new(secret).unwrap()
}

pub(crate) fn prefix(text: &str) -> KeyPrefix {
    KeyPrefix::new(text).unwrap()
}

pub(crate) fn get(key: &str) -> GetRequest {
    GetRequest {
        key: key.to_owned(),
    }
}

pub(crate) fn set(key: &str, value: &'static str) -> SetRequest {
    SetRequest {
        key: key.to_owned(),
        value: value.into(),
        expiration: None,
    }
}

pub(crate) fn lease(key: &str, token: &str) -> TryLeaseRequest {
    TryLeaseRequest {
        key: key.to_owned(),
        token: token.to_owned(),
        time_to_live_milliseconds: 60_000,
    }
}

/// Makes a call, and leaves as soon as it waits at the gate.
pub(crate) async fn leave<T>(gate: &Gate, call: impl Future<Output = T>) {
    tokio::select! {
        _ = call => unreachable!("nothing goes on before the gate is open"),
        () = gate.reaches(1, 0) => {}
    }
}

/// After these the server knows which calls of the connection were left before them.
pub(crate) async fn round_trips(client: &mut StoreClient<Channel>) {
    for _ in 0..10 {
        client.ping(PingRequest {}).await.unwrap();
    }
}

/// How much memory this process has.
pub(crate) fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    resident * 4096
}

/// What the server says to a call that no gRPC library would make.
pub(crate) async fn raw(server: &Running, path: &str, timeout: &str, body: Bytes) -> Status {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::post(format!("http://{}{path}", server.address))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", timeout)
        .body(())
        .unwrap();
    let mut client = client.ready().await.unwrap();
    let (answer, mut sending) = client.send_request(request, false).unwrap();
    sending.send_data(body, true).unwrap();
    let answer = answer.await.unwrap();
    if let Some(status) = Status::from_header_map(answer.headers()) {
        return status;
    }
    let mut body = answer.into_body();
    while let Some(data) = body.data().await {
        data.unwrap();
    }
    let trailers = body.trailers().await.unwrap().unwrap();
    Status::from_header_map(&trailers).unwrap()
}
