//! Operations: written once, served by every transport.

mod erased;
mod fingerprint;
mod request;

pub(crate) use erased::ErasedOperation;
pub(crate) use fingerprint::Fingerprint;
pub use request::{PathParameters, RequestSource};

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::InvocationContext;
use crate::outcome::{InvocationError, SuccessStatus};
use crate::problem::Failure;

/// One thing a service does: an id, a request and a response type, and the handler.
///
/// Requests and responses are JSON through serde. Cheap to clone.
///
/// ```
/// use idempotency_pipeline::{Failure, Operation};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Deserialize)]
/// struct CreateOrder { name: String }
/// #[derive(Serialize, Deserialize)]
/// struct Order { id: u64, name: String }
///
/// let create_order = Operation::new("orders.create")
///     .handler(|_context, request: CreateOrder| async move {
///         if request.name == "Unobtainium" {
///             return Err(Failure::new("ORDERS_CONFLICT_001").into()); // recorded, replayed
///         }
///         Ok(Order { id: 1, name: request.name })
///     })
///     .validate(|request| match request.name.len() {
///         1..=100 => Ok(()),
///         _ => Err(Failure::new("ORDERS_VALIDATION_001")),
///     })
///     .created(|order| format!("/orders/{}", order.id)); // 201 and Location
/// assert_eq!(create_order.id(), "orders.create");
/// ```
pub struct Operation<Request, Response>(Arc<Definition<Request, Response>>);

struct Definition<Request, Response> {
    id: Arc<str>,
    handler: Handler<Request, Response>,
    validator: Option<Validator<Request>>,
    location: Option<Location<Response>>,
    status: SuccessStatus,
    is_query: bool,
    requires_key: bool,
    types: PhantomData<fn(Request) -> Response>,
}

type Handler<Request, Response> = Arc<
    dyn Fn(InvocationContext, Request) -> BoxFuture<'static, Result<Response, InvocationError>>
        + Send
        + Sync,
>;
type Validator<Request> = Arc<dyn Fn(&Request) -> Result<(), Failure> + Send + Sync>;
type Location<Response> = Arc<dyn Fn(&Response) -> String + Send + Sync>;

impl Operation<(), ()> {
    /// Begins an operation with this id, such as `orders.create`.
    ///
    /// The id is part of every record: once in use, it does not change.
    #[expect(
        clippy::new_ret_no_self,
        reason = "an operation is complete only with its handler"
    )]
    pub fn new(id: impl Into<Arc<str>>) -> OperationBuilder {
        OperationBuilder { id: id.into() }
    }
}

/// An operation that has an id and no handler yet.
#[derive(Clone, Debug)]
pub struct OperationBuilder {
    id: Arc<str>,
}

impl OperationBuilder {
    /// Sets what the operation does.
    ///
    /// - `Ok` is a success: recorded with its response.
    /// - `Err` with a [`Failure`] is a business failure: recorded. Any other error, and a panic,
    ///   is an exception: not recorded, and a retry runs again (P2).
    ///
    /// # Cancellation safety
    /// With an idempotency key the handler runs to its end even if the caller goes away (P15);
    /// without one its future is dropped then.
    ///
    /// # Where it runs
    /// With a key, the first poll may happen in the caller's task, and all others happen in a task
    /// of their own. So do not count on what belongs to a task: task-locals of the caller may be
    /// there at first and gone after an `.await`, or never be there. What a handler needs of its
    /// caller goes into the context's [`extensions`](InvocationContext::extensions).
    pub fn handler<Request, Response, F, Fut>(self, handler: F) -> Operation<Request, Response>
    where
        F: Fn(InvocationContext, Request) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response, InvocationError>> + Send + 'static,
        Request: DeserializeOwned + Send + 'static,
        Response: Serialize + 'static,
    {
        Operation(Arc::new(Definition {
            id: self.id,
            handler: Arc::new(move |context, request| Box::pin(handler(context, request))),
            validator: None,
            location: None,
            status: SuccessStatus::Done,
            is_query: false,
            requires_key: false,
            types: PhantomData,
        }))
    }
}

impl<Request, Response> Operation<Request, Response> {
    /// The operation's id.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    pub(crate) fn shared_id(&self) -> Arc<str> {
        Arc::clone(&self.0.id)
    }

    /// Checks each request in the Validate stage; a refused call leaves no record (P12).
    #[must_use]
    pub fn validate<F>(self, validator: F) -> Self
    where
        F: Fn(&Request) -> Result<(), Failure> + Send + Sync + 'static,
    {
        self.change(|definition| definition.validator = Some(Arc::new(validator)))
    }

    /// A success means that something was created, to be found at this location (HTTP 201).
    #[must_use]
    pub fn created<F>(self, location: F) -> Self
    where
        F: Fn(&Response) -> String + Send + Sync + 'static,
    {
        self.change(|definition| {
            definition.status = SuccessStatus::Created;
            definition.location = Some(Arc::new(location));
        })
    }

    /// A success means that the work is accepted, its state to be found at this location
    /// (HTTP 202).
    #[must_use]
    pub fn accepted<F>(self, location: F) -> Self
    where
        F: Fn(&Response) -> String + Send + Sync + 'static,
    {
        self.change(|definition| {
            definition.status = SuccessStatus::Accepted;
            definition.location = Some(Arc::new(location));
        })
    }

    /// The operation only reads: the Idempotency stage lets it through (P19).
    #[must_use]
    pub fn query(self) -> Self {
        self.change(|definition| definition.is_query = true)
    }

    /// A call without an idempotency key is refused with `CACHING_VALIDATION_001` (P19).
    #[must_use]
    pub fn require_key(self) -> Self {
        self.change(|definition| definition.requires_key = true)
    }

    fn change(self, change: impl FnOnce(&mut Definition<Request, Response>)) -> Self {
        let mut definition = match Arc::try_unwrap(self.0) {
            Ok(definition) => definition,
            // Somebody holds a clone: that one stays as it is.
            Err(shared) => Definition {
                id: Arc::clone(&shared.id),
                handler: Arc::clone(&shared.handler),
                validator: shared.validator.clone(),
                location: shared.location.clone(),
                status: shared.status,
                is_query: shared.is_query,
                requires_key: shared.requires_key,
                types: PhantomData,
            },
        };
        change(&mut definition);
        Self(Arc::new(definition))
    }
}

impl<Request, Response> Operation<Request, Response>
where
    Request: DeserializeOwned + Send + 'static,
    Response: Serialize + 'static,
{
    pub(crate) fn erase(&self) -> Arc<dyn ErasedOperation> {
        Arc::clone(&self.0) as Arc<dyn ErasedOperation>
    }
}

impl<Request, Response> Clone for Operation<Request, Response> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<Request, Response> fmt::Debug for Operation<Request, Response> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("id", &self.0.id)
            .finish_non_exhaustive()
    }
}
