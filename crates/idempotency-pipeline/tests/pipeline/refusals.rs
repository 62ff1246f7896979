//! P12: who is refused before the Idempotency stage leaves no record.

use std::sync::Arc;

use async_trait::async_trait;
use idempotency_pipeline::{
    Authenticator, Authorizer, Failure, InvocationContext, InvocationError, Principal, Stage,
    TenantResolver,
};

use crate::support::{Fixture, Step, Then, create_order, out_of_stock};

/// Refuses everybody.
pub(crate) struct Refuses;

#[async_trait]
impl Authenticator for Refuses {
    fn challenge(&self) -> &'static str {
        "Test"
    }

    async fn authenticate(
        &self,
        _: &InvocationContext,
    ) -> Result<Option<Principal>, InvocationError> {
        Err(Failure::unauthenticated().into())
    }
}

#[async_trait]
impl TenantResolver for Refuses {
    async fn tenant(&self, _: &InvocationContext) -> Result<Option<Arc<str>>, InvocationError> {
        Err(Failure::forbidden().into())
    }
}

#[async_trait]
impl Authorizer for Refuses {
    async fn authorize(&self, _: &InvocationContext) -> Result<(), InvocationError> {
        Err(Failure::forbidden().into())
    }
}

async fn assert_refused_without_a_trace(fixture: &Fixture, expected: &str) {
    let create = create_order(&fixture.runs);
    for _ in 0..2 {
        assert_eq!(fixture.refusal(&create, "a").await, expected);
    }
    assert_eq!((fixture.runs.count(), fixture.store.round_trips()), (0, 0));
}

#[tokio::test]
async fn p12_a_call_refused_by_the_deciding_stages_writes_no_record() {
    let fixture = Fixture::built(|builder| builder.authenticate(Refuses));
    assert_refused_without_a_trace(&fixture, "HTTP_UNAUTHENTICATED_001").await;
    let fixture = Fixture::built(|builder| builder.tenant(Refuses));
    assert_refused_without_a_trace(&fixture, "HTTP_FORBIDDEN_001").await;
    let fixture = Fixture::built(|builder| builder.authorize(Refuses));
    assert_refused_without_a_trace(&fixture, "HTTP_FORBIDDEN_001").await;
}

#[tokio::test]
async fn p12_a_call_refused_by_middleware_before_the_stage_writes_no_record() {
    for stage in [
        Stage::Authenticate,
        Stage::Tenant,
        Stage::Authorize,
        Stage::Validate,
    ] {
        let refuses = Step(|_: &InvocationContext| Then::Answer(Ok(out_of_stock().into())));
        let fixture = Fixture::built(|builder| builder.middleware(stage, refuses));
        assert_refused_without_a_trace(&fixture, "ORDERS_CONFLICT_001").await;
    }
}

#[tokio::test]
async fn p12_a_request_that_does_not_decode_or_validate_writes_no_record() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs).validate(|request| match request.name.as_str() {
        "Keyboard" => Err(Failure::new("ORDERS_VALIDATION_001")),
        _ => Ok(()),
    });
    assert_eq!(fixture.refusal(&create, "a").await, "ORDERS_VALIDATION_001");
    let context = crate::support::keyed(idempotency_pipeline::EntryKind::Raw, "a");
    let error = fixture
        .invoker
        .invoke(&create, context, "{\"name\":".into())
        .await
        .unwrap_err();
    assert_eq!(crate::support::code(&error), "HTTP_VALIDATION_001");
    assert_eq!((fixture.runs.count(), fixture.store.round_trips()), (0, 0));
    // The key is still free for the corrected request.
    let context = crate::support::keyed(idempotency_pipeline::EntryKind::Raw, "a");
    let request = bytes::Bytes::from(r#"{"name":"Mouse"}"#);
    fixture
        .invoker
        .invoke(&create, context, request)
        .await
        .unwrap();
    assert_eq!(fixture.runs.count(), 1);
}

#[tokio::test]
async fn p12_a_refusal_behind_the_stage_is_an_outcome_like_any_other() {
    let refuses = Step(|_: &InvocationContext| Then::Answer(Ok(out_of_stock().into())));
    let fixture = Fixture::built(|builder| builder.middleware(Stage::Transaction, refuses));
    let create = create_order(&fixture.runs);
    assert_eq!(fixture.refusal(&create, "a").await, "ORDERS_CONFLICT_001");
    assert!(fixture.stored("a").is_some());
}
