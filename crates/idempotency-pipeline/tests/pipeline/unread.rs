//! X1, P12, P15: callers who are refused before their request is read whole.

use axum::body::{Body, Bytes};

use crate::refusals::Refuses;
use crate::support::http::{post, send};
use crate::support::{Fixture, create_order};

#[tokio::test]
async fn x1_a_401_says_what_credentials_are_asked_for() {
    let fixture = Fixture::built(|builder| builder.authenticate(Refuses));
    let app = fixture.app(&create_order(&fixture.runs));
    let answer = send(&app, post("a", &[])).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("www-authenticate")),
        (401, Some("Test"))
    );

    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    let answer = send(&app, post("a", &[])).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("www-authenticate")),
        (201, None)
    );
}

#[tokio::test]
async fn p12_the_body_of_a_caller_who_is_refused_is_not_read() {
    let fixture = Fixture::built(|builder| builder.authenticate(Refuses));
    let app = fixture.app(&create_order(&fixture.runs));
    let unread = Body::from_stream(futures_util::stream::poll_fn(
        |_| -> std::task::Poll<Option<std::io::Result<Bytes>>> { panic!("the body was read") },
    ));
    let answer = send(&app, post("a", &[]).map(|_| unread)).await;
    assert_eq!(answer.status, 401);
}

#[tokio::test(start_paused = true)]
async fn p15_a_body_that_does_not_arrive_is_a_timeout_and_executes_nothing() {
    let fixture = Fixture::new();
    let app = fixture.app(&create_order(&fixture.runs));
    let endless = Body::from_stream(futures_util::stream::pending::<std::io::Result<Bytes>>());
    let answer = send(&app, post("a", &[]).map(|_| endless)).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (408, "HTTP_TIMEOUT_001".to_owned())
    );
    assert_eq!((fixture.runs.count(), fixture.store.round_trips()), (0, 0));
}
