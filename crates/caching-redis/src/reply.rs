//! Answers of the server.

use bytes::Bytes;
use fred::types::{Resp3Frame, Value};

use crate::error::{Attempt, Cause, Fault, Refusal};

/// An answer that is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Nil,
    Number(i64),
    Bytes(Bytes),
    List(Vec<Reply>),
}

impl Reply {
    /// Reads what came over the wire.
    pub(crate) fn read(frame: Resp3Frame) -> Attempt<Self> {
        Ok(match frame {
            Resp3Frame::BlobString { data, .. } | Resp3Frame::BigNumber { data, .. } => {
                Self::Bytes(data)
            }
            Resp3Frame::SimpleString { data, .. } | Resp3Frame::VerbatimString { data, .. } => {
                Self::Bytes(data)
            }
            Resp3Frame::Number { data, .. } => Self::Number(data),
            Resp3Frame::Null => Self::Nil,
            Resp3Frame::Array { data, .. } | Resp3Frame::Push { data, .. } => {
                Self::List(data.into_iter().map(Self::read).collect::<Attempt<_>>()?)
            }
            Resp3Frame::SimpleError { data, .. } => {
                return Err(Fault::Refused(Refusal::new(&data)));
            }
            Resp3Frame::BlobError { data, .. } => {
                let text = String::from_utf8_lossy(&data);
                return Err(Fault::Refused(Refusal::new(&text)));
            }
            _ => return Err(unexpected()),
        })
    }

    /// Reads what the client made of an answer already.
    pub(crate) fn from_value(value: Value) -> Attempt<Self> {
        Ok(match value {
            Value::Null => Self::Nil,
            Value::Integer(number) => Self::Number(number),
            Value::Boolean(flag) => Self::Number(flag.into()),
            Value::Bytes(bytes) => Self::Bytes(bytes),
            Value::String(text) => Self::Bytes(text.into_inner()),
            Value::Array(list) => {
                let list = list.into_iter().map(Self::from_value);
                Self::List(list.collect::<Attempt<_>>()?)
            }
            _ => return Err(unexpected()),
        })
    }

    /// A value, or none.
    pub(crate) fn value(self) -> Attempt<Option<Bytes>> {
        match self {
            Self::Nil => Ok(None),
            Self::Bytes(bytes) => Ok(Some(bytes)),
            Self::Number(number) => Ok(Some(number.to_string().into())),
            Self::List(_) => Err(unexpected()),
        }
    }

    /// A number, also one that is sent as text.
    pub(crate) fn number(self) -> Attempt<i64> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(bytes) => {
                let text = std::str::from_utf8(&bytes).ok();
                text.and_then(|text| text.parse().ok())
                    .ok_or_else(unexpected)
            }
            _ => Err(unexpected()),
        }
    }

    /// Whether something was done: a number other than 0.
    pub(crate) fn into_flag(self) -> Attempt<bool> {
        self.number().map(|number| number != 0)
    }

    /// Text.
    pub(crate) fn text(self) -> Attempt<String> {
        let bytes = self.value()?.ok_or_else(unexpected)?;
        String::from_utf8(bytes.into()).map_err(|_| unexpected())
    }

    /// The members of a list.
    pub(crate) fn list(self) -> Attempt<Vec<Self>> {
        match self {
            Self::List(list) => Ok(list),
            _ => Err(unexpected()),
        }
    }
}

/// An answer that the protocol does not foresee for the command.
pub(crate) fn unexpected() -> Fault {
    Fault::Unknown(Cause::new("its answer is not one of this command"))
}
