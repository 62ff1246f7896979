//! Answers as they come off the wire.

use std::time::Duration;

use bytes::{Buf, Bytes};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost::{DecodeError, Message};

use crate::client::error::{Attempt, Cause, Fault};
use crate::client::request::Kind;
use crate::proto::{self, reply};
use crate::wire;

/// What was answered to one operation.
pub(crate) type Answer = reply::Result;

/// A value shorter than this is copied, so that it does not keep a whole message in memory.
const COPIED: usize = 16 * 1024;

/// A message that is none of the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Garbled;

impl From<DecodeError> for Garbled {
    fn from(_: DecodeError) -> Self {
        Self
    }
}

/// The answer to a unary call of `kind`.
pub(crate) fn of_message(kind: Kind, message: Bytes) -> Result<Answer, Garbled> {
    Ok(match kind {
        Kind::Get => Answer::Get(Message::decode(message)?),
        Kind::GetMany => Answer::GetMany(Message::decode(message)?),
        Kind::Set => Answer::Set(Message::decode(message)?),
        Kind::SetMany => Answer::SetMany(Message::decode(message)?),
        Kind::TryAdd => Answer::TryAdd(Message::decode(message)?),
        Kind::GetOrAdd => Answer::GetOrAdd(Message::decode(message)?),
        Kind::TryReplace => Answer::TryReplace(Message::decode(message)?),
        Kind::TryRemove => Answer::TryRemove(Message::decode(message)?),
        Kind::TryExtend => Answer::TryExtend(Message::decode(message)?),
        Kind::TryLease => Answer::TryLease(Message::decode(message)?),
        Kind::TryRelay => Answer::TryRelay(Message::decode(message)?),
        Kind::Release => Answer::Release(Message::decode(message)?),
        Kind::Remove => Answer::Remove(Message::decode(message)?),
        Kind::RemoveMany => Answer::RemoveMany(Message::decode(message)?),
        Kind::Increment => Answer::Increment(Message::decode(message)?),
        Kind::TimeToLive => Answer::TimeToLive(Message::decode(message)?),
        Kind::Ping => Answer::Ping(Message::decode(message)?),
    })
}

/// The next answer of a session's message; none at its end.
pub(crate) fn next(message: &mut Bytes) -> Result<Option<(u64, Answer)>, Garbled> {
    while message.has_remaining() {
        let (field, wire_type) = decode_key(message)?;
        if (field, wire_type) != (1, WireType::LengthDelimited) {
            skip_field(wire_type, field, message, DecodeContext::default())?;
            continue;
        }
        let length = usize::try_from(decode_varint(message)?).unwrap_or(usize::MAX);
        if length > message.len() {
            return Err(Garbled);
        }
        let reply = proto::Reply::decode(message.split_to(length))?;
        // Kinds of answers that are not known belong to calls that were not made.
        if let Some(answer) = reply.result {
            return Ok(Some((reply.id, answer)));
        }
    }
    Ok(None)
}

/// Whether an answer is one to an operation of `kind`. A failure is one to any.
///
/// What a server mixes up must not be taken for a success: the release of one lock is not the
/// lease of another.
pub(crate) fn fits(kind: Kind, answer: &Answer) -> bool {
    match answer {
        Answer::Failure(_) => true,
        Answer::Get(_) => kind == Kind::Get,
        Answer::GetMany(_) => kind == Kind::GetMany,
        Answer::Set(_) => kind == Kind::Set,
        Answer::SetMany(_) => kind == Kind::SetMany,
        Answer::TryAdd(_) => kind == Kind::TryAdd,
        Answer::GetOrAdd(_) => kind == Kind::GetOrAdd,
        Answer::TryReplace(_) => kind == Kind::TryReplace,
        Answer::TryRemove(_) => kind == Kind::TryRemove,
        Answer::TryExtend(_) => kind == Kind::TryExtend,
        Answer::TryLease(_) => kind == Kind::TryLease,
        Answer::TryRelay(_) => kind == Kind::TryRelay,
        Answer::Release(_) => kind == Kind::Release,
        Answer::Remove(_) => kind == Kind::Remove,
        Answer::RemoveMany(_) => kind == Kind::RemoveMany,
        Answer::Increment(_) => kind == Kind::Increment,
        Answer::TimeToLive(_) => kind == Kind::TimeToLive,
        Answer::Ping(_) => kind == Kind::Ping,
    }
}

/// An answer that does not fit its question.
pub(crate) fn unexpected() -> Fault {
    Fault::Unknown(Cause::new("its answer is not one to this operation"))
}

fn mismatch<T>(answer: Answer) -> Attempt<T> {
    match answer {
        Answer::Failure(failure) => Err(Fault::Refused(wire::error::from_failure(&failure))),
        _ => Err(unexpected()),
    }
}

/// A value that outlives its message.
fn detached(value: Bytes) -> Bytes {
    if value.len() < COPIED {
        Bytes::copy_from_slice(&value)
    } else {
        value
    }
}

