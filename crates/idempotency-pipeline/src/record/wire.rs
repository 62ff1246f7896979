//! The bytes of markers and records.

use std::borrow::Cow;

use bytes::{BufMut, Bytes};
use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

use super::{CompletedCall, ExecutionToken, IdempotencyRecord};
use crate::operation::Fingerprint;
use crate::outcome::{Outcome, Success, SuccessStatus};
use crate::problem::Failure;
use crate::rendering::Rendering;

/// `XI`, then the format's version, then the state.
const MAGIC: [u8; 2] = *b"XI";
const VERSION: u8 = 1;
const HEADER: usize = MAGIC.len() + 2;
const BARE: usize = HEADER + ExecutionToken::BYTES;

#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum State {
    InProgress = b'P',
    Completed = b'C',
    Opaque = b'O',
}

/// A completed call as it is stored; every field borrows, so that reading copies no body.
#[derive(Serialize, Deserialize)]
struct Call<'a> {
    operation: Option<&'a str>,
    fingerprint: Option<[u8; 32]>,
    #[serde(borrow)]
    result: Option<End<'a>>,
    rendering: Option<Answer<'a>>,
}

#[derive(Serialize, Deserialize)]
enum End<'a> {
    Success {
        status: u8,
        #[serde(borrow, with = "serde_bytes")]
        response: Option<&'a [u8]>,
        location: Option<&'a str>,
    },
    #[serde(borrow)]
    Failure(Cow<'a, Failure>),
}

#[derive(Serialize, Deserialize)]
struct Answer<'a> {
    transport: &'a str,
    status: u16,
    #[serde(borrow)]
    headers: Vec<Header<'a>>,
    /// None where the body is the response, byte for byte.
    #[serde(borrow, with = "serde_bytes")]
    body: Option<&'a [u8]>,
}

#[derive(Serialize, Deserialize)]
struct Header<'a> {
    name: &'a str,
    /// None where the value is the location, byte for byte.
    #[serde(borrow, with = "serde_bytes")]
    value: Option<&'a [u8]>,
}

/// What stands under a key while its call runs; small enough to be copied.
pub(crate) type Marker = [u8; BARE];

pub(super) fn bare(state: State, token: ExecutionToken) -> Marker {
    let mut bytes = [0; BARE];
    put_header(&mut &mut bytes[..], state, token);
    bytes
}

fn put_header(bytes: &mut impl BufMut, state: State, token: ExecutionToken) {
    bytes.put_slice(&MAGIC);
    bytes.put_u8(VERSION);
    bytes.put_u8(state as u8);
    bytes.put_slice(&token.0);
}

pub(super) fn is_record_of(token: ExecutionToken, bytes: &[u8]) -> bool {
    let (completed, opaque) = (bare(State::Completed, token), bare(State::Opaque, token));
    bytes.starts_with(&completed) || bytes.starts_with(&opaque)
}

pub(super) fn completed(
    token: ExecutionToken,
    operation: Option<&str>,
    fingerprint: Option<Fingerprint>,
    outcome: &Outcome,
    limit: u64,
) -> Bytes {
    let kept = size(outcome) <= limit;
    let call = Call {
        operation,
        fingerprint: fingerprint.map(|fingerprint| fingerprint.as_bytes()),
        result: kept.then(|| end(outcome.result())),
        rendering: outcome
            .rendering()
            .filter(|_| kept)
            .map(|rendering| answer(rendering, outcome.result().ok())),
    };
    let mut bytes = Vec::with_capacity(BARE + call.room());
    put_header(&mut bytes, State::Completed, token);
    match postcard::serialize_with_flavor(&call, Appender(bytes)) {
        Ok(record) => record,
        Err(error) => {
            // Not reachable with these types; the call must be recorded all the same.
            tracing::error!(%error, "a record could not be encoded");
            Bytes::copy_from_slice(&bare(State::Opaque, token))
        }
    }
}

impl Call<'_> {
    /// At least as many bytes as it takes, unless it is a failure; few more.
    fn room(&self) -> usize {
        /// Tags, lengths and numbers.
        const FRAME: usize = 32;
        let end = match &self.result {
            Some(End::Success {
                response, location, ..
            }) => response.map_or(0, <[u8]>::len) + location.map_or(0, str::len),
            _ => 0,
        };
        let answer = self.rendering.as_ref().map_or(0, |answer| {
            let headers = answer
                .headers
                .iter()
                .map(|header| header.name.len() + header.value.map_or(0, <[u8]>::len) + 3);
            answer.transport.len() + headers.sum::<usize>() + answer.body.map_or(0, <[u8]>::len)
        });
        let fingerprint = self.fingerprint.map_or(0, |bytes| bytes.len());
        FRAME + self.operation.map_or(0, str::len) + fingerprint + end + answer
    }
}

