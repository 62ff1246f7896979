//! Server reflection, for tools such as grpcurl.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::server::NamedService;
use tonic::{Code, Status};
use tonic_reflection::server::Builder;
use tower::util::BoxCloneSyncService;

use super::access::Gate;
use super::body::Guarded;
use super::error::ServerError;
use crate::wire::error::to_status;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Boxed =
    BoxCloneSyncService<Request<tonic::body::Body>, Response<tonic::body::Body>, Infallible>;

/// What the services look like, as it was made of the contract.
const DESCRIPTOR: &[u8] = include_bytes!("../generated/xihan.caching.v1.bin");
/// A request names one symbol.
const LARGEST_REQUEST: usize = 4096;

/// One version of server reflection, to be mounted in a tonic server.
///
/// Where the server has tokens it asks for one. Clones are one service.
#[derive(Clone)]
pub struct ReflectionService<V> {
    served: Boxed,
    gate: Arc<Gate>,
    version: V,
}

/// `grpc.reflection.v1`
#[derive(Clone, Copy, Debug)]
pub struct V1;

/// `grpc.reflection.v1alpha`, which older tools ask for.
#[derive(Clone, Copy, Debug)]
pub struct V1Alpha;

impl NamedService for ReflectionService<V1> {
    const NAME: &'static str = "grpc.reflection.v1.ServerReflection";
}

impl NamedService for ReflectionService<V1Alpha> {
    const NAME: &'static str = "grpc.reflection.v1alpha.ServerReflection";
}

impl ReflectionService<V1> {
    pub(super) fn v1(gate: Arc<Gate>) -> Result<Self, ServerError> {
        let served = described().build_v1().map_err(broken)?;
        Ok(Self {
            served: Boxed::new(served.max_decoding_message_size(LARGEST_REQUEST)),
            gate,
            version: V1,
        })
    }
}

impl ReflectionService<V1Alpha> {
    pub(super) fn v1alpha(gate: Arc<Gate>) -> Result<Self, ServerError> {
        let served = described().build_v1alpha().map_err(broken)?;
        Ok(Self {
            served: Boxed::new(served.max_decoding_message_size(LARGEST_REQUEST)),
            gate,
            version: V1Alpha,
        })
    }
}

fn described() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTOR)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

fn broken(error: tonic_reflection::server::Error) -> ServerError {
    ServerError::Descriptor {
        source: Box::new(error),
    }
}

impl<V: fmt::Debug> fmt::Debug for ReflectionService<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReflectionService")
            .field(&self.version)
            .finish()
    }
}

impl<B, V> tower::Service<Request<B>> for ReflectionService<V>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError> + Send + 'static,
{
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if let Err(error) = self.gate.authenticate(request.headers()) {
            let refused = to_status(&error).into_http();
            return Box::pin(std::future::ready(Ok(refused)));
        }
        let limited = |body| tonic::body::Body::new(Guarded::new(body, LARGEST_REQUEST, None));
        let answering = self.served.call(request.map(limited));
        let closing = self.gate.shared.closing.clone().cancelled_owned();
        Box::pin(async move {
            let Ok(answer) = answering.await;
            let closing = Box::pin(closing);
            Ok(answer.map(|body| tonic::body::Body::new(Ending { body, closing })))
        })
    }
}

/// A stream of answers that a shutdown ends.
struct Ending {
    body: tonic::body::Body,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Body for Ending {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        if self.closing.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.body = tonic::body::Body::empty();
        let code = HeaderValue::from(Code::Unavailable as i32);
        let trailers = HeaderMap::from_iter([(Status::GRPC_STATUS, code)]);
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
