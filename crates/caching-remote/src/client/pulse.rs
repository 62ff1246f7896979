//! Whether the other side still lives: pings of HTTP/2, sent when nothing is heard.

use std::task::{Context, Poll};
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::Instant;

use crate::client::error::Cause;

/// A peer that says nothing for `patience` is pinged, and given up after as long again.
pub(crate) struct Pulse {
    pings: Option<PingPong>,
    patience: Duration,
    heard: Instant,
    asked: Option<Instant>,
}

impl Pulse {
    /// Notices within `limit` that a peer is dead.
    pub(crate) fn new(pings: Option<PingPong>, limit: Duration) -> Self {
        Self {
            pings,
            patience: limit / 2,
            heard: Instant::now(),
            asked: None,
        }
    }

    /// Something came.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// When there is something to do.
    pub(crate) fn due(&self) -> Instant {
        let since = self.asked.map_or(self.heard, |asked| asked.max(self.heard));
        since + self.patience
    }

    /// Takes a pong that came.
    pub(crate) fn listen(&mut self, context: &mut Context<'_>) {
        if let (Some(pings), Some(_)) = (&mut self.pings, self.asked)
            && let Poll::Ready(Ok(_)) = pings.poll_pong(context)
        {
            self.asked = None;
            self.heard = Instant::now();
        }
    }

    /// Asks if it is time, unless there is no reason to.
    ///
    /// # Errors
    /// The peer does not answer.
    pub(crate) fn tick(&mut self, now: Instant, has_reason: bool) -> Result<(), Cause> {
        if now < self.due() {
            return Ok(());
        }
        if self.asked.is_some() {
            let silence = (now - self.heard).as_millis();
            return Err(Cause::new(format!("it has said nothing for {silence} ms")));
        }
        if !has_reason {
            self.heard = now;
        } else if let Some(pings) = &mut self.pings {
            // It fails where the connection is over, which is noticed elsewhere.
            let _ = pings.send_ping(Ping::opaque());
            self.asked = Some(now);
        }
        Ok(())
    }
}
