//! How an operation finds a connection, and what happens when something goes wrong on the way.

use std::sync::Arc;
use std::time::Duration;

use caching_abstractions::{CachingError, ErrorCode};
use rand::RngExt;
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::connection::{AROUND, Connection, ConnectionSettings, Transport};
use crate::client::error::{Attempt, Cause, Fault};
use crate::client::link::{Link, State};
use crate::client::reply::Answer;
use crate::client::request::Request;
use crate::wire;

/// The way to the server.
#[derive(Debug)]
pub(crate) struct Calls {
    link: Link,
    limit: Duration,
    longest: usize,
}

impl Calls {
    /// Begins to connect, in a task of the current runtime.
    pub(crate) fn new(settings: ConnectionSettings, transport: Transport) -> Self {
        let (limit, longest) = (settings.limit, settings.longest);
        Self {
            link: Link::new(settings, transport),
            limit,
            longest,
        }
    }

    /// How it stands when the first attempt to connect is over.
    pub(crate) async fn settled(&self) -> State {
        self.link.settled().await
    }

    /// The time limit of one operation.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// How long the fields of a request may be.
    pub(crate) fn room(&self) -> usize {
        self.longest.saturating_sub(AROUND)
    }

    /// Has `request` executed within the time limit.
    ///
    /// # Cancellation safety
    /// When the future is dropped, or the limit is over, what was not sent yet never is.
    pub(crate) async fn call(&self, request: &Request<'_>) -> Attempt<Answer> {
        let deadline = Instant::now() + self.limit;
        let mut is_lost = false;
        let result = self.attempts(request, deadline, &mut is_lost).await;
        match result {
            // Nothing that happens later can undo it (S4).
            Err(fault) if is_lost => Err(fault.after_a_lost_answer()),
            result => result,
        }
    }

    async fn attempts(
        &self,
        request: &Request<'_>,
        deadline: Instant,
        is_lost: &mut bool,
    ) -> Attempt<Answer> {
        loop {
            let connection = self.connection(deadline).await?;
            let fault = match connection.call(request, deadline).await {
                Ok(Answer::Failure(failure)) => Fault::Refused(wire::error::from_failure(&failure)),
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            let goes_on = match &fault {
                // A session that stands has too much to do; a stream of its own was refused.
                Fault::NotSent(_) => {
                    connection.is_closed() || connection.transport == Transport::Unary
                }
                Fault::Refused(error) => connection.is_closed() && is_not_begun(error),
                Fault::Unknown(_) => {
                    *is_lost = true;
                    request.kind.is_repeatable()
                }
            };
            if !goes_on || !self.recovered(&connection, deadline).await {
                return Err(fault);
            }
        }
    }

    /// The connection, if there is or soon will be one.
    pub(crate) async fn connection(&self, deadline: Instant) -> Attempt<Arc<Connection>> {
        if let Some(connection) = self.link.standing() {
            return Ok(connection);
        }
        match timeout_at(deadline, self.link.connection()).await {
            Ok(result) => result,
            Err(_) => {
                let text = format!(
                    "there was no connection within {} ms",
                    self.limit.as_millis()
                );
                Err(Fault::NotSent(Cause::new(text)))
            }
        }
    }

    /// Waits until another attempt makes sense, and says whether it came to that.
    pub(crate) async fn recovered(&self, before: &Connection, deadline: Instant) -> bool {
        let pause = async {
            if !before.is_closed() {
                // The call alone failed, or it is the first to notice.
                let milliseconds = rand::rng().random_range(5..20);
                sleep(Duration::from_millis(milliseconds)).await;
            }
            if before.is_closed() {
                self.link.works().await;
            }
        };
        timeout_at(deadline, pause).await.is_ok()
    }

    /// Completes when there is a connection.
    pub(crate) async fn works(&self) {
        self.link.works().await;
    }
}

/// Whether a server that goes away says that it has not begun.
fn is_not_begun(error: &CachingError) -> bool {
    error.code() == ErrorCode::StoreUnavailable && !error.may_have_been_applied()
}