/// The value that `get` and `get_or_add` found.
pub(crate) fn value(answer: Answer) -> Attempt<Option<Bytes>> {
    match answer {
        Answer::Get(found) => Ok(found.value.map(detached)),
        Answer::GetOrAdd(found) => Ok(found.value.map(detached)),
        other => mismatch(other),
    }
}

/// One value for each of `count` keys.
pub(crate) fn values(answer: Answer, count: usize) -> Attempt<Vec<Option<Bytes>>> {
    match answer {
        Answer::GetMany(found) if found.entries.len() == count => {
            let value = |entry: proto::GetResponse| entry.value.map(detached);
            Ok(found.entries.into_iter().map(value).collect())
        }
        other => mismatch(other),
    }
}

/// That it was done.
pub(crate) fn done(answer: Answer) -> Attempt<()> {
    match answer {
        Answer::Set(_) | Answer::SetMany(_) | Answer::Ping(_) => Ok(()),
        other => mismatch(other),
    }
}

/// Whether it was done.
pub(crate) fn flag(answer: Answer) -> Attempt<bool> {
    match answer {
        Answer::TryAdd(said) => Ok(said.added),
        Answer::TryReplace(said) => Ok(said.replaced),
        Answer::TryRemove(said) => Ok(said.removed),
        Answer::TryExtend(said) => Ok(said.extended),
        Answer::Release(said) => Ok(said.released),
        Answer::Remove(said) => Ok(said.removed),
        other => mismatch(other),
    }
}

/// Whether it was done, for each of `count` keys.
pub(crate) fn flags(answer: Answer, count: usize) -> Attempt<Vec<bool>> {
    match answer {
        Answer::RemoveMany(said) if said.removed.len() == count => Ok(said.removed),
        other => mismatch(other),
    }
}

/// A fencing number.
pub(crate) fn fencing(answer: Answer) -> Attempt<Option<u64>> {
    match answer {
        Answer::TryLease(said) => Ok(said.fencing),
        Answer::TryRelay(said) => Ok(said.fencing),
        other => mismatch(other),
    }
}

/// A counter's number.
pub(crate) fn number(answer: Answer) -> Attempt<i64> {
    match answer {
        Answer::Increment(said) => Ok(said.number),
        other => mismatch(other),
    }
}

/// What is left of a life.
pub(crate) fn remaining(answer: Answer) -> Attempt<Option<Duration>> {
    match answer {
        Answer::TimeToLive(said) => Ok(said.remaining_microseconds.map(Duration::from_micros)),
        other => mismatch(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_answers_is_read_one_by_one() {
        let reply = |id, value: &'static [u8]| proto::Reply {
            id,
            result: Some(Answer::Get(proto::GetResponse {
                value: Some(value.into()),
            })),
        };
        let unknown = proto::Reply {
            id: 7,
            result: None,
        };
        let replies = vec![reply(1, b"a"), unknown, reply(2, b"")];
        let mut message = Bytes::from(proto::SessionResponse { replies }.encode_to_vec());
        let mut found = Vec::new();
        while let Some((id, answer)) = next(&mut message).unwrap() {
            found.push((id, value(answer).unwrap().unwrap()));
        }
        assert_eq!(found, [(1, "a".into()), (2, "".into())]);
    }

    #[test]
    fn a_message_that_is_cut_off_is_an_error() {
        let reply = proto::Reply {
            id: 1,
            result: Some(Answer::Ping(proto::PingResponse {})),
        };
        let replies = vec![reply];
        let whole = proto::SessionResponse { replies }.encode_to_vec();
        for length in 1..whole.len() {
            let mut message = Bytes::copy_from_slice(&whole[..length]);
            assert!(next(&mut message).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn an_answer_to_another_question_is_of_unknown_outcome() {
        let ping = || Answer::Ping(proto::PingResponse {});
        assert!(matches!(value(ping()), Err(Fault::Unknown(_))));
        let many = Answer::GetMany(proto::GetManyResponse {
            entries: Vec::new(),
        });
        assert!(matches!(values(many, 1), Err(Fault::Unknown(_))));
    }

    #[test]
    fn an_answer_of_the_same_shape_to_another_question_does_not_fit() {
        let released = Answer::Release(proto::ReleaseResponse { released: true });
        assert!(fits(Kind::Release, &released));
        for kind in [Kind::TryAdd, Kind::TryExtend, Kind::Remove, Kind::TryLease] {
            assert!(!fits(kind, &released), "{kind:?}");
        }
        let relayed = Answer::TryRelay(proto::TryRelayResponse { fencing: Some(7) });
        assert!(!fits(Kind::TryLease, &relayed));
        let failure = Answer::Failure(proto::Failure::default());
        assert!(fits(Kind::TryLease, &failure));
    }

    #[test]
    fn a_short_value_does_not_keep_its_message() {
        let message = Bytes::from(vec![1; 1024]);
        let found = detached(message.slice(0..100));
        let range = message.as_ptr_range();
        assert!(!range.contains(&found.as_ptr()));
    }
}
