use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use caching_abstractions::{CachingError, ErrorCode};
use http::header::{ACCEPT_LANGUAGE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};

use super::render::{HttpRenderer, TRANSPORT, of_problem};
use crate::context::{InvocationContext, Replay, fresh_trace_id};
use crate::language::Language;
use crate::outcome::Completion;
use crate::pipeline::Pipeline;
use crate::problem::{Catalogues, Failure, Problem};
use crate::rendering::{Renderer, Rendering};

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Makes HTTP responses of whatever a call comes to.
#[derive(Clone)]
pub(super) struct Answers {
    catalogues: Arc<Catalogues>,
    /// What goes with a 401.
    challenge: Option<HeaderValue>,
}

/// What an answer must know about who asked.
pub(super) struct Caller {
    pub(super) language: Language,
    pub(super) instance: String,
    /// The caller's own trace; without one the context makes one up when it is asked for.
    pub(super) trace_id: Option<String>,
}

impl Answers {
    pub(super) fn new(pipeline: &Pipeline) -> Self {
        let challenge = HeaderValue::from_str(pipeline.challenge()).ok();
        Self {
            catalogues: Arc::clone(pipeline.catalogues()),
            challenge: challenge.filter(|challenge| !challenge.is_empty()),
        }
    }

    pub(super) fn caller(&self, uri: &Uri, headers: &HeaderMap) -> Caller {
        let accepted = headers.get(ACCEPT_LANGUAGE).map(HeaderValue::as_bytes);
        Caller {
            language: self.catalogues.negotiate(accepted),
            instance: uri.path().to_owned(),
            trace_id: trace_id(headers),
        }
    }

    /// The answer to a call that did not reach the pipeline.
    pub(super) fn refuse(&self, caller: &Caller, refusal: &Failure) -> Response {
        let problem = Problem::of_failure(refusal, &self.catalogues, &caller.language)
            .with_instance(caller.instance.as_str())
            .with_trace_id(caller.trace_id.clone().unwrap_or_else(fresh_trace_id));
        self.respond(of_problem(&problem), Replay::NoKey)
    }

    /// The answer to a call that went through the pipeline.
    pub(super) fn completion(
        &self,
        context: &InvocationContext,
        renderer: &HttpRenderer,
        completion: Completion,
    ) -> Response {
        match completion {
            Ok(mut outcome) => {
                let rendering = match outcome.take_rendering() {
                    Some(rendering) if rendering.transport == TRANSPORT => rendering,
                    // Not recorded by a stage, or recorded by another transport.
                    _ => renderer.render(context, &outcome),
                };
                self.respond(rendering, context.replay())
            }
            Err(exception) => {
                log(context, exception.error());
                let problem =
                    Problem::of_error(exception.error(), &self.catalogues, context.language())
                        .with_instance(context.instance())
                        .with_trace_id(context.trace_id());
                self.respond(of_problem(&problem), context.replay())
            }
        }
    }

    fn respond(&self, rendering: Rendering, replay: Replay) -> Response {
        let status =
            StatusCode::from_u16(rendering.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(rendering.body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        for (name, value) in rendering.headers {
            // Records come from a store that others may write to: what is no header is left out.
            if let (Ok(name), Ok(value)) = (
                HeaderName::try_from(&*name),
                HeaderValue::from_maybe_shared(value),
            ) {
                headers.append(name, value);
            }
        }
        if let (StatusCode::UNAUTHORIZED, Some(challenge)) = (status, &self.challenge) {
            headers.insert(WWW_AUTHENTICATE, challenge.clone());
        }
        match replay {
            Replay::NoKey => {}
            Replay::Executed => {
                headers.insert(REPLAYED, HeaderValue::from_static("false"));
            }
            Replay::Replayed => {
                headers.insert(REPLAYED, HeaderValue::from_static("true"));
            }
        }
        response
    }
}

/// Defects are logged with their cause, which the caller does not see. A store that is away or full
/// is not logged for each call that it refuses: metrics count those.
fn log(context: &InvocationContext, error: &CachingError) {
    if error.code() == ErrorCode::Internal {
        let cause = std::error::Error::source(error).map(tracing::field::display);
        tracing::error!(
            operation = context.operation(),
            trace_id = context.trace_id(),
            cause,
            "{error}"
        );
    }
}

/// The caller's trace from `traceparent` (W3C).
fn trace_id(headers: &HeaderMap) -> Option<String> {
    let given = headers
        .get("traceparent")
        .and_then(|value| value.to_str().ok());
    let given = given
        .and_then(|value| value.split('-').nth(1))
        .filter(|id| {
            id.len() == 32
                && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
                && id.bytes().any(|b| b != b'0')
        });
    given.map(str::to_owned)
}
