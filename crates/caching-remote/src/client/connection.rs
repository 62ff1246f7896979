//! One connection to the server, shared by everybody.
//!
//! It never reconnects and never sends anything twice: when it breaks, everything that waits in it
//! fails, and nothing of it is sent later. Who wants another one opens it: see `link`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::ErrorCode;
use h2::client::{Builder, SendRequest};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use crate::client::driver::{Driver, Stream};
use crate::client::endpoint::Endpoint;
use crate::client::error::{Attempt, Cause, Fault};
use crate::client::head::Head;
use crate::client::phase::{Ending, Phase, Shared, Why};
use crate::client::reply::{self, Answer};
use crate::client::request::Request;
use crate::client::stream::{Incoming, message, too_long};

/// What every connection of a store has in common.
#[derive(Clone)]
pub(crate) struct ConnectionSettings {
    pub(crate) endpoint: Endpoint,
    pub(crate) head: Head,
    pub(crate) tls: Option<TlsConnector>,
    /// The time limit of an operation, which is also that of opening.
    pub(crate) limit: Duration,
    /// The longest message either way.
    pub(crate) longest: usize,
}

impl std::fmt::Debug for ConnectionSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionSettings")
            .field("endpoint", &self.endpoint)
            .field("head", &self.head)
            .field("limit", &self.limit)
            .field("longest", &self.longest)
            .finish_non_exhaustive()
    }
}

/// How operations go over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// Many to a message on one long-lived stream, where the server offers that; each as a call of
    /// its own where it does not.
    Session,
    /// Each as a call of its own.
    Unary,
}

/// No attempt to open waits longer for a network that says nothing.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);
const SESSION: &str = "/xihan.caching.v1.Store/Session";
/// What a server may send before it is read, on one stream and on all together.
const WINDOWS: (u32, u32) = (4 << 20, 16 << 20);
/// What is handed to the connection before the network takes it.
const SEND_BUFFER: usize = 256 * 1024;
const FRAME: u32 = 256 * 1024;
/// How many calls that were given up are remembered for a second, so that their late answers are
/// known for what they are.
const REMEMBERED: usize = 1024;

/// What the messages around a request take.
pub(crate) const AROUND: usize = 64;

/// An open connection.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    sender: SendRequest<Bytes>,
    head: Head,
    longest: usize,
    pub(crate) transport: Transport,
    driver: AbortHandle,
    /// How many streams last.
    lasting: AtomicUsize,
}

impl Connection {
    /// Opens a connection, and returns when the server has taken the caller in.
    ///
    /// # Errors
    /// How the attempt ended; nothing is left behind.
    pub(crate) async fn open(
        settings: &ConnectionSettings,
        transport: Transport,
        is_quiet: bool,
    ) -> Result<Self, Ending> {
        let limit = settings.limit.min(CONNECT_LIMIT);
        let opening = Self::establish(settings, transport, is_quiet);
        let connection = within(limit, "it did not accept a connection", opening).await?;
        let accepted = connection.accepted(limit);
        within(limit, "it did not answer the first call", accepted).await?;
        Ok(connection)
    }

