//! `Debug` for the messages that hold values or lease tokens: it prints neither (X3).

use std::fmt;

use bytes::Bytes;

use crate::proto;

/// Prints some fields as they are, of values their length only, and of tokens nothing.
macro_rules! redacted {
    ($($message:ident { $($field:ident: $shown:ident),* })*) => {$(
        impl fmt::Debug for proto::$message {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($message))
                    $(.field(stringify!($field), &redacted!(@$shown self.$field)))*
                    .finish()
            }
        }
    )*};
    (@plain $field:expr) => { $field };
    (@value $field:expr) => { Length($field.len()) };
    (@maybe $field:expr) => { $field.as_ref().map(|value: &Bytes| Length(value.len())) };
    (@token $field:expr) => { format_args!("***") };
}

redacted! {
    GetResponse { value: maybe }
    SetRequest { key: plain, value: value, expiration: plain }
    TryAddRequest { key: plain, value: value, expiration: plain }
    GetOrAddRequest { key: plain, value: value, expiration: plain }
    GetOrAddResponse { value: maybe }
    TryReplaceRequest { key: plain, expected: value, value: value, expiration: plain }
    TryRemoveRequest { key: plain, expected: value }
    TryExtendRequest { key: plain, expected: value, time_to_live_milliseconds: plain }
    TryLeaseRequest { key: plain, token: token, time_to_live_milliseconds: plain }
    WaitForLeaseRequest {
        key: plain, token: token, time_to_live_milliseconds: plain, wait_milliseconds: plain
    }
    TryRelayRequest { key: plain, token: token, new_token: token, time_to_live_milliseconds: plain }
    ReleaseRequest { key: plain, token: token }
    IncrementResponse { number: token }
}

struct Length(usize);

impl fmt::Debug for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proto::call::Operation;

    use super::*;

    #[test]
    fn x3_no_message_prints_a_value_or_a_token() {
        let (key, token) = (|| "order:1".to_owned(), || "SECRET".to_owned());
        let value = || Bytes::from_static(b"SECRET");
        let set = || proto::SetRequest {
            key: key(),
            value: value(),
            expiration: None,
        };
        let operations = [
            Operation::Set(set()),
            Operation::SetMany(proto::SetManyRequest { items: vec![set()] }),
            Operation::TryAdd(proto::TryAddRequest {
                key: key(),
                value: value(),
                expiration: None,
            }),
            Operation::GetOrAdd(proto::GetOrAddRequest {
                key: key(),
                value: value(),
                expiration: None,
            }),
            Operation::TryReplace(proto::TryReplaceRequest {
                key: key(),
                expected: value(),
                value: value(),
                expiration: None,
            }),
            Operation::TryRemove(proto::TryRemoveRequest {
                key: key(),
                expected: value(),
            }),
            Operation::TryExtend(proto::TryExtendRequest {
                key: key(),
                expected: value(),
                time_to_live_milliseconds: 1,
            }),
            Operation::TryLease(proto::TryLeaseRequest {
                key: key(),
                token: token(),
                time_to_live_milliseconds: 1,
            }),
            Operation::TryRelay(proto::TryRelayRequest {
                key: key(),
                token: token(),
                new_token: token(),
                time_to_live_milliseconds: 1,
            }),
            Operation::Release(proto::ReleaseRequest {
                key: key(),
                token: token(),
            }),
        ];
        for operation in operations {
            let printed = format!("{operation:?}");
            assert!(printed.contains("order:1"), "{printed}");
            // Bytes print as text or as numbers.
            assert!(!printed.contains("SECRET"), "{printed}");
            assert!(!printed.contains("83"), "{printed}");
        }
    }

    #[test]
    fn x3_no_answer_prints_a_value() {
        let value = Some(Bytes::from_static(b"SECRET"));
        let get = proto::GetResponse {
            value: value.clone(),
        };
        let printed = format!(
            "{get:?} {:?} {:?}",
            proto::GetOrAddResponse { value },
            proto::IncrementResponse { number: 4711 }
        );
        assert!(printed.contains("6 bytes"), "{printed}");
        assert!(!printed.contains("SECRET"), "{printed}");
        assert!(!printed.contains("4711"), "{printed}");
    }
}
