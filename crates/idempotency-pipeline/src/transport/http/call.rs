use std::sync::Arc;

use axum::RequestPartsExt;
use axum::body::{Body, Bytes};
use axum::extract::{RawPathParams, Request};
use axum::response::Response;
use caching_abstractions::Result;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use http::request::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer::Answers;
use super::render::HttpRenderer;
use crate::baggage::{Baggage, idempotency_key_header};
use crate::context::{EntryKind, InvocationContext, Metadata};
use crate::operation::{Operation, PathParameters, RequestSource};
use crate::pipeline::Pipeline;
use crate::problem::Failure;
use crate::rendering::Renderer;

const BAGGAGE: HeaderName = HeaderName::from_static("baggage");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Where a route's request is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestShape {
    /// In a JSON body.
    Body,
    /// In path and query string.
    Parameters,
}

/// One route: an operation and how its request arrives.
pub(super) struct Call<Q, R> {
    pub(super) pipeline: Pipeline,
    pub(super) answers: Answers,
    pub(super) renderer: Arc<HttpRenderer>,
    pub(super) shape: RequestShape,
    pub(super) has_path_parameters: bool,
    pub(super) operation: Operation<Q, R>,
}

impl<Q, R> Call<Q, R>
where
    Q: DeserializeOwned + Send + 'static,
    R: Serialize + 'static,
{
    pub(super) async fn answer(&self, request: Request) -> Response {
        let (mut parts, body) = request.into_parts();
        let caller = self.answers.caller(&parts.uri, &parts.headers);
        let path = self.path_parameters(&mut parts).await;
        let query = parts.uri.query().unwrap_or_default();
        // Refusals up to here need nothing but the head of the request.
        let head = self
            .baggage(&parts.headers)
            .map_err(Failure::from)
            .and_then(|baggage| {
                let parameters = self.parameters(&path, query)?;
                Ok((baggage, parameters))
            });
        let (baggage, parameters) = match head {
            Ok(head) => head,
            Err(refusal) => return self.answers.refuse(&caller, &refusal),
        };
        let request = match parameters {
            Some(parameters) => RequestSource::Parameters(parameters),
            None => match self.body(&parts.headers, body).await {
                Ok(body) => RequestSource::Json(body),
                Err(failure) => return self.answers.refuse(&caller, &failure),
            },
        };
        let context = InvocationContext::builder(EntryKind::Http)
            .baggage(baggage)
            .language(caller.language)
            .instance(caller.instance)
            .trace_id(caller.trace_id)
            .metadata(parts.headers);
        let context = self.pipeline.context(context, &self.operation);
        if !path.is_empty() {
            context.extensions().insert(PathParameters(path));
        }
        let renderer = Arc::clone(&self.renderer) as Arc<dyn Renderer>;
        let completion = self
            .pipeline
            .run(&context, &self.operation, request, Some(renderer))
            .await;
        self.answers
            .completion(&context, &self.renderer, completion)
    }

    /// The caller's baggage, with the key of the `Idempotency-Key` header where that is accepted.
    fn baggage(&self, headers: &HeaderMap) -> Result<Baggage> {
        let baggage = Baggage::parse(headers.get_all(BAGGAGE).iter().map(|line| line.as_bytes()))?;
        if !self.pipeline.settings().accept_idempotency_key_header {
            return Ok(baggage);
        }
        let lines = headers
            .get_all(IDEMPOTENCY_KEY)
            .iter()
            .map(|line| line.as_bytes());
        baggage.reconcile(idempotency_key_header(lines)?)
    }

    async fn path_parameters(&self, parts: &mut Parts) -> Vec<(String, String)> {
        if !self.has_path_parameters {
            return Vec::new();
        }
        match parts.extract::<RawPathParams>().await {
            Ok(path) => path
                .iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            // A path that is no UTF-8 after decoding names nothing.
            Err(_) => Vec::new(),
        }
    }

    /// Path and query of a route that reads its request from there; none for one with a body.
    fn parameters(
        &self,
        path: &[(String, String)],
        query: &str,
    ) -> Result<Option<Vec<(String, String)>>, Failure> {
        if self.shape == RequestShape::Body {
            return Ok(None);
        }
        let mut parameters = path.to_vec();
        let query: Vec<(String, String)> = serde_urlencoded::from_str(query)
            .map_err(|error| Failure::malformed_request(error.to_string()))?;
        // What the path says cannot be said otherwise by the query.
        let said: Vec<_> = query
            .into_iter()
            .filter(|(name, _)| path.iter().all(|(p, _)| p != name))
            .collect();
        parameters.extend(said);
        Ok(Some(parameters))
    }

    /// Reads the body whole, before anything is executed or stored for it (P15).
    async fn body(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, Failure> {
        let limit = self.pipeline.settings().max_request_bytes;
        let limited = Limited::new(body, usize::try_from(limit).unwrap_or(usize::MAX));
        let body = match limited.collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(Failure::too_large(limit)),
            Err(_) => return Err(Failure::malformed_request("the body ended early")),
        };
        if !body.is_empty() && !is_json(headers) {
            return Err(Failure::unsupported_media_type("application/json"));
        }
        Ok(body)
    }
}

/// `application/json` or `…+json`, with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
    else {
        return false;
    };
    let essence = value.split(';').next().unwrap_or_default().trim();
    let ends_with = |suffix: &str| {
        essence.len() > suffix.len()
            && essence.as_bytes()[essence.len() - suffix.len()..]
                .eq_ignore_ascii_case(suffix.as_bytes())
    };
    essence.eq_ignore_ascii_case("application/json") || ends_with("+json")
}

impl Metadata for HeaderMap {
    fn get(&self, name: &str) -> Option<&[u8]> {
        self.get(name).map(http::HeaderValue::as_bytes)
    }
}
