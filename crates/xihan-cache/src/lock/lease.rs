//! When the command has to be stopped.

use std::time::Duration;

use xihan_caching::{LockHandle, TimeToLive};

/// The machine may sleep, and timers with it: look at the clocks at least this often.
const LOOK: Duration = Duration::from_secs(1);
const LONGEST_GRACE: Duration = Duration::from_secs(10);
const LONGEST_MARGIN: Duration = Duration::from_secs(1);

/// What happens how long before the end of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The command is asked to stop.
    pub(super) ask: Duration,
    /// Whatever is left of it is killed.
    pub(super) kill: Duration,
}

impl Plan {
    /// The plan for leases of `time_to_live`: TERM `grace` before the end (a fifth of the lease,
    /// at most 10 s, if nobody says otherwise), KILL a tenth of it before, at most 1 s.
    pub(super) fn new(time_to_live: TimeToLive, grace: Option<Duration>) -> Self {
        let whole = time_to_live.as_duration();
        let kill = (whole / 10).min(LONGEST_MARGIN);
        let ask = grace.unwrap_or((whole / 5).min(LONGEST_GRACE));
        Self {
            ask: ask.max(kill),
            kill,
        }
    }

    /// What is due with so much of the lease left.
    pub(super) fn due(&self, left: Duration) -> Step {
        if left <= self.kill {
            Step::Kill
        } else if left <= self.ask {
            Step::Ask
        } else {
            Step::Run
        }
    }

    /// How long it is until the next step after `step`, with so much of the lease left.
    fn until_after(&self, step: Step, left: Duration) -> Duration {
        let next = match step {
            Step::Run => self.ask,
            Step::Ask | Step::Kill => self.kill,
        };
        left.saturating_sub(next)
    }
}

/// How far the end of a command has come, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Run,
    Ask,
    Kill,
}

/// Waits for the next look at the lease, at the latest when the step after `step` is due: a
/// renewal may have put it off, or the lock may be gone.
///
/// # Cancellation safety
/// At any point.
pub(super) async fn next_look(handle: &LockHandle, plan: Plan, step: Step) {
    if step == Step::Kill {
        // Everything is done that can be.
        return tokio::time::sleep(LOOK).await;
    }
    let pause = plan.until_after(step, handle.remaining()).min(LOOK);
    // Whether it was the time or the loss, the caller finds out.
    let _ = tokio::time::timeout(pause, handle.lost()).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use xihan_caching::{milliseconds, minutes, seconds};

    fn plan(time_to_live: Duration, grace: Option<Duration>) -> Plan {
        Plan::new(TimeToLive::new(time_to_live).unwrap(), grace)
    }

    #[test]
    fn part11_the_command_is_asked_early_and_killed_before_the_end() {
        let of = |time_to_live| {
            let plan = plan(time_to_live, None);
            (plan.ask, plan.kill)
        };
        assert_eq!(of(seconds(30)), (seconds(6), seconds(1)));
        assert_eq!(of(minutes(4)), (seconds(10), seconds(1)));
        assert_eq!(of(seconds(1)), (milliseconds(200), milliseconds(100)));
    }

    #[test]
    fn part11_a_grace_that_is_too_short_is_no_grace() {
        let plan = plan(seconds(10), Some(Duration::ZERO));
        assert_eq!(plan.ask, plan.kill);
        assert_eq!(plan.due(plan.kill + milliseconds(1)), Step::Run);
        assert_eq!(plan.due(plan.kill), Step::Kill);
    }

    #[test]
    fn part11_a_lease_that_is_over_means_kill() {
        let plan = plan(seconds(30), None);
        assert_eq!(plan.due(seconds(7)), Step::Run);
        assert_eq!(plan.due(seconds(6)), Step::Ask);
        assert_eq!(plan.due(Duration::ZERO), Step::Kill);
    }
}
