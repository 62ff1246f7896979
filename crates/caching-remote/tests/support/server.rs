//! A server of the obviously correct store, and raw clients of it.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "test code, of which each file uses a part"
)]

use std::net::SocketAddr;
use std::sync::Arc;

use caching_abstractions::{CacheStore, KeyPrefix, SystemClock};
use caching_remote::proto::store_client::StoreClient;
use caching_remote::proto::{GetRequest, SetRequest, TryLeaseRequest};
use caching_remote::server::{AccessToken, StoreServer, StoreServerBuilder};
use conformance::{ReferenceStore, Setup};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};

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
