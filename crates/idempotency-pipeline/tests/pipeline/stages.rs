//! P1 order of the stages, P2 the two ends of a call, P3 calls without a key, P13 messages.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::CachingError;
use idempotency_pipeline::{
    Authenticator, Authorizer, EntryKind, Exception, InvocationContext, InvocationError,
    PipelineBuilder, Principal, Stage, TenantResolver,
};

use crate::support::{
    Create, Fixture, INTERNAL, Ledger, Log, Order, Traced, code, create_order, keyed, operation,
    out_of_stock,
};

/// Decides by logging its name.
struct Decides(&'static str, Log);

#[async_trait]
impl Authenticator for Decides {
    fn challenge(&self) -> &'static str {
        "Test"
    }

    async fn authenticate(
        &self,
        _: &InvocationContext,
    ) -> Result<Option<Principal>, InvocationError> {
        self.1.add(self.0);
        Ok(None)
    }
}

#[async_trait]
impl TenantResolver for Decides {
    async fn tenant(&self, _: &InvocationContext) -> Result<Option<Arc<str>>, InvocationError> {
        self.1.add(self.0);
        Ok(None)
    }
}

#[async_trait]
impl Authorizer for Decides {
    async fn authorize(&self, _: &InvocationContext) -> Result<(), InvocationError> {
        self.1.add(self.0);
        Ok(())
    }
}

/// Two steps in every stage, registered with the stages in a wrong order.
fn traced(builder: PipelineBuilder, log: &Log) -> PipelineBuilder {
    let step = |name| Traced(name, log.clone());
    builder
        .middleware(Stage::Transaction, step("transaction 1"))
        .transaction(Ledger::new("ledger", log))
        .middleware(Stage::Idempotency, step("idempotency 1"))
        .middleware(Stage::Validate, step("validate 1"))
        .middleware(Stage::Authorize, step("authorize 1"))
        .authorize(Decides("authorizer", log.clone()))
        .tenant(Decides("tenant", log.clone()))
        .middleware(Stage::Tenant, step("tenant 2"))
        .middleware(Stage::Authenticate, step("authenticate 1"))
        .authenticate(Decides("authenticator", log.clone()))
        .middleware(Stage::Authenticate, step("authenticate 3"))
        .middleware(Stage::Authorize, step("authorize 3"))
        .middleware(Stage::Validate, step("validate 2"))
        .middleware(Stage::Idempotency, step("idempotency 2"))
        .middleware(Stage::Transaction, step("transaction 3"))
}

/// What every entry has to log; `with_validator` says whether the call has one.
fn expected(with_validator: bool) -> Vec<String> {
    let mut lines = vec![
        ">authenticate 1",
        "authenticator",
        ">authenticate 3",
        "tenant",
        ">tenant 2",
        ">authorize 1",
        "authorizer",
        ">authorize 3",
        ">validate 1",
        ">validate 2",
    ];
    if with_validator {
        lines.push("validator");
    }
    lines.extend([
        ">idempotency 1",
        ">idempotency 2",
        ">transaction 1",
        "ledger begin",
        ">transaction 3",
        "handler",
        "<transaction 3",
        "ledger commit Committed",
        "<transaction 1",
        "<idempotency 2",
        "<idempotency 1",
        "<validate 2",
        "<validate 1",
        "<authorize 3",
        "<authorize 1",
        "<tenant 2",
        "<authenticate 3",
        "<authenticate 1",
    ]);
    lines.into_iter().map(str::to_owned).collect()
}

/// An operation that logs its validator and its handler.
fn logged(log: &Log) -> idempotency_pipeline::Operation<Create, Order> {
    let (validated, handled) = (log.clone(), log.clone());
    operation(
        "orders.create",
        &Default::default(),
        move |id, _, request| {
            handled.add("handler");
            async move {
                Ok(Order {
                    id,
                    name: request.name,
                })
            }
        },
    )
    .validate(move |_| {
        validated.add("validator");
        Ok(())
    })
}