    async fn establish(
        settings: &ConnectionSettings,
        transport: Transport,
        is_quiet: bool,
    ) -> Result<Self, Ending> {
        let broke = |error: std::io::Error| Ending::broke((&error).into());
        let Endpoint { host, port, .. } = &settings.endpoint;
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(broke)?;
        stream.set_nodelay(true).map_err(broke)?;
        // What the operating system still holds when the connection is given up is not to arrive
        // when the network is back: its callers have been told that there was no answer (S5).
        stream.set_zero_linger().map_err(broke)?;
        let Some(tls) = &settings.tls else {
            return Self::handshake(stream, settings, transport, is_quiet).await;
        };
        let name = ServerName::try_from(host.clone());
        let name = name.map_err(|error| Ending::broke(Cause::new(error.to_string())))?;
        let stream = tls.connect(name, stream).await.map_err(broke)?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            let text = "what answers there does not speak HTTP/2";
            return Err(Ending::broke(Cause::new(text)));
        }
        Self::handshake(stream, settings, transport, is_quiet).await
    }

    async fn handshake<T>(
        stream: T,
        settings: &ConnectionSettings,
        transport: Transport,
        is_quiet: bool,
    ) -> Result<Self, Ending>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let broke = |error: h2::Error| Ending::broke((&error).into());
        let (stream_window, window) = WINDOWS;
        let handshake = Builder::new()
            .initial_window_size(stream_window)
            .initial_connection_window_size(window)
            .max_frame_size(FRAME)
            .max_send_buffer_size(SEND_BUFFER)
            .enable_push(false)
            .max_concurrent_reset_streams(REMEMBERED)
            // Late answers beyond those are no reason to end the connection of everybody.
            .max_local_error_reset_streams(None)
            .handshake(stream);
        let (mut sender, io) = handshake.await.map_err(broke)?;
        let session = match transport {
            Transport::Unary => None,
            Transport::Session => {
                let request = settings.head.request(SESSION, None);
                let opened = sender.send_request(request, false).map_err(broke)?;
                let (response, send) = opened;
                Some(Stream::new(response, send, settings.longest))
            }
        };
        let shared = Arc::new(Shared::new(settings.limit, settings.longest, is_quiet));
        let driver = Driver::new(
            io,
            sender.clone(),
            session,
            Arc::clone(&shared),
            settings.limit,
        );
        let driver = tokio::spawn(driver.run()).abort_handle();
        Ok(Self {
            shared,
            sender,
            head: settings.head.clone(),
            longest: settings.longest,
            transport,
            driver,
            lasting: AtomicUsize::new(0),
        })
    }

    /// Waits until the server has taken the caller in. The first call makes it say something;
    /// whether its store works is another question.
    async fn accepted(&self, limit: Duration) -> Result<(), Ending> {
        let mut phase = self.shared.phase();
        let ping = async {
            let answer = self.call(&Request::ping(), Instant::now() + limit).await;
            match answer.and_then(reply::done) {
                Err(Fault::Refused(error)) if is_about_the_caller(error.code()) => Err(Ending {
                    why: Why::Refused(error),
                    ..Ending::broke(Cause::new("the caller is not let in"))
                }),
                Err(Fault::Unknown(cause) | Fault::NotSent(cause)) => Err(Ending::broke(cause)),
                Ok(()) | Err(Fault::Refused(_)) => Ok(()),
            }
        };
        let settled = phase.wait_for(|phase| !matches!(phase, Phase::Opening));
        let settled = async move { settled.await.map(|phase| phase.clone()) };
        let answered = tokio::select! {
            biased;
            settled = settled => match settled {
                Ok(Phase::Over(ending)) => return Err(ending),
                Ok(Phase::Draining(cause)) => return Err(Ending::broke(cause)),
                _ => Ok(()),
            },
            answered = ping => answered,
        };
        match (answered, &*self.shared.phase().borrow()) {
            // It says better why.
            (Err(_), Phase::Over(ending)) => Err(ending.clone()),
            (answered, _) => answered,
        }
    }

    /// Whether nothing new can be sent over it.
    pub(crate) fn is_closed(&self) -> bool {
        !self.shared.takes_calls()
    }

    /// Ends it at once. What waits in it fails and is never sent.
    pub(crate) fn close(&self) {
        self.shared
            .end(Ending::broke(Cause::new("the connection was closed")));
        self.driver.abort();
    }

    /// How it stands.
    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.shared.phase()
    }

    /// Has `request` executed by `deadline`.
    ///
    /// # Cancellation safety
    /// What is not sent yet when the future is dropped never is.
    pub(crate) async fn call(&self, request: &Request<'_>, deadline: Instant) -> Attempt<Answer> {
        let length = request.len() + AROUND;
        if length > self.longest {
            return Err(Fault::Refused(too_long("a request", length, self.longest)));
        }
        let now = Instant::now();
        match self.transport {
            Transport::Session => {
                let answer = self.shared.session.call(request, now, deadline)?.await?;
                let fits = reply::fits(request.kind, &answer);
                fits.then_some(answer).ok_or_else(reply::unexpected)
            }
            Transport::Unary => self.call_alone(request, now, deadline).await,
        }
    }

    async fn call_alone(
        &self,
        request: &Request<'_>,
        now: Instant,
        deadline: Instant,
    ) -> Attempt<Answer> {
        let message = message(request.len(), |buffer| request.encode(buffer));
        let limit = deadline - now;
        let path = request.kind.path();
        let call = async {
            let incoming = self.open_stream(path, message, Some(limit)).await?;
            let message = incoming.only().await?;
            reply::of_message(request.kind, message).map_err(|_| reply::unexpected())
        };
        match timeout_at(deadline, call).await {
            Ok(result) => result,
            Err(_) => Err(Fault::not_answered(limit)),
        }
    }

    /// Begins a call on a stream of its own.
    pub(crate) async fn open_stream(
        &self,
        path: &'static str,
        message: Bytes,
        timeout: Option<Duration>,
    ) -> Attempt<Incoming> {
        let (sender, head) = (&self.sender, &self.head);
        Incoming::open(sender, head, path, message, timeout, self.longest).await
    }

    /// A place for a stream that lasts; none where such streams have half of what the server
    /// allows. The rest is for calls that end: without them nobody could release what the streams
    /// wait for.
    pub(crate) fn lasting_place(self: &Arc<Self>) -> Option<LastingPlace> {
        let most = self.sender.current_max_send_streams() / 2;
        let before = self.lasting.fetch_add(1, Ordering::Relaxed);
        // It counts down again when it is dropped.
        let place = LastingPlace(Arc::clone(self));
        (before < most.max(1)).then_some(place)
    }
}

/// The place of a stream that lasts.
#[derive(Debug)]
pub(crate) struct LastingPlace(Arc<Connection>);

impl LastingPlace {
    pub(crate) fn connection(&self) -> &Connection {
        &self.0
    }
}

impl Drop for LastingPlace {
    fn drop(&mut self) {
        self.0.lasting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether an error is about who calls, and not about the call.
pub(crate) fn is_about_the_caller(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::Unauthenticated | ErrorCode::Forbidden)
}

async fn within<T>(
    limit: Duration,
    otherwise: &'static str,
    step: impl Future<Output = Result<T, Ending>>,
) -> Result<T, Ending> {
    match timeout(limit, step).await {
        Ok(result) => result,
        Err(_) => {
            let text = format!("{otherwise} within {} ms", limit.as_millis());
            Err(Ending::broke(Cause::new(text)))
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("transport", &self.transport)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
