//! The invocation pipeline of XiHan Caching and its Idempotency stage.
//!
//! A call with an idempotency key is executed once. Its outcome is recorded in the store, and a
//! repeat gets the recorded answer, byte for byte, whichever instance it reaches.
//!
//! - [`Operation`]: what a service does, written once.
//! - [`Pipeline`]: the stages that every call passes; [`OperationInvoker`] calls it from code.
//! - [`http`]: operations as routes of an axum router (feature `http`).
//! - [`Middleware`], [`Authenticator`], [`TransactionManager`]: how to add to the stages.
//!
//! The core knows no transport, and no store but the contract of `caching-abstractions`.

pub mod baggage;
mod context;
mod engine;
mod extensions;
pub mod language;
mod operation;
mod outcome;
mod pipeline;
pub mod problem;
mod record;
mod rendering;
mod scope;
mod stage;
mod transaction;
mod transport;
mod work;

pub use baggage::{Baggage, BaggageKeys};
pub use context::{
    EntryKind, InvocationContext, InvocationContextBuilder, Metadata, Principal, Replay,
    was_replayed,
};
pub use engine::IdempotencyMiddleware;
pub use extensions::Extensions;
pub use language::Language;
pub use operation::{Operation, OperationBuilder, PathParameters, RequestSource};
pub use outcome::{Completion, Exception, InvocationError, Outcome, Success, SuccessStatus};
pub use pipeline::{OperationInvoker, Pipeline, PipelineBuilder};
pub use problem::{Catalogues, Failure, Problem};
pub use record::{CompletedCall, ExecutionToken, IdempotencyRecord};
pub use rendering::{Renderer, Rendering};
pub use scope::record_key;
pub use stage::{
    Authenticator, Authorizer, Middleware, Next, Stage, TenantOfPrincipal, TenantResolver,
};
pub use transaction::{BoxError, Commit, Transaction, TransactionManager};
#[cfg(feature = "http")]
pub use transport::http;
