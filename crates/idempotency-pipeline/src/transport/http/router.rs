use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer::Answers;
use super::call::{Call, RequestShape};
use super::render::HttpRenderer;
use crate::operation::Operation;
use crate::pipeline::Pipeline;
use crate::problem::Failure;

/// Makes operations routes of an axum router.
///
/// - `post`, `put`, `patch` and `delete` read the request from a JSON body; nothing at all stands
///   for an empty request. Path parameters of such a route are in the context's extensions as
///   [`PathParameters`](super::PathParameters).
/// - `get` reads it from the path and the query string.
/// - A success is 200 with the response as JSON, or 201 or 202 with a `Location`.
/// - Everything else is a problem (RFC 9457), in the caller's language.
/// - A call with an idempotency key is answered with `Idempotency-Replayed: true` or `false`.
pub struct OperationRouter {
    pipeline: Pipeline,
    answers: Answers,
    renderer: Arc<HttpRenderer>,
    router: Router,
}

impl OperationRouter {
    /// A router whose calls pass `pipeline`.
    pub fn new(pipeline: &Pipeline) -> Self {
        Self {
            pipeline: pipeline.clone(),
            answers: Answers::new(pipeline),
            renderer: Arc::new(HttpRenderer::new(Arc::clone(pipeline.catalogues()))),
            router: Router::new(),
        }
    }

    /// Serves `operation` on `GET path`, read from path and query.
    #[must_use]
    pub fn get<Q, R>(self, path: &str, operation: &Operation<Q, R>) -> Self
    where
        Q: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
    {
        self.route(MethodFilter::GET, RequestShape::Parameters, path, operation)
    }

    /// Serves `operation` on `POST path`.
    #[must_use]
    pub fn post<Q, R>(self, path: &str, operation: &Operation<Q, R>) -> Self
    where
        Q: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
    {
        self.route(MethodFilter::POST, RequestShape::Body, path, operation)
    }

    /// Serves `operation` on `PUT path`.
    #[must_use]
    pub fn put<Q, R>(self, path: &str, operation: &Operation<Q, R>) -> Self
    where
        Q: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
    {
        self.route(MethodFilter::PUT, RequestShape::Body, path, operation)
    }

    /// Serves `operation` on `PATCH path`.
    #[must_use]
    pub fn patch<Q, R>(self, path: &str, operation: &Operation<Q, R>) -> Self
    where
        Q: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
    {
        self.route(MethodFilter::PATCH, RequestShape::Body, path, operation)
    }

    /// Serves `operation` on `DELETE path`.
    #[must_use]
    pub fn delete<Q, R>(self, path: &str, operation: &Operation<Q, R>) -> Self
    where
        Q: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
    {
        self.route(MethodFilter::DELETE, RequestShape::Body, path, operation)
    }

    fn route<Q, R>(
        mut self,
        method: MethodFilter,
        shape: RequestShape,
        path: &str,
        operation: &Operation<Q, R>,
    ) -> Self
    where
        Q: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
    {
        let call = Arc::new(Call {
            pipeline: self.pipeline.clone(),
            answers: self.answers.clone(),
            renderer: Arc::clone(&self.renderer),
            shape,
            has_path_parameters: path.contains('{'),
            operation: operation.clone(),
        });
        let handler = move |request: Request| {
            let call = Arc::clone(&call);
            async move { call.answer(request).await }
        };
        self.router = self.router.route(path, on(method, handler));
        self
    }

    /// The routes, to be merged with others; a known path with a wrong method is 405 with a
    /// problem.
    pub fn into_router(self) -> Router {
        let problems = Problems(self.answers);
        self.router
            .method_not_allowed_fallback(move |request: Request| {
                std::future::ready(problems.respond(&request, &Failure::method_not_allowed()))
            })
    }
}

impl From<OperationRouter> for Router {
    fn from(router: OperationRouter) -> Self {
        router.into_router()
    }
}

impl fmt::Debug for OperationRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationRouter").finish_non_exhaustive()
    }
}

/// Answers with problems where no operation is called: by the application's own handlers, and for
/// paths that nobody serves. Cheap to clone.
///
/// ```
/// use axum::Router;
/// use axum::extract::Request;
/// use axum::routing::get;
/// use idempotency_pipeline::Failure;
/// use idempotency_pipeline::http::Problems;
/// # fn example(pipeline: &idempotency_pipeline::Pipeline) -> Router {
/// let problems = Problems::new(pipeline);
/// let teapot = problems.clone();
/// Router::new()
///     .route("/coffee", get(async move |request: Request| {
///         teapot.respond(&request, &Failure::new("KITCHEN_CONFLICT_001"))
///     }))
///     .fallback(problems.not_found())
/// # }
/// ```
#[derive(Clone)]
pub struct Problems(Answers);

impl Problems {
    /// Problems with the texts of `pipeline`.
    pub fn new(pipeline: &Pipeline) -> Self {
        Self(Answers::new(pipeline))
    }

    /// The answer that `failure` is to this request, in its language.
    pub fn respond(&self, request: &Request, failure: &Failure) -> Response {
        let caller = self.0.caller(request.uri(), request.headers());
        self.0.refuse(&caller, failure)
    }

    /// A handler for `Router::fallback`: a path that nobody serves is 404 with a problem (X1).
    pub fn not_found(
        &self,
    ) -> impl Fn(Request) -> std::future::Ready<Response> + Clone + Send + Sync + 'static {
        let problems = self.clone();
        move |request| std::future::ready(problems.respond(&request, &Failure::route_not_found()))
    }
}

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Problems")
    }
}