fn answer<'a>(rendering: &'a Rendering, success: Option<&'a Success>) -> Answer<'a> {
    let response = success.and_then(|success| success.response.as_ref());
    let location = success.and_then(|success| success.location.as_deref());
    let location = location.map(str::as_bytes);
    let header = |(name, value): &'a (Cow<'static, str>, Bytes)| Header {
        name,
        value: (location != Some(value)).then_some(value),
    };
    Answer {
        transport: &rendering.transport,
        status: rendering.status,
        headers: rendering.headers.iter().map(header).collect(),
        body: (response != Some(&rendering.body)).then_some(&rendering.body),
    }
}

fn end<'a>(result: Result<&'a Success, &'a Failure>) -> End<'a> {
    match result {
        Ok(success) => End::Success {
            status: status_to_wire(success.status),
            response: success.response.as_deref(),
            location: success.location.as_deref(),
        },
        Err(failure) => End::Failure(Cow::Borrowed(failure)),
    }
}

/// What counts against `MaxRecordedResponseBytes`.
fn size(outcome: &Outcome) -> u64 {
    let response = match outcome.result() {
        Ok(success) => success.response.as_ref().map_or(0, Bytes::len),
        Err(failure) => {
            let texts = failure
                .parameters()
                .map(|(name, value)| name.len() + value.len());
            texts.sum::<usize>() + failure.detail().map_or(0, str::len)
        }
    };
    let rendering = outcome
        .rendering()
        .map_or(0, |rendering| rendering.body.len());
    response.max(rendering) as u64
}

pub(super) fn decode(bytes: &Bytes) -> IdempotencyRecord {
    let Some((header, rest)) = bytes.split_at_checked(BARE) else {
        return IdempotencyRecord::Opaque;
    };
    if header[..2] != MAGIC {
        return IdempotencyRecord::Opaque;
    }
    match (header[2], header[3]) {
        // A marker says so in every version: a repeat may try again, whichever instance it reaches.
        (_, b'P') => {
            let mut token = [0; ExecutionToken::BYTES];
            token.copy_from_slice(&header[HEADER..]);
            IdempotencyRecord::InProgress(ExecutionToken(token))
        }
        (VERSION, b'C') => match postcard::from_bytes::<Call<'_>>(rest) {
            Ok(call) => call
                .into_owned(bytes)
                .map_or(IdempotencyRecord::Opaque, |call| {
                    IdempotencyRecord::Completed(Box::new(call))
                }),
            Err(_) => IdempotencyRecord::Opaque,
        },
        _ => IdempotencyRecord::Opaque,
    }
}

impl Call<'_> {
    /// Bodies stay slices of `record`; none if the record names a status of a newer version, or
    /// refers to what is not in it.
    fn into_owned(self, record: &Bytes) -> Option<CompletedCall> {
        let location = match &self.result {
            Some(End::Success { location, .. }) => location.map(str::as_bytes),
            _ => None,
        };
        let result = match self.result {
            None => None,
            Some(End::Failure(failure)) => Some(Err(failure.into_owned())),
            Some(End::Success {
                status,
                response,
                location,
            }) => Some(Ok(Success {
                response: response.map(|response| record.slice_ref(response)),
                status: status_from_wire(status)?,
                location: location.map(str::to_owned),
            })),
        };
        let response = match &result {
            Some(Ok(success)) => success.response.clone(),
            _ => None,
        };
        let rendering = match self.rendering {
            None => None,
            Some(answer) => Some(Rendering {
                transport: transport_name(answer.transport),
                status: answer.status,
                headers: answer
                    .headers
                    .iter()
                    .map(|header| {
                        let value = record.slice_ref(header.value.or(location)?);
                        Some((header_name(header.name), value))
                    })
                    .collect::<Option<_>>()?,
                body: match answer.body {
                    Some(body) => record.slice_ref(body),
                    None => response?,
                },
            }),
        };
        Some(CompletedCall {
            operation: self.operation.map(str::to_owned),
            fingerprint: self.fingerprint.map(Fingerprint::from_bytes),
            result,
            rendering,
        })
    }
}

fn transport_name(name: &str) -> Cow<'static, str> {
    known(name, &["http", "grpc", "mcp"])
}

fn header_name(name: &str) -> Cow<'static, str> {
    known(
        name,
        &[
            "content-type",
            "location",
            "content-language",
            "retry-after",
            "etag",
        ],
    )
}

/// The usual names cost no allocation.
fn known(name: &str, names: &[&'static str]) -> Cow<'static, str> {
    match names.iter().find(|known| **known == name) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(name.to_owned()),
    }
}

const fn status_to_wire(status: SuccessStatus) -> u8 {
    match status {
        SuccessStatus::Done => 0,
        SuccessStatus::Created => 1,
        SuccessStatus::Accepted => 2,
    }
}

const fn status_from_wire(status: u8) -> Option<SuccessStatus> {
    match status {
        0 => Some(SuccessStatus::Done),
        1 => Some(SuccessStatus::Created),
        2 => Some(SuccessStatus::Accepted),
        _ => None,
    }
}

/// Lets postcard append to a vector that begins with the header, whole slices at a time.
struct Appender(Vec<u8>);

impl Flavor for Appender {
    type Output = Bytes;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Bytes> {
        Ok(self.0.into())
    }
}

#[cfg(test)]
mod tests;
