//! A connection that is opened again whenever it breaks, for ever.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::client::{ConnectionSettings, Purpose};
use crate::connection::{Connection, End};
use crate::error::{Attempt, Cause, Fault, RefusalKind};
use crate::locator::Locator;
use crate::server::{Expectations, Mismatch};

/// The longest and the shortest pause between two attempts to open a connection.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(1000));
/// So many connections in a row may break young before commands no longer wait for the next one.
const PATIENCE: u32 = 3;
/// A connection that breaks sooner than this counts as a failed attempt.
const SETTLED: Duration = Duration::from_secs(1);

/// A supervised connection to whatever `Locator` finds.
///
/// Dropping it ends the connection.
#[derive(Debug)]
pub(crate) struct Link {
    state: watch::Receiver<State>,
    supervisor: JoinHandle<()>,
    limit: Duration,
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
    /// Whether somebody has to change the server or the configuration.
    pub(crate) is_lasting: bool,
    /// Whether it is about the login.
    pub(crate) is_login: bool,
}

impl Link {
    /// Begins to open a connection, in a task of the current runtime.
    pub(crate) fn new(
        locator: Locator,
        settings: ConnectionSettings,
        purpose: Purpose,
        expected: Expectations,
    ) -> Self {
        let (sender, state) = watch::channel(State::Opening);
        let limit = settings.limit;
        let supervisor = Supervisor {
            locator,
            settings,
            purpose,
            expected,
            state: sender,
            failures: 0,
        };
        Self {
            state,
            supervisor: tokio::spawn(supervisor.run()),
            limit,
        }
    }

    /// The connection, if it stands or soon does.
    ///
    /// # Errors
    /// [`Fault::NotSent`] with the reason why it does not work.
    pub(crate) async fn connection(&self) -> Attempt<Arc<Connection>> {
        match self.settled().await {
            State::Up(connection) => Ok(connection),
            State::Down(trouble) => Err(Fault::NotSent(trouble.cause)),
            State::Opening => Err(Fault::NotSent(Cause::new("the store was shut down"))),
        }
    }

    /// How the link stands when the attempt that is under way is over.
    pub(crate) async fn settled(&self) -> State {
        let now = self.state.borrow().clone();
        match now {
            // Its end was not noticed yet.
            State::Up(connection) if connection.is_closed() => {}
            State::Opening => {}
            settled => return settled,
        }
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| match state {
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

    /// The connection, if it stands.
    pub(crate) fn standing(&self) -> Option<Arc<Connection>> {
        match &*self.state.borrow() {
            State::Up(connection) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// Whether it is known not to work.
    pub(crate) fn is_down(&self) -> bool {
        matches!(&*self.state.borrow(), State::Down(_))
    }

    /// The state and its changes.
    pub(crate) fn states(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Marks a command that is on its way.
    pub(crate) fn in_flight<'a>(&self, connection: &'a Arc<Connection>) -> InFlight<'a> {
        InFlight::new(connection, Instant::now(), self.limit)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

/// A command on its way. If nobody waits for its answer any more, this makes sure that it does not
/// lie in a queue and is sent much later (S5).
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    connection: &'a Arc<Connection>,
    sent: Instant,
    limit: Duration,
    answered: bool,
}

impl<'a> InFlight<'a> {
    /// Of a command that is sent now and has to be answered within `limit`.
    pub(crate) fn new(connection: &'a Arc<Connection>, now: Instant, limit: Duration) -> Self {
        Self {
            connection,
            sent: now,
            limit,
            answered: false,
        }
    }

    /// It was answered, or certainly cannot be.
    pub(crate) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        if self.sent.elapsed() >= self.limit / 2 {
            // Answers come in order, so nobody behind it gets one either.
            self.connection.close();
            return;
        }
        // Whatever is answered after it proves that it is in no queue of this process.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            self.connection.close();
            return;
        };
        let (connection, limit) = (Arc::clone(self.connection), self.limit);
        if !connection.begin_probe() {
            return;
        }
        runtime.spawn(async move {
            while connection.wants_probe() {
                let ping = connection.execute("PING", Vec::new());
                if timeout(limit, ping).await.is_err() {
                    connection.close();
                }
            }
        });
    }
}

/// The task behind a link.
struct Supervisor {
    locator: Locator,
    settings: ConnectionSettings,
    purpose: Purpose,
    expected: Expectations,
    state: watch::Sender<State>,
    failures: u32,
}

impl Supervisor {
    async fn run(mut self) {
        loop {
            match self.attempt().await {
                Ok((connection, end)) => self.watch_over(connection, end).await,
                Err(trouble) => self.report(trouble),
            }
            sleep(self.pause()).await;
        }
    }

    async fn attempt(&mut self) -> Result<(Connection, End), Trouble> {
        // More than all the single limits together; nothing may hang.
        let most = self.settings.limit * 4 + Duration::from_secs(1);
        let opening = async {
            let address = self.locator.locate(&self.settings).await?;
            Connection::open(&address, &self.settings, self.purpose).await
        };
        let (connection, end) = match timeout(most, opening).await {
            Ok(opened) => opened.map_err(Trouble::from)?,
            Err(_) => return Err(Fault::not_answered(most).into()),
        };
        match connection.info.check(self.expected) {
            Ok(()) => Ok((connection, end)),
            Err(mismatch) => Err(Trouble::mismatch(&connection, mismatch)),
        }
    }

    /// Shows the connection to everybody until it is over.
    async fn watch_over(&mut self, connection: Connection, end: End) {
        let address = connection.address.clone();
        tracing::debug!(%address, purpose = ?self.purpose, "connected to redis");
        if let (Some(policy), Purpose::Commands) = (connection.info.evicts_by(), self.purpose) {
            tracing::warn!(
                %address,
                policy,
                "redis evicts keys when it is full, locks and idempotency records included; set \
                 its maxmemory-policy to noeviction"
            );
        }
        let begun = Instant::now();
        self.state.send_replace(State::Up(Arc::new(connection)));
        let cause = end.reached().await;
        tracing::warn!(%address, %cause, "the connection to redis broke");
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

    fn report(&mut self, trouble: Trouble) {
        self.failures = self.failures.saturating_add(1);
        if self.failures == 1 {
            tracing::warn!(cause = %trouble.cause, "redis cannot be reached");
        }
        self.state.send_replace(State::Down(trouble));
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

impl Trouble {
    fn mismatch(connection: &Connection, mismatch: Mismatch) -> Self {
        let (text, is_lasting) = match mismatch {
            Mismatch::Lasting(text) => (text, true),
            Mismatch::Passing(text) => (text, false),
        };
        let text = format!("the server at {} does not do: {text}", connection.address);
        Self {
            cause: Cause::new(text),
            is_lasting,
            is_login: false,
        }
    }
}

impl From<Cause> for Trouble {
    fn from(cause: Cause) -> Self {
        Self {
            cause,
            is_lasting: false,
            is_login: false,
        }
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NotSent(cause) | Fault::Unknown(cause) => cause.into(),
            Fault::Refused(refusal) => {
                let is_login = refusal.kind == RefusalKind::Login;
                Self {
                    cause: Cause::new(format!("the server refuses: {refusal}")),
                    is_lasting: is_login,
                    is_login,
                }
            }
        }
    }
}
