//! Many operations over one stream.

use std::collections::VecDeque;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use caching_abstractions::{CacheStore, CachingError, Result};
use futures_util::{FutureExt, Stream, StreamExt};
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::{Code, Status, Streaming};

use super::body::{not_begun, too_large};
use super::metrics::Present;
use super::operation::{Outcome, performing};
use super::service::Service;
use super::shared::Shared;
use super::work::{at_once, panicked};
use crate::proto::{Call, Reply, SessionRequest, SessionResponse, reply};
use crate::wire::error::{to_failure, to_status};

/// How many replies a message has at most, and from how many bytes on it gets no more.
const REPLIES_PER_MESSAGE: usize = 1024;
const ENOUGH_BYTES: usize = 256 * 1024;

/// The replies of one session, made as they are asked for.
///
/// - An operation that the store answers at once takes no task; the others go on when the session
///   is dropped.
/// - Whatever has been answered goes into the next message.
/// - While too many operations run, nothing more is read.
pub(super) struct Session {
    requests: Streaming<SessionRequest>,
    store: Arc<dyn CacheStore>,
    shared: Arc<Shared>,
    /// Calls that were read and have not begun, and when they came.
    waiting: VecDeque<Call>,
    arrived: Option<Instant>,
    /// How many operations run, and where their replies come from.
    running: usize,
    replies: mpsc::Receiver<Reply>,
    reply_to: mpsc::Sender<Reply>,
    /// What goes into the next message.
    ready: Vec<Reply>,
    ready_bytes: usize,
    /// A reply that has no room in it.
    left_over: Option<(Reply, usize)>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    end: Option<End>,
    _present: Present,
}

/// Why nothing more is read.
enum End {
    /// The client has nothing more to ask.
    Done,
    /// The client broke the contract, or is gone.
    Failed(Status),
    /// The server shuts down.
    Closing,
    /// The end has been said.
    Over,
}

impl Session {
    pub(super) fn new(service: &Service, requests: Streaming<SessionRequest>) -> Self {
        let shared = &service.shared;
        let (reply_to, replies) = mpsc::channel(shared.limits.max_session_operations);
        Self {
            requests,
            store: Arc::clone(&service.store),
            shared: Arc::clone(shared),
            waiting: VecDeque::new(),
            arrived: None,
            running: 0,
            replies,
            reply_to,
            ready: Vec::new(),
            ready_bytes: 0,
            left_over: None,
            closing: Box::pin(shared.closing.clone().cancelled_owned()),
            end: None,
            _present: Present::session(),
        }
    }

    /// Takes what running operations have answered.
    fn collect(&mut self, context: &mut Context<'_>) {
        while !self.is_full() {
            let Poll::Ready(Some(reply)) = self.replies.poll_recv(context) else {
                break;
            };
            self.running -= 1;
            self.add(reply);
        }
    }

    /// Begins what has been read, and reads what may begin.
    fn begin(&mut self, context: &mut Context<'_>) {
        while !self.is_full() && self.running < self.shared.limits.max_session_operations {
            if let Some(call) = self.waiting.pop_front() {
                self.call(call);
            } else if self.end.is_some() || !self.read(context) {
                break;
            }
        }
    }

    /// Reads a message; `false` if there is none at present.
    fn read(&mut self, context: &mut Context<'_>) -> bool {
        if self.closing.as_mut().poll(context).is_ready() {
            self.end = Some(End::Closing);
            return false;
        }
        match self.requests.poll_next_unpin(context) {
            Poll::Ready(Some(Ok(request))) => {
                let has_limit = |call: &Call| call.timeout_milliseconds > 0;
                self.arrived = request.calls.iter().any(has_limit).then(Instant::now);
                self.shared
                    .instruments
                    .session_operations(request.calls.len());
                self.waiting = request.calls.into();
            }
            Poll::Ready(Some(Err(status))) => self.end = Some(End::Failed(status)),
            Poll::Ready(None) => self.end = Some(End::Done),
            Poll::Pending => return false,
        }
        true
    }

