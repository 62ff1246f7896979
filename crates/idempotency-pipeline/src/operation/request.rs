use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::problem::Failure;

/// A request as a transport delivers it.
#[derive(Clone, PartialEq, Eq)]
pub enum RequestSource {
    /// A JSON document; nothing at all stands for `{}`, or `null` where the type asks for that.
    Json(Bytes),
    /// Named values, as from a path and a query string.
    Parameters(Vec<(String, String)>),
}

/// The values of the path parameters of a call, in the order of the path.
///
/// Operations with a body find them in [`InvocationContext::extensions`].
///
/// [`InvocationContext::extensions`]: crate::InvocationContext::extensions
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathParameters(pub Vec<(String, String)>);

impl RequestSource {
    /// Decodes the request.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        match self {
            Self::Json(bytes) if bytes.is_empty() => serde_json::from_slice(b"{}")
                .or_else(|error| serde_json::from_slice(b"null").map_err(|_| error))
                .map_err(|error| Failure::malformed_request(error.to_string())),
            Self::Json(bytes) => serde_json::from_slice(bytes)
                .map_err(|error| Failure::malformed_request(error.to_string())),
            Self::Parameters(parameters) => {
                // The form deserializer reads numbers and enums out of their text.
                let form = serde_urlencoded::to_string(parameters)
                    .map_err(|error| Failure::malformed_request(error.to_string()))?;
                serde_urlencoded::from_str(&form)
                    .map_err(|error| Failure::malformed_request(error.to_string()))
            }
        }
    }
}

impl fmt::Debug for RequestSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(bytes) => write!(f, "Json({} bytes)", bytes.len()),
            Self::Parameters(parameters) => write!(f, "Parameters({})", parameters.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Page {
        id: String,
        size: u32,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Nothing {}

    #[test]
    fn parameters_decode_into_numbers() {
        let request = RequestSource::Parameters(vec![
            ("id".into(), "a b&c".into()),
            ("size".into(), "7".into()),
        ]);
        assert_eq!(
            request.decode::<Page>().unwrap(),
            Page {
                id: "a b&c".into(),
                size: 7
            }
        );
    }

    #[test]
    fn an_empty_body_is_an_empty_request() {
        let empty = RequestSource::Json(Bytes::new());
        assert_eq!(empty.decode::<Nothing>().unwrap(), Nothing {});
        empty.decode::<()>().unwrap();
        assert!(
            empty
                .decode::<Page>()
                .unwrap_err()
                .to_string()
                .contains("missing field")
        );
    }

    #[test]
    fn a_malformed_body_is_a_failure_that_says_where() {
        let failure = RequestSource::Json("{\"id\":}".into())
            .decode::<Page>()
            .unwrap_err();
        assert_eq!(failure.code(), "HTTP_VALIDATION_001");
        assert!(failure.to_string().contains("column 7"), "{failure}");
    }
}
