//! Signals that are passed on to the command.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

/// What is passed on. TSTP is caught as well, because a holder of a lock must not be suspended.
const CAUGHT: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
];

/// The caught signals as they come.
pub(super) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Catches them from now on; except those that were ignored so far, as `nohup` does with HUP:
    /// they stay ignored, for the command, too.
    pub(super) fn catch() -> io::Result<Self> {
        let ignored = ignored();
        CAUGHT
            .into_iter()
            .filter(|signal| ignored & bit(*signal) == 0)
            .map(|signal| Ok((signal, unix::signal(SignalKind::from_raw(signal as i32))?)))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// The next one.
    ///
    /// # Cancellation safety
    /// No signal is lost.
    pub(super) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, caught) in &mut self.0 {
                if caught.poll_recv(context).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The next one that would have ended this process: waiting for a lock has no other use for
    /// signals.
    ///
    /// # Cancellation safety
    /// As [`next`](Self::next), but for those that end nothing.
    pub(super) async fn next_to_end(&mut self) -> Signal {
        loop {
            match self.next().await {
                Signal::SIGUSR1 | Signal::SIGUSR2 | Signal::SIGTSTP => {}
                signal => return signal,
            }
        }
    }
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as i32 - 1)
}

/// The signals that this process ignores, one bit each; none where the system does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .map(str::trim);
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok())
        .unwrap_or(0)
}
