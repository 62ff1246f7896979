use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{PathParameters, RequestSource};

/// What distinguishes one request from another under the same key (P10): SHA-256 of the operation
/// and its arguments, those in the path included. White space, the order of members and of
/// parameters, escapes and whether nothing is written as `{}` do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(crate) fn of(operation: &str, path: &PathParameters, request: &RequestSource) -> Self {
        let mut digest = Sha256::new();
        feed(&mut digest, b'o', operation.as_bytes());
        feed_parameters(&mut digest, &path.0);
        match request {
            RequestSource::Json(bytes) if bytes.is_empty() => {
                feed_value(&mut digest, &Value::Object(Map::new()));
            }
            RequestSource::Json(bytes) => match serde_json::from_slice(bytes) {
                Ok(value) => feed_value(&mut digest, &value),
                // Decoding is about to refuse it.
                Err(_) => feed(&mut digest, b'b', bytes),
            },
            RequestSource::Parameters(parameters) => feed_parameters(&mut digest, parameters),
        }
        Self(digest.finalize().into())
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> [u8; 32] {
        self.0
    }
}

/// A tag and a length before each part, so that no two lists of parts look the same.
fn feed(digest: &mut Sha256, tag: u8, part: &[u8]) {
    digest.update([tag]);
    digest.update((part.len() as u64).to_le_bytes());
    digest.update(part);
}

/// Values of one name keep their order.
fn feed_parameters(digest: &mut Sha256, parameters: &[(String, String)]) {
    let mut parameters: Vec<_> = parameters.iter().collect();
    parameters.sort_by_key(|(name, _)| name);
    for (name, value) in parameters {
        feed(digest, b'p', name.as_bytes());
        feed(digest, b'v', value.as_bytes());
    }
}

fn feed_value(digest: &mut Sha256, value: &Value) {
    match value {
        Value::Null => feed(digest, b'n', b""),
        Value::Bool(value) => feed(digest, b't', &[u8::from(*value)]),
        Value::Number(number) => feed(digest, b'd', number.to_string().as_bytes()),
        Value::String(text) => feed(digest, b's', text.as_bytes()),
        Value::Array(values) => {
            feed(digest, b'a', &(values.len() as u64).to_le_bytes());
            values.iter().for_each(|value| feed_value(digest, value));
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            feed(digest, b'm', &(members.len() as u64).to_le_bytes());
            for (name, value) in members {
                feed(digest, b's', name.as_bytes());
                feed_value(digest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &'static str) -> Fingerprint {
        let path = PathParameters::default();
        Fingerprint::of("orders.create", &path, &RequestSource::Json(json.into()))
    }

    #[test]
    fn p10_only_the_arguments_count() {
        assert_eq!(
            of(r#"{"a":1,"b":[1,"é"]}"#),
            of(" { \"b\" : [1, \"\\u00e9\"], \"a\": 1 }")
        );
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":2}"#));
        assert_ne!(of(r#"["ab","c"]"#), of(r#"["a","bc"]"#));
        assert_ne!(of("[[],[]]"), of("[[[]]]"));
        let (path, request) = (
            PathParameters::default(),
            RequestSource::Json(r#"{"a":1}"#.into()),
        );
        let other = Fingerprint::of("orders.cancel", &path, &request);
        assert_ne!(of(r#"{"a":1}"#), other);
    }
}
