//! The Transaction stage: what the handler did is committed as a whole or not at all (P6).

use std::error::Error;
use std::panic::AssertUnwindSafe;

use async_trait::async_trait;
use caching_abstractions::CachingError;
use futures_util::FutureExt;

use crate::context::{CommitState, InvocationContext};
use crate::outcome::{Completion, Exception, InvocationError};
use crate::stage::Next;

/// Begins a transaction for each invocation.
#[async_trait]
pub trait TransactionManager: Send + Sync + 'static {
    /// Begins one; what the handler needs of it goes into `context.extensions()`.
    ///
    /// # Errors
    /// The refusal or exception the caller sees; the handler does not run.
    async fn begin(
        &self,
        context: &InvocationContext,
    ) -> Result<Box<dyn Transaction>, InvocationError>;
}

/// A transaction that has begun.
///
/// A success commits it. A business failure, an exception and a panic roll it back.
#[async_trait]
pub trait Transaction: Send {
    /// Commits. The response is encoded before this is called.
    async fn commit(self: Box<Self>) -> Commit;

    /// Rolls back.
    ///
    /// # Errors
    /// What went wrong; it is logged, and the invocation ends as it would have.
    async fn rollback(self: Box<Self>) -> Result<(), BoxError>;
}

/// Any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// How a commit ended.
#[derive(Debug)]
pub enum Commit {
    /// The work is committed.
    Committed,
    /// Nothing of it is: the invocation ends with an exception, and a retry may run.
    RolledBack(BoxError),
    /// Nobody knows, for example because the connection broke: the invocation ends with an
    /// exception, and no retry runs until the marker has run out.
    Unknown(BoxError),
}

pub(crate) struct TransactionStep(Box<dyn TransactionManager>);

impl TransactionStep {
    pub(crate) fn new(manager: impl TransactionManager) -> Self {
        Self(Box::new(manager))
    }

    pub(crate) async fn handle(&self, context: &InvocationContext, next: Next) -> Completion {
        let transaction = match self.0.begin(context).await {
            Ok(transaction) => transaction,
            Err(error) => return error.into(),
        };
        let completion = match AssertUnwindSafe(next.run(context)).catch_unwind().await {
            Ok(completion) => completion,
            Err(panic) => Err(Exception::panicked(&*panic)),
        };
        match completion {
            Ok(outcome) if outcome.result().is_ok() => {
                commit(context, transaction).await?;
                Ok(outcome)
            }
            not_a_success => {
                roll_back(transaction).await;
                not_a_success
            }
        }
    }
}

async fn commit(
    context: &InvocationContext,
    transaction: Box<dyn Transaction>,
) -> Result<(), Exception> {
    // What an inner transaction has committed stays so, however this one ends.
    let before = context.commit();
    // From here until the commit has answered, whatever happens counts as unknown.
    context.set_commit(CommitState::Begun);
    let end = AssertUnwindSafe(transaction.commit()).catch_unwind().await;
    match end.unwrap_or_else(|_| Commit::Unknown("the commit panicked".into())) {
        Commit::Committed => {
            context.set_commit(CommitState::Committed);
            Ok(())
        }
        Commit::RolledBack(cause) => {
            context.set_commit(before);
            Err(CachingError::internal("the transaction was rolled back")
                .with_source(cause)
                .into())
        }
        Commit::Unknown(cause) => {
            tracing::error!(
                operation = context.operation(),
                error = %cause,
                "the outcome of a commit is unknown"
            );
            Err(
                CachingError::internal("the outcome of the commit is unknown")
                    .with_source(cause)
                    .into(),
            )
        }
    }
}

async fn roll_back(transaction: Box<dyn Transaction>) {
    match AssertUnwindSafe(transaction.rollback())
        .catch_unwind()
        .await
    {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "a rollback failed"),
        Err(_) => tracing::error!("a rollback panicked"),
    }
}
