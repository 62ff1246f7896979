//! The task of one connection: everything that is read, written or timed happens in its turns.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::ErrorCode;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep};
use tonic::Code;

use crate::client::answers::Answers;
use crate::client::error::{Cause, Fault};
use crate::client::phase::{Ending, Shared, Why};
use crate::client::pulse::Pulse;
use crate::client::reply::Answer;
use crate::client::status;

/// One connection, and the session on it if there is one.
pub(crate) struct Driver<T> {
    io: h2::client::Connection<T, Bytes>,
    /// Tells when the server takes no more calls.
    sender: SendRequest<Bytes>,
    session: Option<Stream>,
    shared: Arc<Shared>,
    pulse: Pulse,
    alarm: Pin<Box<Sleep>>,
    has_made_way: bool,
    has_worked: bool,
    is_draining: bool,
    wakers: Vec<Waker>,
}

/// Both directions of a session.
pub(crate) struct Stream {
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    send: SendStream<Bytes>,
    /// The rest of a message that has begun to be sent.
    outgoing: Bytes,
    reader: Answers,
    answers: Vec<(u64, Answer)>,
}

impl Stream {
    pub(crate) fn new(response: ResponseFuture, send: SendStream<Bytes>, longest: usize) -> Self {
        Self {
            response: Some(response),
            body: None,
            send,
            outgoing: Bytes::new(),
            reader: Answers::new(longest),
            answers: Vec::new(),
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Driver<T> {
    pub(crate) fn new(
        mut io: h2::client::Connection<T, Bytes>,
        sender: SendRequest<Bytes>,
        session: Option<Stream>,
        shared: Arc<Shared>,
        limit: Duration,
    ) -> Self {
        let pulse = Pulse::new(io.ping_pong(), limit);
        Self {
            io,
            sender,
            session,
            shared,
            alarm: Box::pin(tokio::time::sleep_until(pulse.due())),
            pulse,
            has_made_way: false,
            has_worked: false,
            is_draining: false,
            wakers: Vec::new(),
        }
    }

    /// Runs the connection until it is over.
    pub(crate) async fn run(mut self) {
        let ending = std::future::poll_fn(|context| self.poll(context)).await;
        self.shared.end(ending);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ending> {
        // Whoever was woken together with the first caller is to get into the same message.
        if !self.has_made_way && self.session.is_some() && self.shared.session.has_calls() {
            self.has_made_way = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.has_made_way = false;
        match self.turns(context) {
            Ok(()) => Poll::Pending,
            Err(ending) => Poll::Ready(ending),
        }
    }

    /// Reads and writes until there is nothing left to do for now.
    fn turns(&mut self, context: &mut Context<'_>) -> Result<(), Ending> {
        loop {
            self.drive(context)?;
            self.read(context)?;
            self.notice_going_away(context);
            let (has_sent, is_blocked) = self.write(context)?;
            if has_sent {
                self.drive(context)?;
            }
            self.tick(context)?;
            let wants_calls = self.session.is_some() && !is_blocked;
            let alarm = self.alarm.deadline();
            let parked = self
                .shared
                .session
                .park(context.waker(), wants_calls, alarm);
            if parked.alarm < alarm {
                self.alarm.as_mut().reset(parked.alarm);
                let _ = self.alarm.as_mut().poll(context);
            }
            if !parked.has_calls {
                return Ok(());
            }
        }
    }

    fn drive(&mut self, context: &mut Context<'_>) -> Result<(), Ending> {
        let Poll::Ready(result) = Pin::new(&mut self.io).poll(context) else {
            return Ok(());
        };
        // What came in last may say more than the end of the connection does.
        self.read(context)?;
        Err(match result {
            Ok(()) => Ending::broke(Cause::new("the server closed the connection")),
            Err(error) => Ending {
                is_about_pings: error.reason() == Some(Reason::ENHANCE_YOUR_CALM),
                ..Ending::broke((&error).into())
            },
        })
    }

    /// Hands out what the session was answered.
    fn read(&mut self, context: &mut Context<'_>) -> Result<(), Ending> {
        let Some(stream) = &mut self.session else {
            return Ok(());
        };
        let result = stream.read(context, &mut self.pulse);
        if !self.has_worked && stream.body.is_some() {
            self.has_worked = true;
            self.shared.works();
        }
        if !stream.answers.is_empty() {
            let answers = stream.answers.drain(..);
            self.shared.session.deliver(answers, &mut self.wakers);
            self.wakers.drain(..).for_each(Waker::wake);
        }
        match result {
            Poll::Pending => Ok(()),
            Poll::Ready(ending) => Err(ending),
        }
    }

    /// Sends what waits, as far as the server takes it.
    fn write(&mut self, context: &mut Context<'_>) -> Result<(bool, bool), Ending> {
        let Some(stream) = &mut self.session else {
            return Ok((false, false));
        };
        let mut has_sent = false;
        loop {
            if stream.outgoing.is_empty() && !self.shared.session.has_calls() {
                return Ok((has_sent, false));
            }
            stream.send.reserve_capacity(stream.outgoing.len().max(1));
            let mut room = stream.send.capacity();
            if room == 0 {
                room = match stream.send.poll_capacity(context) {
                    Poll::Ready(Some(Ok(room))) => room,
                    Poll::Ready(Some(Err(error))) => return Err(Ending::of_stream(&error)),
                    // Why it is closed is about to be read.
                    Poll::Ready(None) | Poll::Pending => return Ok((has_sent, true)),
                };
            }
            if stream.outgoing.is_empty() {
                // Only now: as long as there is no room, calls can be taken back (S5).
                match self.shared.session.next_message() {
                    Some(message) => stream.outgoing = message,
                    None => continue,
                }
                stream.send.reserve_capacity(stream.outgoing.len());
                room = stream.send.capacity().max(room);
            }
            let length = room.min(stream.outgoing.len());
            let piece = stream.outgoing.split_to(length);
            let sent = stream.send.send_data(piece, false);
            sent.map_err(|error| Ending::of_stream(&error))?;
            has_sent = true;
        }
    }

    /// A server that goes away answers what it has, and gets nothing new.
    fn notice_going_away(&mut self, context: &mut Context<'_>) {
        if self.is_draining {
            return;
        }
        if let Poll::Ready(Err(error)) = self.sender.poll_ready(context) {
            self.is_draining = true;
            self.shared.drain(&(&error).into());
        }
    }

    /// Does what is due: ends calls, and asks for a sign of life.
    fn tick(&mut self, context: &mut Context<'_>) -> Result<(), Ending> {
        self.pulse.listen(context);
        while self.alarm.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            let next = self.shared.session.expire(now, &mut self.wakers);
            self.wakers.drain(..).for_each(Waker::wake);
            let has_reason = !self.shared.is_quiet || next.is_some();
            self.pulse.tick(now, has_reason).map_err(Ending::broke)?;
            let due = self.pulse.due();
            let alarm = next.map_or(due, |next| next.min(due));
            self.alarm.as_mut().reset(alarm);
            self.shared.session.rearm(alarm);
            self.pulse.listen(context);
        }
        Ok(())
    }
}

impl<T> Drop for Driver<T> {
    fn drop(&mut self) {
        // Its task was stopped: nothing is sent any more, and nobody is to wait for an answer.
        let cause = Cause::new("the connection was closed");
        self.shared.end(Ending::broke(cause));
    }
}

impl Stream {
    /// Reads what came. It is ready when the session is over.
    fn read(&mut self, context: &mut Context<'_>, pulse: &mut Pulse) -> Poll<Ending> {
        if let Some(response) = &mut self.response {
            let response = match ready!(Pin::new(response).poll(context)) {
                Ok(response) => response,
                Err(error) => return Poll::Ready(Ending::of_stream(&error)),
            };
            self.response = None;
            if let Some(status) = status::of_head(&response) {
                // The server did not begin with the session.
                return Poll::Ready(Ending {
                    has_begun: false,
                    ..Ending::of_status(&status)
                });
            }
            self.body = Some(response.into_body());
        }
        let Some(body) = &mut self.body else {
            return Poll::Pending;
        };
        loop {
            let piece = match ready!(body.poll_data(context)) {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Poll::Ready(Ending::of_stream(&error)),
                None => {
                    let ending = match ready!(body.poll_trailers(context)) {
                        Ok(trailers) => Ending::of_status(&status::of_trailers(trailers.as_ref())),
                        Err(error) => Ending::of_stream(&error),
                    };
                    return Poll::Ready(ending);
                }
            };
            pulse.heard(Instant::now());
            let _ = body.flow_control().release_capacity(piece.len());
            if let Err(cause) = self.reader.push(piece, &mut self.answers) {
                return Poll::Ready(Ending::broke(cause));
            }
        }
    }
}

impl Ending {
    /// The stream of the session is over.
    fn of_stream(error: &h2::Error) -> Self {
        match Fault::of_stream(error) {
            Fault::NotSent(cause) => Self {
                has_begun: false,
                ..Self::broke(cause)
            },
            _ => Self::broke(error.into()),
        }
    }

    fn of_status(status: &tonic::Status) -> Self {
        let why = match status.code() {
            Code::Ok => Why::Broke(Cause::new("the server ended the session")),
            Code::Unimplemented => Why::NoSession,
            Code::Unauthenticated | Code::PermissionDenied => {
                Why::Refused(crate::wire::error::from_status(status))
            }
            code => {
                let said = status.message();
                let text = format!("the server ended the session with {code:?}: {said}");
                Why::Broke(Cause::new(text))
            }
        };
        // Our servers answer everything that they began with before they end a session, and say
        // why: they shut down, or a message is too long for them.
        let error = crate::wire::error::from_status(status);
        let is_clean = match error.code() {
            ErrorCode::StoreUnavailable => !error.may_have_been_applied(),
            code => code == ErrorCode::StoreFull,
        };
        let longest = error
            .parameter("limit")
            .and_then(|limit| limit.parse().ok());
        Self {
            why,
            has_begun: !is_clean,
            is_about_pings: false,
            longest,
        }
    }
}
