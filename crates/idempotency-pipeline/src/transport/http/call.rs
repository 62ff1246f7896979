use std::sync::Arc;
use std::time::Duration;

use axum::RequestPartsExt;
use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::response::Response;
use caching_abstractions::Result;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use http::request::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::answer::Answers;
use super::render::HttpRenderer;
use crate::baggage::{Baggage, idempotency_key_header};
use crate::context::{EntryKind, InvocationContext, Metadata};
use crate::operation::{Operation, PathParameters, RequestSource};
use crate::pipeline::Pipeline;
use crate::problem::Failure;
use crate::rendering::Renderer;
use crate::work::PendingRequest;

const BAGGAGE: HeaderName = HeaderName::from_static("baggage");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How long a body may take to arrive once its caller is let in.
const BODY_TIME: Duration = Duration::from_secs(30);

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
        let head = match self.head(&mut parts).await {
            Ok(head) => head,
            Err(refusal) => return self.answers.refuse(&caller, &refusal),
        };
        let request = match self.shape {
            RequestShape::Parameters => PendingRequest::Here(parameters(&head)),
            RequestShape::Body => {
                let limit = self.pipeline.settings().max_request_bytes;
                let body = read_body(body, limit, is_json(&parts.headers));
                PendingRequest::Arriving(Box::pin(body))
            }
        };
        let context = InvocationContext::builder(EntryKind::Http)
            .baggage(head.baggage)
            .language(caller.language)
            .instance(caller.instance)
            .metadata(parts.headers);
        let context = match caller.trace_id {
            Some(trace_id) => context.trace_id(trace_id),
            None => context,
        };
        let context = self.pipeline.context(context, &self.operation);
        if !head.path.is_empty() {
            context.extensions().insert(PathParameters(head.path));
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

    async fn path_parameters(&self, parts: &mut Parts) -> Result<Vec<(String, String)>, Failure> {
        if !self.has_path_parameters {
            return Ok(Vec::new());
        }
        let path = parts
            .extract::<RawPathParams>()
            .await
            .map_err(|_| Failure::malformed_request("the path is no UTF-8 text"))?;
        Ok(path
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect())
    }

    /// Everything but the body; what it refuses needs nothing else.
    async fn head(&self, parts: &mut Parts) -> Result<Head, Failure> {
        let query = match self.shape {
            RequestShape::Body => Vec::new(),
            RequestShape::Parameters => {
                serde_urlencoded::from_str(parts.uri.query().unwrap_or_default())
                    .map_err(|error| Failure::malformed_request(error.to_string()))?
            }
        };
        Ok(Head {
            baggage: self.baggage(&parts.headers)?,
            path: self.path_parameters(parts).await?,
            query,
        })
    }
}

/// What the head of a request says.
struct Head {
    baggage: Baggage,
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
}

/// The request of a route that reads it from path and query; what the path says cannot be said
/// otherwise by the query.
fn parameters(head: &Head) -> RequestSource {
    let is_in_path = |name: &str| head.path.iter().any(|(known, _)| known == name);
    let query = head.query.iter().filter(|(name, _)| !is_in_path(name));
    RequestSource::Parameters(head.path.iter().chain(query).cloned().collect())
}

/// Reads the body whole, before anything is executed or stored for it (P15).
async fn read_body(body: Body, limit: u64, is_json: bool) -> Result<RequestSource, Failure> {
    let limited = Limited::new(body, usize::try_from(limit).unwrap_or(usize::MAX));
    let body = match timeout(BODY_TIME, limited.collect()).await {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(Failure::too_large(limit)),
        Ok(Err(_)) => return Err(Failure::malformed_request("the body ended early")),
        Err(_) => return Err(Failure::request_timeout()),
    };
    if !body.is_empty() && !is_json {
        return Err(Failure::unsupported_media_type("application/json"));
    }
    Ok(RequestSource::Json(body))
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
