//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::server::NamedService;
use tower::Service as _;
use tracing::debug;

use super::builder::StoreServer;
use super::guard::{Answering, StoreService};
use super::health::HealthService;
use super::limits::Limits;
use super::metrics::{Present, Refusal};
use super::reflection::{ReflectionService, V1, V1Alpha};

const MIB: u32 = 1024 * 1024;
/// How much one call, and one connection, may have under way towards the server.
const STREAM_WINDOW: u32 = 2 * MIB;
const CONNECTION_WINDOW: u32 = 8 * MIB;
/// How much of an answer waits for a client that does not read.
const SEND_BUFFER: usize = 1024 * 1024;
/// How many times all streams of a connection may be given up before the server has looked at them.
const BURSTS: usize = 16;

/// What every HTTP/2 client says first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// For people who try it with a browser.
const NOT_HTTP_1: &[u8] = b"HTTP/1.1 505 HTTP Version Not Supported\r\nconnection: close\r\n\
    content-type: text/plain\r\ncontent-length: 38\r\n\r\nthis port speaks gRPC, that is HTTP/2\n";

/// What the connections of one server share.
#[derive(Debug)]
pub(super) struct Serving {
    limits: Limits,
    closing: CancellationToken,
    /// The end of a shutdown's patience, or of the server.
    pub(super) aborting: CancellationToken,
    tls: Option<TlsConfiguration>,
    dispatch: Dispatch,
}

struct TlsConfiguration(TlsAcceptor);

impl std::fmt::Debug for TlsConfiguration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsConfiguration")
    }
}

impl Serving {
    pub(super) fn new(server: &StoreServer) -> Self {
        let (v1, v1alpha) = server.reflection_services();
        Self {
            limits: server.shared().limits,
            closing: server.shared().closing.clone(),
            aborting: CancellationToken::new(),
            tls: server.tls().map(|configuration| {
                TlsConfiguration(TlsAcceptor::from(Arc::clone(configuration)))
            }),
            dispatch: Dispatch {
                store: server.store_service(),
                health: server.health_service(),
                v1,
                v1alpha,
            },
        }
    }

    /// Serves `stream` until its client has had enough of it.
    pub(super) async fn serve(&self, stream: TcpStream, peer: SocketAddr) {
        let _present = Present::connection();
        let end = Instant::now() + self.limits.handshake_timeout;
        // Without it an answer waits for the acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.begin(stream, peer, end).await;
        };
        match timeout_at(end, tls.0.accept(stream)).await {
            Ok(Ok(stream)) => self.begin(stream, peer, end).await,
            Ok(Err(error)) => {
                Refusal::Handshake.count();
                debug!(%peer, %error, "no TLS with a client");
            }
            Err(_) => {
                Refusal::Handshake.count();
                debug!(%peer, "a client did not finish TLS in time");
            }
        }
    }

    /// Waits for HTTP/2 to begin, so that whoever says nothing or something else does not stay.
    async fn begin<S>(&self, mut stream: S, peer: SocketAddr, end: Instant)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        match timeout_at(end, read_preface(&mut stream)).await {
            Ok(Ok(())) => self.run(stream, peer).await,
            Ok(Err(error)) => {
                Refusal::Protocol.count();
                debug!(%peer, %error, "a client does not speak HTTP/2");
            }
            Err(_) => {
                Refusal::Protocol.count();
                debug!(%peer, "a client did not begin HTTP/2 in time");
            }
        }
    }

    async fn run<S>(&self, stream: S, peer: SocketAddr)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let stream = TokioIo::new(Begun {
            stream,
            preface: PREFACE,
        });
        let connection = self.http().serve_connection(stream, self.dispatch.clone());
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => Some(ended),
            () = self.closing.cancelled() => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        match ended {
            Ok(()) => debug!(%peer, "a connection ended"),
            Err(error) => debug!(%peer, %error, "a connection broke"),
        }
    }

    fn http(&self) -> http2::Builder<TokioExecutor> {
        // Callers with short time limits give up in bursts, and open the next calls before the
        // server has looked at those. That is no attack, and to end their connection would take
        // the answers of everybody else on it with them.
        let given_up = usize::try_from(self.limits.max_concurrent_streams).unwrap_or(usize::MAX);
        let given_up = given_up.saturating_mul(BURSTS);
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .max_concurrent_streams(self.limits.max_concurrent_streams)
            .max_pending_accept_reset_streams(given_up)
            .max_header_list_size(self.limits.max_header_bytes)
            .keep_alive_interval(self.limits.keep_alive_interval)
            .keep_alive_timeout(self.limits.keep_alive_timeout)
            .auto_date_header(false);
        http
    }
}

/// Reads the preface, and gives up at the first byte that is not of it.
async fn read_preface(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<()> {
    let (mut read, mut length) = ([0; PREFACE.len()], 0);
    while length < PREFACE.len() {
        match stream.read(&mut read[length..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => length += more,
        }
        if read[..length] != PREFACE[..length] {
            if looks_like_http_1(&read[..length]) {
                // It is refused whether or not it can be told.
                let _ = stream.write_all(NOT_HTTP_1).await;
                let _ = stream.shutdown().await;
            }
            return Err(io::Error::new(io::ErrorKind::InvalidData, "other bytes"));
        }
    }
    Ok(())
}

fn looks_like_http_1(read: &[u8]) -> bool {
    let methods: [&[u8]; 5] = [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"OPTIONS "];
    methods.iter().any(|method| read.starts_with(method))
}

/// A stream whose preface has been read, and is given once more.
struct Begun<S> {
    stream: S,
    preface: &'static [u8],
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.preface.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let (now, later) = self
            .preface
            .split_at(self.preface.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.preface = later;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Which service answers.
#[derive(Clone, Debug)]
struct Dispatch {
    store: StoreService,
    health: HealthService,
    v1: ReflectionService<V1>,
    v1alpha: ReflectionService<V1Alpha>,
}

type Answer = Response<tonic::body::Body>;

impl hyper::service::Service<Request<Incoming>> for Dispatch {
    type Response = Answer;
    type Error = Infallible;
    type Future = Dispatched;

    fn call(&self, request: Request<Incoming>) -> Dispatched {
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        if service == StoreService::NAME {
            return Dispatched::Store(self.store.clone().call(request));
        }
        Dispatched::Other(match service {
            HealthService::NAME => self.health.clone().call(request),
            <ReflectionService<V1>>::NAME => self.v1.clone().call(request),
            <ReflectionService<V1Alpha>>::NAME => self.v1alpha.clone().call(request),
            _ => {
                let unknown = Status::unimplemented("no such service is served here");
                Box::pin(std::future::ready(Ok(unknown.into_http())))
            }
        })
    }
}

enum Dispatched {
    Store(Answering),
    Other(Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>),
}

impl Future for Dispatched {
    type Output = Result<Answer, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Store(answering) => Pin::new(answering).poll(context),
            Self::Other(answering) => answering.as_mut().poll(context),
        }
    }
}
