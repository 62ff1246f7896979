//! The stages of an invocation and how to add to them (P1).

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use crate::context::{InvocationContext, Principal};
use crate::engine::IdempotencyMiddleware;
use crate::outcome::{Completion, InvocationError};
use crate::transaction::TransactionStep;
use crate::work::Work;

/// The stages, in the order in which every invocation passes them (P1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Finds out who is calling.
    Authenticate,
    /// Finds out which tenant the call is for.
    Tenant,
    /// Decides whether the caller may do this.
    Authorize,
    /// Decodes the request and checks it.
    Validate,
    /// Executes a call with an idempotency key once; see [`IdempotencyMiddleware`].
    Idempotency,
    /// Commits what the handler did, or rolls it back.
    Transaction,
}

/// A step around everything behind it.
///
/// - Within a stage, middleware runs in the order of registration.
/// - Middleware up to Validate sees every call; what it refuses leaves no record (P12).
/// - Middleware of the stages Idempotency and Transaction runs once per idempotency key, to its
///   end even if the caller goes away (P15), and not for a replay (P8).
///
/// # Cancellation safety
/// Up to Validate, and for calls without a key, the future is dropped when the caller goes away.
#[async_trait]
pub trait Middleware: Send + Sync + 'static {
    /// Handles one invocation; `next.run(context)` runs what is behind.
    ///
    /// # Errors
    /// An [`Exception`](crate::Exception) that is not recorded.
    async fn handle(&self, context: &InvocationContext, next: Next) -> Completion;
}

/// Finds out who is calling: the Authenticate stage.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// What a caller who is not known is asked for on HTTP: the value of `WWW-Authenticate` that
    /// goes with a 401, such as `ApiKey` or `Bearer`.
    fn challenge(&self) -> &'static str;

    /// The caller, or none where anonymous callers are welcome.
    ///
    /// # Errors
    /// The refusal the caller sees, such as `Failure::unauthenticated()`.
    async fn authenticate(
        &self,
        context: &InvocationContext,
    ) -> Result<Option<Principal>, InvocationError>;
}

/// Finds out which tenant a call is for: the Tenant stage.
#[async_trait]
pub trait TenantResolver: Send + Sync + 'static {
    /// The tenant, or none.
    ///
    /// # Errors
    /// The refusal the caller sees.
    async fn tenant(
        &self,
        context: &InvocationContext,
    ) -> Result<Option<Arc<str>>, InvocationError>;
}

/// Takes the tenant that the principal belongs to; what a pipeline does unless told otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct TenantOfPrincipal;

#[async_trait]
impl TenantResolver for TenantOfPrincipal {
    async fn tenant(
        &self,
        context: &InvocationContext,
    ) -> Result<Option<Arc<str>>, InvocationError> {
        Ok(context
            .principal()
            .and_then(|principal| principal.tenant().cloned()))
    }
}

/// Decides whether the caller may do this: the Authorize stage.
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// Lets the call through or not.
    ///
    /// # Errors
    /// The refusal the caller sees, such as `Failure::forbidden()`.
    async fn authorize(&self, context: &InvocationContext) -> Result<(), InvocationError>;
}

/// One step of the chain.
pub(crate) enum Step {
    Authenticate(Box<dyn Authenticator>),
    Tenant(Box<dyn TenantResolver>),
    Authorize(Box<dyn Authorizer>),
    Validate,
    Idempotency(IdempotencyMiddleware),
    Transaction(TransactionStep),
    Middleware(Box<dyn Middleware>),
}

/// What is behind a step: the later steps, then the handler.
pub struct Next {
    steps: Arc<[Step]>,
    position: usize,
    work: Work,
}

impl Next {
    pub(crate) fn new(steps: Arc<[Step]>, work: Work) -> Self {
        Self {
            steps,
            position: 0,
            work,
        }
    }

    /// Runs the later steps and the handler.
    ///
    /// # Errors
    /// The exception that one of them ended with.
    pub fn run(mut self, context: &InvocationContext) -> BoxFuture<'_, Completion> {
        Box::pin(async move {
            // Steps that only decide run in this loop; one that goes around the rest takes over.
            loop {
                let steps = Arc::clone(&self.steps);
                let Some(step) = steps.get(self.position) else {
                    return self.work.execute(context).await;
                };
                self.position += 1;
                match step {
                    Step::Validate => {
                        self.work = match self.work.prepare(context).await {
                            Ok(work) => work,
                            Err(error) => return error.into(),
                        };
                    }
                    Step::Idempotency(stage) => return stage.handle(context, self).await,
                    Step::Transaction(stage) => return stage.handle(context, self).await,
                    Step::Middleware(middleware) => return middleware.handle(context, self).await,
                    decision => {
                        if let Err(error) = decision.decide(context).await {
                            return error.into();
                        }
                    }
                }
            }
        })
    }

    pub(crate) fn work(&self) -> &Work {
        &self.work
    }
}

impl std::fmt::Debug for Next {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Next")
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl Step {
    /// The steps that let a call pass or refuse it.
    async fn decide(&self, context: &InvocationContext) -> Result<(), InvocationError> {
        match self {
            Self::Authenticate(authenticator) => {
                if let Some(principal) = authenticator.authenticate(context).await? {
                    context.set_principal(principal);
                }
            }
            Self::Tenant(resolver) => {
                if let Some(tenant) = resolver.tenant(context).await? {
                    context.set_tenant(tenant);
                }
            }
            Self::Authorize(authorizer) => authorizer.authorize(context).await?,
            Self::Validate | Self::Idempotency(_) | Self::Transaction(_) | Self::Middleware(_) => {}
        }
        Ok(())
    }
}
