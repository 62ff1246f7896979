//! A running service, a client that sends any bytes, and what the tests ask of answers.

mod answer;
mod connection;
mod metrics;
mod process;
mod request;

pub(crate) use answer::Answer;
pub(crate) use connection::Connection;
pub(crate) use metrics::Metrics;
pub(crate) use process::{Launch, Service};
pub(crate) use request::{ALICE, BOB, CAROL, ROOT, Request, order};

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Far longer than anything takes that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until there is an answer.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        sleep(Duration::from_millis(10)).await;
    }
}
