//! What stands under an idempotency key: a marker while the call runs, its record afterwards
//! (P5, P9).

mod wire;

pub(crate) use wire::Marker;

use std::fmt;

use bytes::Bytes;

use crate::operation::Fingerprint;
use crate::outcome::{Outcome, Success};
use crate::problem::Failure;
use crate::rendering::Rendering;

/// The identity of one execution; it makes its marker and its record unlike any other's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ExecutionToken([u8; ExecutionToken::BYTES]);

impl ExecutionToken {
    const BYTES: usize = 16;

    /// A fresh token of 128 random bits.
    pub(crate) fn generate() -> Self {
        Self(rand::random())
    }
}

impl fmt::Debug for ExecutionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExecutionToken(***)")
    }
}

/// What is stored under an idempotency key.
///
/// The format is versioned and binary: a header of four bytes and the token, then for a completed
/// call its [`CompletedCall`]. The marker and the record without anything have the same length, so
/// that a full store takes the latter in the room of the former (P14).
#[derive(Clone, Debug)]
pub enum IdempotencyRecord {
    /// The call is being processed.
    InProgress(ExecutionToken),
    /// The call is done.
    Completed(Box<CompletedCall>),
    /// The call is done, and nothing else could be kept of it, or it is written in a format that
    /// this version does not know (P11, P14).
    Opaque,
}

/// What is kept of a call that is done.
#[derive(Clone, Debug)]
pub struct CompletedCall {
    /// The operation; none for a plain call.
    pub operation: Option<String>,
    pub(crate) fingerprint: Option<Fingerprint>,
    /// How it ended; none where the response was too large or streamed (P17).
    pub result: Option<Result<Success, Failure>>,
    /// The answer of the transport that ran it.
    pub rendering: Option<Rendering>,
}

impl IdempotencyRecord {
    /// The bytes of the marker of a call in progress.
    pub(crate) fn marker(token: ExecutionToken) -> Marker {
        wire::bare(wire::State::InProgress, token)
    }

    /// The bytes of a record that says nothing but that the call is done; as long as the marker.
    pub(crate) fn opaque(token: ExecutionToken) -> Bytes {
        Bytes::copy_from_slice(&wire::bare(wire::State::Opaque, token))
    }

    /// The bytes of the record of a call that is done.
    ///
    /// Beyond `limit` bytes of response and rendering, both are left out (P17).
    pub(crate) fn completed(
        token: ExecutionToken,
        operation: Option<&str>,
        fingerprint: Option<Fingerprint>,
        outcome: &Outcome,
        limit: u64,
    ) -> Bytes {
        wire::completed(token, operation, fingerprint, outcome, limit)
    }

    /// Whether these are the bytes of a record, with or without anything, of this execution.
    pub(crate) fn is_record_of(token: ExecutionToken, bytes: &[u8]) -> bool {
        wire::is_record_of(token, bytes)
    }

    /// Reads what stands under a key; never fails: what it cannot read is [`Self::Opaque`].
    pub fn decode(bytes: &Bytes) -> Self {
        wire::decode(bytes)
    }
}
