use std::sync::Arc;

use bytes::Bytes;
use caching_abstractions::CachingError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Definition, RequestSource};
use crate::outcome::{InvocationError, Success};
use crate::work::Prepared;

/// An operation without its types, as the pipeline handles it.
pub(crate) trait ErasedOperation: Send + Sync {
    fn id(&self) -> &str;

    fn shared_id(&self) -> Arc<str>;

    /// Whether the Idempotency stage lets it through.
    fn is_query(&self) -> bool;

    fn requires_key(&self) -> bool;

    /// Decodes and validates the request.
    fn prepare(self: Arc<Self>, request: RequestSource) -> Result<Prepared, InvocationError>;
}

impl<Request, Response> ErasedOperation for Definition<Request, Response>
where
    Request: DeserializeOwned + Send + 'static,
    Response: Serialize + 'static,
{
    fn id(&self) -> &str {
        &self.id
    }

    fn shared_id(&self) -> Arc<str> {
        Arc::clone(&self.id)
    }

    fn is_query(&self) -> bool {
        self.is_query
    }

    fn requires_key(&self) -> bool {
        self.requires_key
    }

    fn prepare(self: Arc<Self>, request: RequestSource) -> Result<Prepared, InvocationError> {
        let request: Request = request.decode()?;
        if let Some(validate) = &self.validator {
            validate(&request)?;
        }
        Ok(Box::new(move |context| {
            // Called before the async block so that the future owns only what it needs.
            let response = (self.handler)(context, request);
            Box::pin(async move { self.success(&response.await?) })
        }))
    }
}

impl<Request, Response: Serialize> Definition<Request, Response> {
    /// Encodes the response; the transaction commits only after this (P6).
    fn success(&self, response: &Response) -> Result<Success, InvocationError> {
        let encoded = serde_json::to_vec(response).map_err(|error| {
            CachingError::internal("the response cannot be encoded").with_source(error)
        })?;
        Ok(Success {
            response: Some(Bytes::from(encoded)),
            status: self.status,
            location: self.location.as_ref().map(|location| location(response)),
        })
    }
}
