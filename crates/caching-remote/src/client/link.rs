//! A connection that is opened again whenever it breaks, for ever.

use std::sync::Arc;
use std::time::Duration;

use caching_abstractions::CachingError;
use rand::RngExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::client::connection::{Connection, ConnectionSettings, Transport};
use crate::client::error::{Attempt, Cause, Fault};
use crate::client::phase::{Ending, Phase, Why};

/// The longest and the shortest pause between two attempts to open a connection.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(1000));
/// So many connections in a row may break young before calls no longer wait for the next one.
const PATIENCE: u32 = 3;
/// A connection that breaks sooner than this counts as a failed attempt.
const SETTLED: Duration = Duration::from_secs(1);

/// A supervised connection.
///
/// Dropping it ends the connection.
#[derive(Debug)]
pub(crate) struct Link {
    state: watch::Receiver<State>,
    supervisor: JoinHandle<()>,
}

/// How a link stands.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// The outcome of an attempt is near.
    Opening,
    /// It works.
    Up(Arc<Connection>),
    /// It does not work, and attempts go on.
    Down(Trouble),
}

/// Why a link does not work.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) cause: Cause,
    /// Where the server does not let the caller in: somebody has to change the configuration.
    pub(crate) refusal: Option<CachingError>,
}

impl Link {
    /// Begins to open a connection, in a task of the current runtime.
    pub(crate) fn new(settings: ConnectionSettings, transport: Transport) -> Self {
        let (sender, state) = watch::channel(State::Opening);
        let supervisor = Supervisor {
            settings,
            transport,
            is_quiet: false,
            state: sender,
            failures: 0,
        };
        Self {
            state,
            supervisor: tokio::spawn(supervisor.run()),
        }
    }

    /// The connection, if it stands.
    pub(crate) fn standing(&self) -> Option<Arc<Connection>> {
        match &*self.state.borrow() {
            State::Up(connection) if !connection.is_closed() => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// The connection, if it stands or soon does.
    ///
    /// # Errors
    /// The reason why it does not work; nothing was sent.
    pub(crate) async fn connection(&self) -> Attempt<Arc<Connection>> {
        match self.settled().await {
            State::Up(connection) => Ok(connection),
            State::Down(trouble) => Err(match trouble.refusal {
                Some(error) => Fault::Refused(error),
                None => Fault::NotSent(trouble.cause),
            }),
            State::Opening => Err(Fault::NotSent(Cause::new("the store was shut down"))),
        }
    }

    /// How the link stands when the attempt that is under way is over.
    pub(crate) async fn settled(&self) -> State {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| match state {
            // Its end was not noticed yet.
            State::Up(connection) => !connection.is_closed(),
            State::Opening => false,
            State::Down(_) => true,
        });
        settled.await.map_or(State::Opening, |state| state.clone())
    }

    /// Completes when the link works.
    pub(crate) async fn works(&self) {
        let mut state = self.state.clone();
        let works = |state: &State| match state {
            State::Up(connection) => !connection.is_closed(),
            _ => false,
        };
        if state.wait_for(works).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

/// The task behind a link.
struct Supervisor {
    settings: ConnectionSettings,
    transport: Transport,
    is_quiet: bool,
    state: watch::Sender<State>,
    failures: u32,
}

impl Supervisor {
    async fn run(mut self) {
        loop {
            match self.attempt().await {
                Ok(connection) => self.watch_over(connection).await,
                Err(ending) => self.report(ending),
            }
            sleep(self.pause()).await;
        }
    }

    async fn attempt(&self) -> Result<Connection, Ending> {
        let open = |transport| Connection::open(&self.settings, transport, self.is_quiet);
        match open(self.transport).await {
            Err(Ending {
                why: Why::NoSession,
                ..
            }) => open(Transport::Unary).await,
            other => other,
        }
    }

    /// Shows the connection to everybody until it takes no more calls.
    async fn watch_over(&mut self, connection: Connection) {
        let endpoint = self.settings.endpoint.clone();
        tracing::debug!(%endpoint, transport = ?connection.transport, "connected to the remote store");
        let begun = Instant::now();
        let mut phase = connection.phase();
        self.state.send_replace(State::Up(Arc::new(connection)));
        let over = phase.wait_for(|phase| matches!(phase, Phase::Draining(_) | Phase::Over(_)));
        let over = match over.await {
            Ok(phase) => phase.clone(),
            Err(_) => Phase::Draining(Cause::new("the connection was closed")),
        };
        let cause = match over {
            Phase::Over(ending) => {
                self.learn(&ending);
                ending.cause()
            }
            Phase::Draining(cause) => cause,
            Phase::Opening | Phase::Open => return,
        };
        tracing::warn!(%endpoint, %cause, "the connection to the remote store is over");
        if begun.elapsed() >= SETTLED {
            self.failures = 0;
        } else {
            self.failures = self.failures.saturating_add(1);
        }
        self.state.send_replace(if self.failures > PATIENCE {
            // It may go on like this: nobody is to wait for it.
            State::Down(cause.into())
        } else {
            State::Opening
        });
    }

    fn report(&mut self, ending: Ending) {
        self.failures = self.failures.saturating_add(1);
        self.learn(&ending);
        let cause = ending.cause();
        if self.failures == 1 {
            let endpoint = &self.settings.endpoint;
            tracing::warn!(%endpoint, %cause, "the remote store cannot be reached");
        }
        let refusal = match ending.why {
            Why::Refused(error) => Some(error),
            Why::Broke(_) | Why::NoSession => None,
        };
        self.state
            .send_replace(State::Down(Trouble { cause, refusal }));
    }

    /// Does not do again what a server has ended a connection for.
    fn learn(&mut self, ending: &Ending) {
        self.is_quiet |= ending.is_about_pings;
        if let Some(longest) = ending.longest {
            self.settings.longest = self.settings.longest.min(longest);
        }
    }

    /// Nothing after a connection that worked; else twice as long each time, with jitter.
    fn pause(&self) -> Duration {
        if self.failures == 0 {
            return Duration::ZERO;
        }
        let (least, most) = PAUSE;
        let longest = (least * 2_u32.saturating_pow(self.failures.min(10))).min(most);
        longest.mul_f64(rand::rng().random_range(0.5..1.0))
    }
}

impl From<Cause> for Trouble {
    fn from(cause: Cause) -> Self {
        Self {
            cause,
            refusal: None,
        }
    }
}
