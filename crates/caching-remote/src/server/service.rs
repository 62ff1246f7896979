//! The service as it is generated from the contract, on one view of the store.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use caching_abstractions::{CacheStore, CachingError, KeyPrefix};
use futures_util::Stream;
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use super::body::too_large;
use super::deadline::deadline;
use super::operation::{Operation, perform};
use super::session::Session;
use super::shared::Shared;
use super::work::to_its_end;
use super::{lease, streams};
use crate::proto;
use crate::proto::store_server::{Store, StoreServer};
use crate::wire::error::to_status;

/// The generated server around a [`Service`].
pub(super) type Served = StoreServer<Service>;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Answers the calls that may touch the keys of `store`.
pub(super) struct Service {
    pub(super) store: Arc<dyn CacheStore>,
    /// What `store` shows of the whole one; none if it is the whole one.
    pub(super) prefix: Option<KeyPrefix>,
    pub(super) shared: Arc<Shared>,
}

impl Service {
    pub(super) fn new(
        store: Arc<dyn CacheStore>,
        prefix: Option<KeyPrefix>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            store,
            prefix,
            shared,
        }
    }

    pub(super) fn served(self) -> Served {
        let limit = self.shared.limits.max_message_bytes;
        StoreServer::new(self)
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit)
    }

    async fn answer<O: Operation>(
        &self,
        request: Request<O>,
    ) -> Result<Response<O::Answer>, Status> {
        let work = perform(request.into_inner(), Arc::clone(&self.store));
        let answer = if O::MUTATES {
            to_its_end(&self.shared.running, work).await
        } else {
            work.await
        };
        let answer = answer.map_err(refused)?;
        let (bytes, limit) = (answer.encoded_len(), self.shared.limits.max_message_bytes);
        if bytes > limit {
            return Err(refused(
                too_large("answer", bytes, limit).with_operation(O::NAME),
            ));
        }
        Ok(Response::new(answer))
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("store", &self.store)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

fn refused(error: CachingError) -> Status {
    to_status(&error)
}

/// The calls that one answer ends.
macro_rules! calls {
    ($($name:ident: $request:ident => $answer:ident;)*) => {
        calls!(@ $($name, $request, $answer;)*);
    };
    (@ $($name:ident, $request:ident, $answer:ident;)*) => {
        #[async_trait]
        impl Store for Service {
            $(async fn $name(
                &self,
                request: Request<proto::$request>,
            ) -> Result<Response<proto::$answer>, Status> {
                self.answer(request).await
            })*

            async fn wait_for_lease(
                &self,
                request: Request<proto::WaitForLeaseRequest>,
            ) -> Result<Response<proto::WaitForLeaseResponse>, Status> {
                let deadline = deadline(request.metadata().as_ref());
                let waited = lease::wait_for_lease(self, request.into_inner(), deadline).await;
                waited.map(Response::new).map_err(refused)
            }

            type WatchStream = Answers<proto::WatchResponse>;

            async fn watch(
                &self,
                request: Request<proto::WatchRequest>,
            ) -> Result<Response<Self::WatchStream>, Status> {
                let watching = streams::watch(self, request.into_inner()).await;
                watching.map(Response::new).map_err(refused)
            }

            type KeysStream = Answers<proto::KeysResponse>;

            async fn keys(
                &self,
                request: Request<proto::KeysRequest>,
            ) -> Result<Response<Self::KeysStream>, Status> {
                Ok(Response::new(streams::keys(self, &request.into_inner())))
            }

            type SessionStream = Session;

            async fn session(
                &self,
                request: Request<Streaming<proto::SessionRequest>>,
            ) -> Result<Response<Session>, Status> {
                let session = Session::new(self, request.into_inner());
                Ok(Response::new(session))
            }
        }
    };
}

calls! {
    get: GetRequest => GetResponse;
    get_many: GetManyRequest => GetManyResponse;
    set: SetRequest => SetResponse;
    set_many: SetManyRequest => SetManyResponse;
    try_add: TryAddRequest => TryAddResponse;
    get_or_add: GetOrAddRequest => GetOrAddResponse;
    try_replace: TryReplaceRequest => TryReplaceResponse;
    try_remove: TryRemoveRequest => TryRemoveResponse;
    try_extend: TryExtendRequest => TryExtendResponse;
    try_lease: TryLeaseRequest => TryLeaseResponse;
    try_relay: TryRelayRequest => TryRelayResponse;
    release: ReleaseRequest => ReleaseResponse;
    remove: RemoveRequest => RemoveResponse;
    remove_many: RemoveManyRequest => RemoveManyResponse;
    increment: IncrementRequest => IncrementResponse;
    time_to_live: TimeToLiveRequest => TimeToLiveResponse;
    ping: PingRequest => PingResponse;
}
