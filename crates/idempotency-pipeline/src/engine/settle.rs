use bytes::Bytes;
use caching_abstractions::{CacheEntryOptions, ErrorCode, Result};

use super::background::Fate;
use super::{Engine, Execution};
use crate::context::InvocationContext;
use crate::outcome::{Completion, Outcome};
use crate::record::IdempotencyRecord;

impl Execution {
    /// Replaces the marker by what the call came to; the caller gets its real answer in any case.
    pub(super) async fn settle(
        self,
        context: &InvocationContext,
        completion: Completion,
    ) -> Completion {
        match &completion {
            Ok(outcome) if outcome.counts() => self.keep(outcome).await,
            _ if Self::may_be_committed(context) => {
                tracing::error!(
                    operation = self.operation.as_deref(),
                    "a call may have been committed; its marker is left to run out"
                );
                self.engine.meters.unknown();
            }
            _ => self.forget().await,
        }
        completion
    }

    /// Records the outcome.
    async fn keep(self, outcome: &Outcome) {
        self.engine.meters.executed();
        if let Err(error) = self.write(|| self.record(outcome)).await {
            tracing::warn!(%error, "an outcome is not recorded yet; trying on");
            let record = self.record(outcome);
            self.write_in_background(record);
        }
    }

    /// Removes the marker, so that a retry may run (P6).
    async fn forget(self) {
        self.engine.meters.failed();
        let removed = self.store().try_remove(&self.key, &self.marker).await;
        if removed.is_err() {
            self.remove_marker_in_background(Fate::Written);
        }
    }

    fn record(&self, outcome: &Outcome) -> Bytes {
        IdempotencyRecord::completed(
            self.token,
            self.operation.as_deref(),
            self.fingerprint,
            outcome,
            self.engine.settings.max_recorded_response_bytes,
        )
    }

    /// One attempt to record; `Ok` where there is nothing more to do.
    pub(super) async fn write(&self, record: impl Fn() -> Bytes) -> Result<()> {
        match self.write_over_marker(&record, self.record_options()).await {
            Err(error) if error.code() == ErrorCode::StoreFull => {
                // The record without anything takes the room that the marker holds (P14).
                tracing::warn!("the store is full; an outcome is recorded without its response");
                let bare = || IdempotencyRecord::opaque(self.token);
                self.write_over_marker(bare, self.record_options().essential())
                    .await
            }
            answer => answer,
        }
    }

    async fn write_over_marker(
        &self,
        record: impl Fn() -> Bytes,
        options: CacheEntryOptions,
    ) -> Result<()> {
        let store = self.store();
        if store
            .try_replace(&self.key, &self.marker, record(), options)
            .await?
        {
            return Ok(());
        }
        // The marker is not there. An empty key, as after a restart of the store, may be written;
        // our own record means that a reply was lost; anything else is another call's (P5, P20).
        match store.get_or_add(&self.key, record(), options).await? {
            None => Ok(()),
            Some(found) if IdempotencyRecord::is_record_of(self.token, &found) => Ok(()),
            Some(_) => {
                let cause = "its key belongs to another call";
                self.engine.record_lost(self.operation.as_deref(), cause);
                Ok(())
            }
        }
    }
}

impl Engine {
    pub(super) fn record_lost(&self, operation: Option<&str>, cause: &str) {
        tracing::error!(operation, cause, "the record of a call is lost");
        self.meters.record_lost();
    }
}
