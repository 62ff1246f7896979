use std::sync::Arc;

use caching_abstractions::CachingServices;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Pipeline, Shared};
use crate::engine::IdempotencyMiddleware;
use crate::problem::Catalogues;
use crate::stage::{
    Authenticator, Authorizer, Middleware, Stage, Step, TenantOfPrincipal, TenantResolver,
};
use crate::transaction::{TransactionManager, TransactionStep};

/// Collects what a pipeline is made of.
///
/// Nothing is required: without an authenticator every caller is anonymous, without a tenant
/// resolver the tenant is the one the principal belongs to.
#[must_use]
pub struct PipelineBuilder {
    steps: Vec<(Stage, Step)>,
    has_tenant_resolver: bool,
    challenges: Vec<&'static str>,
    catalogues: Catalogues,
}

impl PipelineBuilder {
    pub(super) fn new() -> Self {
        Self {
            steps: Vec::new(),
            has_tenant_resolver: false,
            challenges: Vec::new(),
            catalogues: Catalogues::built_in(),
        }
    }

    /// Who finds out who is calling.
    pub fn authenticate(mut self, authenticator: impl Authenticator) -> Self {
        self.challenges.push(authenticator.challenge());
        self.step(
            Stage::Authenticate,
            Step::Authenticate(Box::new(authenticator)),
        )
    }

    /// Who finds out which tenant a call is for.
    pub fn tenant(mut self, resolver: impl TenantResolver) -> Self {
        self.has_tenant_resolver = true;
        self.step(Stage::Tenant, Step::Tenant(Box::new(resolver)))
    }

    /// Who decides whether the caller may do this.
    pub fn authorize(self, authorizer: impl Authorizer) -> Self {
        self.step(Stage::Authorize, Step::Authorize(Box::new(authorizer)))
    }

    /// What commits or rolls back around the handler.
    pub fn transaction(self, manager: impl TransactionManager) -> Self {
        self.step(
            Stage::Transaction,
            Step::Transaction(TransactionStep::new(manager)),
        )
    }

    /// A step of your own, at the end of `stage` as registered so far.
    pub fn middleware(self, stage: Stage, middleware: impl Middleware) -> Self {
        self.step(stage, Step::Middleware(Box::new(middleware)))
    }

    /// The texts of problems, with the application's own.
    pub fn catalogues(mut self, catalogues: Catalogues) -> Self {
        self.catalogues = catalogues;
        self
    }

    fn step(mut self, stage: Stage, step: Step) -> Self {
        self.steps.push((stage, step));
        self
    }

    /// Builds the pipeline; the Idempotency stage is there because a store is (P3).
    pub fn build(mut self, caching: &(impl CachingServices + ?Sized)) -> Pipeline {
        let tasks = TaskTracker::new();
        let settings = caching.settings().idempotency.clone();
        let stage = IdempotencyMiddleware::new(
            Arc::clone(caching.store()),
            settings.clone(),
            tasks.clone(),
        );
        if !self.has_tenant_resolver {
            self = self.tenant(TenantOfPrincipal);
        }
        // Decoding ends the Validate stage, and the Idempotency stage begins with its own step.
        self.steps.push((Stage::Validate, Step::Validate));
        self.steps
            .insert(0, (Stage::Idempotency, Step::Idempotency(stage)));
        self.steps.sort_by_key(|(stage, _)| *stage);
        Pipeline(Arc::new(Shared {
            steps: self.steps.into_iter().map(|(_, step)| step).collect(),
            settings,
            challenge: self.challenges.join(", "),
            catalogues: Arc::new(self.catalogues),
            tasks,
            cancellation: CancellationToken::new(),
        }))
    }
}

impl std::fmt::Debug for PipelineBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PipelineBuilder")
            .field("steps", &self.steps.len())
            .finish_non_exhaustive()
    }
}