#[tokio::test]
async fn p1_typed_and_raw_calls_pass_the_stages_in_order_with_and_without_a_key() {
    let log = Log::default();
    let fixture = Fixture::built(|builder| traced(builder, &log));
    let create = logged(&log);
    fixture.call(&create, "a").await.unwrap();
    assert_eq!(log.take(), expected(true));
    let context = EntryKind::Typed.context();
    fixture
        .invoker
        .invoke_typed(&create, context, &Create::new("Mouse"))
        .await
        .unwrap();
    assert_eq!(log.take(), expected(true));
    let context = keyed(EntryKind::Raw, "b");
    let request = Bytes::from(r#"{"name":"Mouse"}"#);
    fixture
        .invoker
        .invoke(&create, context, request)
        .await
        .unwrap();
    assert_eq!(log.take(), expected(true));
}

#[tokio::test]
async fn p1_plain_calls_and_messages_pass_the_stages_in_order() {
    let log = Log::default();
    let fixture = Fixture::built(|builder| traced(builder, &log));
    for entry in [EntryKind::Plain, EntryKind::Message] {
        let handled = log.clone();
        let work = move |context: InvocationContext| async move {
            assert_eq!((context.entry(), context.operation()), (entry, None));
            handled.add("handler");
            Ok(())
        };
        fixture
            .pipeline
            .invoke(keyed(entry, "a"), work)
            .await
            .unwrap();
        assert_eq!(log.take(), expected(false), "{entry:?}");
    }
}

#[cfg(feature = "http")]
#[tokio::test]
async fn p1_http_calls_pass_the_stages_in_order() {
    use crate::support::http::{post, send};
    let log = Log::default();
    let fixture = Fixture::built(|builder| traced(builder, &log));
    let answer = send(&fixture.app(&logged(&log)), post("a", &[])).await;
    assert_eq!(answer.status, 200);
    assert_eq!(log.take(), expected(true));
}

type MakeError = fn() -> InvocationError;

/// An error that a handler may meet, and whether it is a business failure.
fn ends() -> Vec<(&'static str, MakeError, bool)> {
    vec![
        ("failure", || out_of_stock().into(), true),
        (
            "lock held",
            || CachingError::lock_held("report").into(),
            true,
        ),
        (
            "key reused",
            || CachingError::key_reused("a", "b").into(),
            true,
        ),
        (
            "wrong kind",
            || CachingError::wrong_kind("a", "a list").into(),
            true,
        ),
        (
            "bad key",
            || CachingError::invalid_key("empty").into(),
            true,
        ),
        (
            "bad expiration",
            || CachingError::invalid_expiration("zero").into(),
            true,
        ),
        (
            "refused nested call",
            || Exception::from(CachingError::in_progress()).into(),
            true,
        ),
        (
            "refused nested call, as it is",
            || InvocationError::Exception(CachingError::in_progress().into()),
            true,
        ),
        ("away", || CachingError::unavailable("away").into(), false),
        ("full", || CachingError::store_full("full").into(), false),
        (
            "internal",
            || CachingError::internal("broken").into(),
            false,
        ),
        ("unknown", || std::io::Error::other("disk").into(), false),
    ]
}

#[tokio::test]
async fn p2_business_failures_are_recorded_and_exceptions_are_not() {
    for (name, error, is_failure) in ends() {
        let fixture = Fixture::new();
        let fail = operation("orders.fail", &fixture.runs, move |_, _, _| async move {
            Err(error())
        });
        let first = fixture.call(&fail, "a").await.unwrap_err();
        assert_eq!(
            matches!(first, InvocationError::Failure(_)),
            is_failure,
            "{name}: {first:?}"
        );
        assert_eq!(fixture.stored("a").is_some(), is_failure, "{name}");
        let again = fixture.call(&fail, "a").await.unwrap_err();
        assert_eq!(code(&first), code(&again), "{name}");
        assert_eq!(
            fixture.runs.count(),
            if is_failure { 1 } else { 2 },
            "{name}"
        );
    }
}

#[tokio::test]
async fn p2_an_unknown_error_is_internal_and_keeps_its_text_to_itself() {
    let fixture = Fixture::new();
    let fail = operation("orders.fail", &fixture.runs, |_, _, _| async {
        Err(std::io::Error::other("the password is hunter2").into())
    });
    let error = fixture.call(&fail, "a").await.unwrap_err();
    assert_eq!(code(&error), INTERNAL);
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn p3_a_call_without_a_key_reaches_the_handler_and_never_the_store() {
    let fixture = Fixture::new();
    let create = create_order(&fixture.runs);
    for run in 1..=2 {
        let context = EntryKind::Typed.context();
        let request = Create::new("Keyboard");
        let (order, context) = fixture
            .invoker
            .invoke_typed(&create, context, &request)
            .await
            .unwrap();
        assert_eq!(order.id, run);
        assert!(!idempotency_pipeline::was_replayed(&context));
    }
    fixture
        .pipeline
        .invoke(EntryKind::Plain.context(), |_| async { Ok(()) })
        .await
        .unwrap();
    assert_eq!(fixture.store.round_trips(), 0);
}

#[tokio::test]
async fn p13_the_key_of_a_message_is_ignored() {
    let fixture = Fixture::new();
    for _ in 0..2 {
        let runs = fixture.runs.clone();
        let work = move |context: InvocationContext| async move {
            assert_eq!(context.baggage().idempotency_key(), None);
            runs.begin();
            Ok(())
        };
        fixture
            .pipeline
            .invoke(keyed(EntryKind::Message, "a"), work)
            .await
            .unwrap();
    }
    assert_eq!((fixture.runs.count(), fixture.store.round_trips()), (2, 0));
}