    fn call(&mut self, call: Call) {
        let id = call.id;
        if self.is_too_late(call.timeout_milliseconds) {
            return self.add(too_late(id));
        }
        let Some(operation) = call.operation else {
            let error = CachingError::internal(
                "the call has no operation, or one that this server does not know",
            );
            return self.add(reply(id, Err(error)));
        };
        let mut work = performing(operation, Arc::clone(&self.store));
        if let Some(outcome) = at_once(work.as_mut()) {
            return self.add(reply(id, outcome));
        }
        self.running += 1;
        let reply_to = self.reply_to.clone();
        self.shared.running.spawn(async move {
            let outcome = AssertUnwindSafe(work).catch_unwind().await;
            let outcome = outcome.unwrap_or_else(|panic| Err(panicked(&*panic)));
            // There is room for every running operation; only the session may be gone.
            let _ = reply_to.try_send(reply(id, outcome));
        });
    }

    fn is_too_late(&self, timeout_milliseconds: u32) -> bool {
        let limit = Duration::from_millis(timeout_milliseconds.into());
        timeout_milliseconds > 0
            && self
                .arrived
                .is_some_and(|arrived| arrived.elapsed() >= limit)
    }

    fn is_full(&self) -> bool {
        self.left_over.is_some()
            || self.ready.len() >= REPLIES_PER_MESSAGE
            || self.ready_bytes >= ENOUGH_BYTES
    }

    /// Puts a reply into the next message, or into the one after it.
    fn add(&mut self, reply: Reply) {
        let limit = self.shared.limits.max_message_bytes;
        let (mut reply, mut bytes) = (reply, 0);
        for _ in 0..2 {
            bytes = in_message(&reply);
            if bytes <= limit {
                break;
            }
            reply = self::reply(reply.id, Err(too_large("answer", bytes, limit)));
        }
        if self.ready_bytes + bytes > limit && !self.ready.is_empty() {
            self.left_over = Some((reply, bytes));
        } else {
            self.ready_bytes += bytes;
            self.ready.push(reply);
        }
    }

    fn message(&mut self) -> SessionResponse {
        let replies = std::mem::take(&mut self.ready);
        self.ready_bytes = 0;
        if let Some((reply, bytes)) = self.left_over.take() {
            self.ready.push(reply);
            self.ready_bytes = bytes;
        }
        SessionResponse { replies }
    }

    /// Says how the session ends, once everything that has begun is answered.
    fn finish(&mut self) -> Poll<Option<Result<SessionResponse, Status>>> {
        if self.running > 0 {
            return Poll::Pending;
        }
        let last = match self.end.replace(End::Over) {
            Some(End::Done | End::Over) => None,
            Some(End::Failed(status)) => Some(Err(status)),
            Some(End::Closing) => {
                let error =
                    CachingError::unavailable("the server shuts down; open another session");
                Some(Err(to_status(&error.certainly_not_sent())))
            }
            None => {
                self.end = None;
                return Poll::Pending;
            }
        };
        Poll::Ready(last)
    }
}

impl Stream for Session {
    type Item = Result<SessionResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let session = &mut *self;
        session.collect(context);
        session.begin(context);
        if !session.ready.is_empty() {
            return Poll::Ready(Some(Ok(session.message())));
        }
        session.finish()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("store", &self.store)
            .field("waiting", &self.waiting.len())
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

fn reply(id: u64, outcome: Result<Outcome>) -> Reply {
    let result = outcome.unwrap_or_else(|error| reply::Result::Failure(to_failure(&error)));
    Reply {
        id,
        result: Some(result),
    }
}

fn too_late(id: u64) -> Reply {
    let mut failure = to_failure(&not_begun());
    failure.status = Code::DeadlineExceeded.into();
    Reply {
        id,
        result: Some(reply::Result::Failure(failure)),
    }
}

/// What a reply takes in a message, with its tag and its length.
fn in_message(reply: &Reply) -> usize {
    const TAG_AND_LENGTH: usize = 6;
    reply.encoded_len() + TAG_AND_LENGTH
}
