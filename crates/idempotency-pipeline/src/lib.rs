//! The invocation pipeline and its Idempotency stage.
