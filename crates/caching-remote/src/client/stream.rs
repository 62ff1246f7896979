//! A call on a stream of its own: unary ones, and those that a server answers with many messages.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use caching_abstractions::{CachingError, ErrorCode};
use h2::client::SendRequest;
use h2::{Reason, RecvStream, SendStream};
use tonic::Code;

use crate::client::error::{Attempt, Cause, Fault};
use crate::client::frames::{Frames, Unreadable};
use crate::client::head::Head;
use crate::client::queue::HEAD;
use crate::client::status;

/// What comes in. Dropping it ends the call.
pub(crate) struct Incoming {
    outgoing: Outgoing,
    body: RecvStream,
    frames: Frames,
}

/// The way out, which is closed for good with this.
struct Outgoing(SendStream<Bytes>);

impl Drop for Outgoing {
    fn drop(&mut self) {
        // What is still to be sent is thrown away (S5). After the end it has no effect.
        self.0.send_reset(Reason::CANCEL);
    }
}

/// A message with its head, written by `encode`.
pub(crate) fn message(length: usize, encode: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut message = BytesMut::with_capacity(HEAD + length);
    message.put_u8(0);
    // It was measured against the longest that is allowed, which fits.
    message.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    encode(&mut message);
    message.freeze()
}

impl Incoming {
    /// Sends `message` to `path` and waits for the head of the answer.
    pub(crate) async fn open(
        sender: &SendRequest<Bytes>,
        head: &Head,
        path: &'static str,
        message: Bytes,
        timeout: Option<Duration>,
        longest: usize,
    ) -> Attempt<Self> {
        let ready = sender.clone().ready().await;
        let mut sender = ready.map_err(|error| Fault::NotSent((&error).into()))?;
        let request = head.request(path, timeout);
        let (response, stream) = sender
            .send_request(request, false)
            .map_err(|error| Fault::NotSent((&error).into()))?;
        let mut outgoing = Outgoing(stream);
        let sent = outgoing.0.send_data(message, true);
        sent.map_err(|error| Fault::of_stream(&error))?;
        let response = response.await.map_err(|error| Fault::of_stream(&error))?;
        if let Some(status) = status::of_head(&response) {
            return Err(match status.code() {
                Code::Ok => Fault::Unknown(Cause::new("it answered without a message")),
                _ => Fault::of_status(&status),
            });
        }
        Ok(Self {
            outgoing,
            body: response.into_body(),
            frames: Frames::new(longest),
        })
    }

    /// The next message; none at the end of a call that succeeded.
    pub(crate) async fn next(&mut self) -> Attempt<Option<Bytes>> {
        loop {
            if let Some(message) = self.next_frame()? {
                return Ok(Some(message));
            }
            match self.body.data().await {
                Some(Ok(piece)) => {
                    let _ = self.body.flow_control().release_capacity(piece.len());
                    self.frames.push(piece);
                }
                Some(Err(error)) => return Err(Fault::of_stream(&error)),
                None => break,
            }
        }
        let trailers = self.body.trailers().await;
        let trailers = trailers.map_err(|error| Fault::of_stream(&error))?;
        let status = status::of_trailers(trailers.as_ref());
        match status.code() {
            Code::Ok if self.frames.is_empty() => Ok(None),
            Code::Ok => Err(Fault::Unknown(Cause::new("its answer is cut off"))),
            _ => Err(Fault::of_status(&status)),
        }
    }

    fn next_frame(&mut self) -> Attempt<Option<Bytes>> {
        let longest = self.frames.longest();
        let message = self.frames.next();
        message.map_err(|what| unreadable(what, longest))
    }

    /// The one message of a unary call.
    pub(crate) async fn only(mut self) -> Attempt<Bytes> {
        let message = self.next().await?;
        let message = message.ok_or_else(|| Fault::Unknown(Cause::new("it has no message")))?;
        // The status comes behind it, and may still be an error.
        match self.next().await? {
            None => Ok(message),
            Some(_) => Err(Fault::Unknown(Cause::new("its answer has two messages"))),
        }
    }
}

/// What a message that cannot be read means for those who wait for it.
pub(crate) fn unreadable(what: Unreadable, longest: usize) -> Fault {
    match what {
        Unreadable::TooLong(length) => Fault::Refused(too_long("an answer", length, longest)),
        Unreadable::Compressed => Fault::Unknown(Cause::new(
            "its answer is compressed, which was not asked for",
        )),
    }
}

/// `CACHING_UNAVAILABLE_002` for a message that is longer than the setting allows. Servers name
/// the same parameters.
pub(crate) fn too_long(what: &str, length: usize, longest: usize) -> CachingError {
    let detail = format!(
        "{what} of {length} bytes is longer than XiHan:Caching:Remote:MaxMessageBytes ({longest}) \
         allows; send less at a time, or raise it here and at the server"
    );
    CachingError::store_full(detail)
        .with_parameter("bytes", length.to_string())
        .with_parameter("limit", longest.to_string())
}

/// Whether a message was too long, for either side.
pub(crate) fn is_too_long(fault: &Fault) -> bool {
    let is_full = |error: &CachingError| error.code() == ErrorCode::StoreFull;
    matches!(fault, Fault::Refused(error) if is_full(error) && error.parameter("limit").is_some())
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming")
            .field("stream", &self.outgoing.0.stream_id())
            .finish_non_exhaustive()
    }
}
