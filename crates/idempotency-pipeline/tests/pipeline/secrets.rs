//! X3: no log line, `Debug`, text or answer gives away a token, a stored value or a secret.

use std::io::Write;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use caching_abstractions::seconds;
use idempotency_pipeline::{
    Baggage, EntryKind, Failure, IdempotencyRecord, InvocationContext, InvocationError, Operation,
    RequestSource,
};
use tokio::time::sleep;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{
    ByMetadata, Create, End, Fault, Fixture, Gate, Ledger, Log, Op, Order, create_order,
    gated_order, keyed, operation,
};

/// Part of every response, and so of every record.
const STORED: &str = "stored-value-4711";
/// Stands for a credential in the metadata of a call.
const SECRET: &str = "dev-alice-key";

/// Where the log goes.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Buffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Everything that was shown, and the tokens that must not be in it.
#[derive(Default)]
struct Shown {
    text: String,
    tokens: Vec<Bytes>,
}

impl Shown {
    fn add(&mut self, what: impl std::fmt::Debug) {
        self.text.push_str(&format!("{what:?}\n{what:#?}\n"));
    }

    fn add_result(&mut self, result: Result<(Order, InvocationContext), InvocationError>) {
        match result {
            Ok((_, context)) => self.add(context),
            Err(error) => {
                self.text.push_str(&format!("{error}\n"));
                self.add(error);
            }
        }
    }

    /// The token of what is stored under `key`, which follows four bytes of header.
    fn note_token(&mut self, fixture: &Fixture, key: &str) {
        if let Some(stored) = fixture.stored(key) {
            self.add(IdempotencyRecord::decode(&stored));
            self.tokens.push(stored.slice(4..20));
        }
    }

    fn assert_clean(&self) {
        assert!(!self.tokens.is_empty());
        for text in [STORED, SECRET] {
            assert!(!self.text.contains(text), "{text} in {}", self.text);
        }
        for token in &self.tokens {
            let hex: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
            let list = format!("{:?}", token.to_vec());
            let escaped = format!("{token:?}");
            let lossy = String::from_utf8_lossy(token).into_owned();
            for form in [
                &hex,
                &hex.to_uppercase(),
                list.trim_matches(['[', ']']),
                &escaped[2..18],
                &lossy,
            ] {
                assert!(!self.text.contains(form), "a token is in the text");
            }
        }
    }
}

/// An operation whose responses hold [`STORED`].
fn create(fixture: &Fixture) -> Operation<Create, Order> {
    operation("orders.create", &fixture.runs, |id, _, _| async move {
        Ok(Order {
            id,
            name: STORED.to_owned(),
        })
    })
}

/// Success, replay, conflict, failure, panic, outage at both ends, full store, unknown commit.
async fn many_scenarios(shown: &mut Shown) {
    let log = Log::default();
    let ledger = Ledger::new("ledger", &log);
    let fixture = Fixture::with(
        |builder| builder.authenticate(ByMetadata).transaction(ledger.clone()),
        |settings| settings.fingerprint = true,
    );
    let create = create(&fixture);
    for _ in 0..2 {
        shown.add_result(fixture.call(&create, "a").await);
    }
    shown.note_token(&fixture, "a");
    shown.add_result(
        fixture
            .call(&crate::support::refuse_order(&fixture.runs), "a")
            .await,
    );
    shown.add_result(
        fixture
            .call(&crate::support::refuse_order(&fixture.runs), "b")
            .await,
    );
    shown.note_token(&fixture, "b");
    let panics = operation("orders.panic", &fixture.runs, |_, _, _| async {
        panic!("no more paper")
    });
    fixture.store.next(Op::TryRemove, Fault::Lost);
    shown.add_result(fixture.call(&panics, "c").await);
    shown.note_token(&fixture, "c");
    for (operation, fault) in [
        (Op::GetOrAdd, Fault::ReplyLost),
        (Op::GetOrAdd, Fault::Full),
        (Op::TryReplace, Fault::Lost),
        (Op::TryReplace, Fault::Full),
    ] {
        fixture.store.next(operation, fault);
        shown.add_result(fixture.call(&create, "d").await);
        shown.note_token(&fixture, "d");
        sleep(seconds(90_000)).await;
    }
    for end in [End::Unknown, End::RolledBack, End::Panic] {
        ledger.next(end);
        shown.add_result(fixture.call(&create, "e").await);
        shown.note_token(&fixture, "e");
        sleep(seconds(90)).await;
    }
    long_and_lost(shown).await;
    shown.add((&fixture.pipeline, &fixture.invoker, &create));
}

