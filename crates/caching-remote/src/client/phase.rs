//! How a connection stands, as its task tells everybody else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caching_abstractions::CachingError;
use tokio::sync::watch;

use crate::client::error::Cause;
use crate::client::session::Session;

/// What a connection and its task share.
pub(crate) struct Shared {
    pub(crate) session: Session,
    /// Whether the server minds pings while nothing else happens.
    pub(crate) is_quiet: bool,
    phase: watch::Sender<Phase>,
    takes_calls: AtomicBool,
}

/// How a connection stands.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// Nobody knows yet whether the server takes calls.
    Opening,
    /// It does.
    Open,
    /// It answers what it has, and takes nothing new.
    Draining(Cause),
    /// It is over.
    Over(Ending),
}

/// How a connection ended.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) why: Why,
    /// Whether the server may have begun with what it did not answer.
    pub(crate) has_begun: bool,
    /// Whether the server minds pings.
    pub(crate) is_about_pings: bool,
    /// How long a message may be, where that is why the server ended it.
    pub(crate) longest: Option<usize>,
}

/// Why a connection ended.
#[derive(Clone, Debug)]
pub(crate) enum Why {
    /// It broke, or was closed.
    Broke(Cause),
    /// The server does not let the caller in.
    Refused(CachingError),
    /// The server does not know sessions.
    NoSession,
}

impl Ending {
    pub(crate) fn broke(cause: Cause) -> Self {
        Self {
            why: Why::Broke(cause),
            has_begun: true,
            is_about_pings: false,
            longest: None,
        }
    }

    /// What happened, in words.
    pub(crate) fn cause(&self) -> Cause {
        match &self.why {
            Why::Broke(cause) => cause.clone(),
            Why::Refused(error) => Cause::new(error.to_string()),
            Why::NoSession => Cause::new("the server does not offer sessions"),
        }
    }
}

impl Shared {
    pub(crate) fn new(limit: Duration, longest: usize, is_quiet: bool) -> Self {
        Self {
            session: Session::new(limit, longest),
            is_quiet,
            phase: watch::Sender::new(Phase::Opening),
            takes_calls: AtomicBool::new(true),
        }
    }

    /// Whether it makes sense to call.
    pub(crate) fn takes_calls(&self) -> bool {
        self.takes_calls.load(Ordering::Acquire)
    }

    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// The server took the caller in.
    pub(crate) fn works(&self) {
        self.phase.send_if_modified(|phase| {
            let is_news = matches!(phase, Phase::Opening);
            if is_news {
                *phase = Phase::Open;
            }
            is_news
        });
    }

    /// The server takes nothing new.
    pub(crate) fn drain(&self, cause: &Cause) {
        self.takes_calls.store(false, Ordering::Release);
        self.session.retire(cause);
        self.phase.send_if_modified(|phase| {
            let is_news = matches!(phase, Phase::Opening | Phase::Open);
            if is_news {
                *phase = Phase::Draining(cause.clone());
            }
            is_news
        });
    }

    /// It is over; the first reason counts.
    pub(crate) fn end(&self, ending: Ending) {
        self.takes_calls.store(false, Ordering::Release);
        self.session.end(&ending.cause(), ending.has_begun);
        self.phase.send_if_modified(|phase| {
            let is_news = !matches!(phase, Phase::Over(_));
            if is_news {
                *phase = Phase::Over(ending);
            }
            is_news
        });
    }
}
