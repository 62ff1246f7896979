//! A request's body, refused where it is too large or comes too late.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use caching_abstractions::{CachingError, ErrorCode};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tonic::{Code, Status};

use super::metrics::Refusal;
use crate::wire::error::to_status;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The flag and the length before each message of gRPC.
const HEADER_BYTES: usize = 5;

/// A body of gRPC messages.
///
/// - A message that is announced as larger than the limit ends it before anything of the message
///   is kept.
/// - Once the time is over it ends too: an operation that has not begun is not begun.
#[derive(Debug)]
pub(super) struct Guarded<B> {
    body: B,
    limit: usize,
    deadline: Option<Instant>,
    header: [u8; HEADER_BYTES],
    /// How much of the header has been read.
    known: usize,
    /// How much of the message is still to come.
    left: usize,
}

impl<B> Guarded<B> {
    pub(super) fn new(body: B, limit: usize, deadline: Option<Instant>) -> Self {
        Self {
            body,
            limit,
            deadline,
            header: [0; HEADER_BYTES],
            known: 0,
            left: 0,
        }
    }

    /// Follows the messages through `data`.
    fn follow(&mut self, mut data: &[u8]) -> Result<(), Status> {
        while !data.is_empty() {
            if self.left > 0 {
                let passed = self.left.min(data.len());
                self.left -= passed;
                data = &data[passed..];
                continue;
            }
            self.header[self.known] = data[0];
            self.known += 1;
            data = &data[1..];
            if self.known == HEADER_BYTES {
                let [_, length @ ..] = self.header;
                let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
                if length > self.limit {
                    Refusal::TooLarge.count();
                    return Err(to_status(&too_large("request", length, self.limit)));
                }
                (self.known, self.left) = (0, length);
            }
        }
        Ok(())
    }
}

impl<B> Body for Guarded<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let next = ready!(Pin::new(&mut self.body).poll_frame(context));
        let frame = match next {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        if self.deadline.is_some_and(|end| Instant::now() >= end) {
            return Poll::Ready(Some(Err(Box::new(too_late()))));
        }
        let followed = match frame.data_ref() {
            Some(data) => self.follow(data),
            None => Ok(()),
        };
        Poll::Ready(Some(match followed {
            Ok(()) => Ok(frame),
            Err(status) => Err(Box::new(status)),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The error for a message beyond the limit.
pub(super) fn too_large(what: &str, bytes: usize, limit: usize) -> CachingError {
    CachingError::new(
        ErrorCode::StoreFull,
        format!(
            "a {what} of {bytes} bytes is larger than the {limit} bytes a message may have; \
             send less at a time, or raise `max_message_bytes` of server and client"
        ),
    )
    .with_parameter("bytes", bytes.to_string())
    .with_parameter("limit", limit.to_string())
}

/// The status for an operation that was not begun because its time was over.
pub(super) fn too_late() -> Status {
    let error = not_begun();
    let status = to_status(&error);
    Status::with_details(
        Code::DeadlineExceeded,
        status.message(),
        Bytes::copy_from_slice(status.details()),
    )
}

/// The error in [`too_late`].
pub(super) fn not_begun() -> CachingError {
    CachingError::unavailable("the call's time was over before the operation began")
        .certainly_not_sent()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend(u32::try_from(length).unwrap().to_be_bytes());
        bytes.resize(HEADER_BYTES + length, 7);
        bytes
    }

    #[test]
    fn messages_within_the_limit_pass_however_they_are_cut() {
        let bytes = [message(3), message(0), message(10)].concat();
        for cut in 1..=bytes.len() {
            let mut guarded = Guarded::new((), 10, None);
            for piece in bytes.chunks(cut) {
                guarded.follow(piece).unwrap();
            }
            assert_eq!((guarded.known, guarded.left), (0, 0), "cut {cut}");
        }
    }

    #[test]
    fn a_message_beyond_the_limit_is_refused_at_its_header() {
        let bytes = [message(3), message(11)[..HEADER_BYTES].to_vec()].concat();
        for cut in 1..=bytes.len() {
            let mut guarded = Guarded::new((), 10, None);
            let refused = bytes
                .chunks(cut)
                .find_map(|piece| guarded.follow(piece).err());
            let status = refused.unwrap();
            assert_eq!(status.code(), Code::ResourceExhausted);
            assert!(status.message().contains("11 bytes"), "{status}");
        }
    }
}