/// A call that loses its marker, and whose record is lost.
async fn long_and_lost(shown: &mut Shown) {
    let fixture = Fixture::new();
    let gate = Gate::new();
    let held = gated_order(&fixture.runs, &gate);
    let call = tokio::spawn({
        let (fixture, held) = (fixture.clone(), held.clone());
        async move { fixture.call(&held, "a").await }
    });
    gate.reached().await;
    shown.note_token(&fixture, "a");
    fixture.store.next(Op::TryExtend, Fault::Lost);
    sleep(seconds(30)).await;
    fixture.put("a", format!("{STORED} of another"));
    sleep(seconds(30)).await;
    gate.open();
    shown.add_result(call.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn x3_logs_texts_and_debug_show_no_token_and_no_stored_value() {
    let buffer = Buffer::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(buffer.clone())
        .finish();
    // With one dispatcher alone, `tracing` asks only the thread that meets an event first whether
    // anybody wants it, and the other tests' threads want none.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let mut shown = Shown::default();
    {
        let _logging = tracing_subscriber::util::SubscriberInitExt::set_default(subscriber);
        many_scenarios(&mut shown).await;
    }
    let logged = buffer.text();
    for line in [
        "trying on",
        "the store is full",
        "is unknown",
        "panicked",
        "is lost",
        "is gone",
    ] {
        assert!(
            logged.contains(line),
            "the scenarios reach `{line}`: {logged}"
        );
    }
    shown.text.push_str(&logged);
    shown.assert_clean();
}

#[tokio::test]
async fn x3_debug_of_contexts_and_requests_shows_no_secret() {
    let fixture = Fixture::built(|builder| builder.authenticate(ByMetadata));
    let mut shown = Shown::default();
    let metadata = std::collections::HashMap::from([
        ("authorization".to_owned(), format!("ApiKey {SECRET}")),
        ("user".to_owned(), "alice".to_owned()),
    ]);
    let baggage = Baggage::parse([format!("session={SECRET}").as_bytes()]).unwrap();
    let builder = EntryKind::Typed
        .context()
        .metadata(metadata)
        .baggage(baggage);
    shown.add(&builder);
    let request = Create::new(STORED);
    let result = fixture
        .invoker
        .invoke_typed(&create_order(&fixture.runs), builder, &request)
        .await;
    shown.add(result.unwrap().1);
    shown.add(RequestSource::Json(Bytes::from(STORED)));
    shown.add(RequestSource::Parameters(vec![(
        "key".to_owned(),
        SECRET.to_owned(),
    )]));
    fixture.call(&create(&fixture), "a").await.unwrap();
    shown.note_token(&fixture, "a");
    let context = keyed(EntryKind::Raw, "b");
    let request = Bytes::from(r#"{"name":"a"}"#);
    fixture
        .invoker
        .invoke(&create(&fixture), context, request)
        .await
        .unwrap();
    shown.note_token(&fixture, "b");
    shown.assert_clean();
}

#[cfg(feature = "http")]
#[tokio::test]
async fn x3_problems_show_no_secret_of_the_request() {
    use crate::support::http::{post, send};
    let refuses = crate::support::Step(|_: &InvocationContext| {
        crate::support::Then::Answer(Ok(Failure::unauthenticated().into()))
    });
    let fixture = Fixture::built(|builder| {
        builder.middleware(idempotency_pipeline::Stage::Authenticate, refuses)
    });
    let app = fixture.app(&create(&fixture));
    let key = format!("ApiKey {SECRET}");
    let headers = [("authorization", key.as_str()), ("cookie", SECRET)];
    let answer = send(&app, post("a", &headers)).await;
    assert_eq!(answer.status, 401);
    let text = format!("{:?} {}", answer.headers, answer.problem());
    assert!(!text.contains(SECRET), "{text}");
    let app = Fixture::new().app(&create(&fixture));
    let mut unread = post("a", &headers);
    *unread.body_mut() = axum::body::Body::from(format!("{{\"name\":{STORED}"));
    let answer = send(&app, unread).await;
    assert_eq!(answer.status, 400);
    let text = answer.problem().to_string();
    assert!(!text.contains(STORED) && !text.contains(SECRET), "{text}");
}

#[test]
fn x3_a_failure_shows_only_what_its_caller_sees() {
    let failure = Failure::from(
        caching_abstractions::CachingError::internal("broken")
            .with_source(std::io::Error::other(SECRET)),
    );
    assert!(!format!("{failure:?} {failure}").contains(SECRET));
}
