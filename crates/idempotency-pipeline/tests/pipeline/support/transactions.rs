//! A transaction manager that does as it is told and says what happened.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use idempotency_pipeline::{
    BoxError, Commit, InvocationContext, InvocationError, Transaction, TransactionManager,
};

use super::Log;

/// How a commit is to end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Committed,
    RolledBack,
    Unknown,
    Panic,
}

/// Commits as scripted, else successfully; each step is a line of the log.
#[derive(Clone)]
pub(crate) struct Ledger {
    name: &'static str,
    log: Log,
    ends: Arc<Mutex<VecDeque<End>>>,
}

impl Ledger {
    pub(crate) fn new(name: &'static str, log: &Log) -> Self {
        Self {
            name,
            log: log.clone(),
            ends: Arc::default(),
        }
    }

    pub(crate) fn next(&self, end: End) {
        self.ends.lock().unwrap().push_back(end);
    }
}

#[async_trait]
impl TransactionManager for Ledger {
    async fn begin(&self, _: &InvocationContext) -> Result<Box<dyn Transaction>, InvocationError> {
        self.log.add(format!("{} begin", self.name));
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Transaction for Ledger {
    async fn commit(self: Box<Self>) -> Commit {
        let end = self
            .ends
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or(End::Committed);
        self.log.add(format!("{} commit {end:?}", self.name));
        match end {
            End::Committed => Commit::Committed,
            End::RolledBack => Commit::RolledBack("serialization failure".into()),
            End::Unknown => Commit::Unknown("connection reset".into()),
            End::Panic => panic!("the driver panicked"),
        }
    }

    async fn rollback(self: Box<Self>) -> Result<(), BoxError> {
        self.log.add(format!("{} rollback", self.name));
        Ok(())
    }
}
