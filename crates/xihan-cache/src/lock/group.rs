//! The process group of a command.

use std::time::Duration;

use futures_util::FutureExt;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};
use tokio::time::{Instant, sleep, timeout};
use xihan_caching::LockHandle;

use super::guard::machine_time;

/// How long a process may take from KILL to its end; longer only while the kernel works for it.
const DYING: Duration = Duration::from_secs(5);
/// How long a word to the guard may be under way on a machine that has too much to do.
const UNDER_WAY: Duration = Duration::from_millis(50);
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The processes of one command, with the guard among them.
///
/// As long as the guard is not waited for, no other group can get this number.
pub(super) struct Group {
    id: Pid,
    guard: Option<Guard>,
    told: Told,
}

/// What the guard was told, by [`machine_time`].
#[derive(Debug, Default)]
struct Told {
    /// Until when the group may live.
    moment: Option<Duration>,
    /// Until when an earlier moment, which was replaced late, may have made the guard act.
    in_doubt_until: Duration,
}

/// The guard's process, and the pipe whose end it takes for ours.
pub(super) struct Guard {
    pub(super) process: Child,
    pub(super) pipe: ChildStdin,
}

impl Group {
    pub(super) fn new(id: Pid, guard: Option<Guard>) -> Self {
        Self {
            id,
            guard,
            told: Told::default(),
        }
    }

    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Lets a command run that was started and waits for its guard.
    pub(super) fn go(&self) {
        #[cfg(target_os = "linux")]
        self.signal(Signal::SIGCONT);
    }

    /// Sends `signal` to every member; that there is none any more is no error.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = killpg(self.id, signal);
    }

    /// Asks every member to end, those that were stopped as well.
    pub(super) fn ask_to_end(&self) {
        self.signal(Signal::SIGTERM);
        self.signal(Signal::SIGCONT);
    }

    /// Tells the guard that the group may live until `margin` before the end of the lease of
    /// `handle`, and no longer unless it hears more. `false` if there is no guard to hear it.
    pub(super) fn may_live_with(&mut self, handle: &LockHandle, margin: Duration) -> bool {
        // The clock first: whatever comes between makes the moment earlier, not later.
        let (Some(guard), Ok(now)) = (&mut self.guard, machine_time()) else {
            return false;
        };
        let end = now + handle.remaining().saturating_sub(margin);
        let moment = u64::try_from(end.as_millis()).unwrap_or(u64::MAX);
        self.told.replace(Duration::from_millis(moment), now);
        // So little fits into the pipe at once. If it is full, the guard does not read; that must
        // not stop us.
        let written = guard.pipe.write_all(&moment.to_le_bytes()).now_or_never();
        matches!(written, Some(Ok(())))
    }

    /// Whether it may have been the guard that killed the group by now.
    pub(super) fn guard_may_have_acted(&self) -> bool {
        machine_time().is_ok_and(|now| self.told.may_have_acted(now))
    }

    /// How many processes of the command are there, the guard not counted; none where the system
    /// does not tell.
    pub(super) fn members(&self) -> Option<usize> {
        let guard = self.guard.as_ref().and_then(|guard| guard.process.id());
        let mut count = 0;
        for entry in std::fs::read_dir("/proc").ok()? {
            let name = entry.ok()?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            // What cannot be read has ended meanwhile, or is not ours.
            let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            if Some(id) != guard && is_member(&state, self.id) {
                count += 1;
            }
        }
        Some(count)
    }

    /// Waits until no process of the command is left, at most `limit`. `true` if none is.
    pub(super) async fn emptied_within(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut pause = SHORTEST_PAUSE;
        while self.members() != Some(0) {
            if Instant::now() >= end {
                return false;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        true
    }

    /// Kills whatever is left of the group, and waits until it is gone. `false` if something is
    /// still there after some seconds.
    pub(super) async fn end(mut self) -> bool {
        if self.guard.is_none() {
            // The command never ran; the number may belong to somebody else by now.
            return true;
        }
        self.signal(Signal::SIGKILL);
        let is_empty = self.members().is_none() || self.emptied_within(DYING).await;
        if let Some(Guard { mut process, pipe }) = self.guard.take() {
            drop(pipe);
            // It belongs to the group, so it was killed as well.
            let _ = timeout(DYING, process.wait()).await;
        }
        is_empty
    }
}

impl Told {
    fn replace(&mut self, moment: Duration, now: Duration) {
        if self.is_due(now) {
            self.in_doubt_until = now + DYING;
        }
        self.moment = Some(moment);
    }

    fn may_have_acted(&self, now: Duration) -> bool {
        self.is_due(now) || now < self.in_doubt_until
    }

    /// Whether the moment has come. A word that was sent shortly before it may come too late.
    fn is_due(&self, now: Duration) -> bool {
        self.moment.is_some_and(|moment| moment <= now + UNDER_WAY)
    }
}

/// Whether `stat` (of `/proc/ID/stat`) is that of a living process in `group`.
fn is_member(stat: &str, group: Pid) -> bool {
    // The name stands in parentheses and may hold any character.
    let Some((_, rest)) = stat.rsplit_once(") ") else {
        return false;
    };
    let mut fields = rest.split(' ');
    let (state, _parent, its_group) = (fields.next(), fields.next(), fields.next());
    let is_alive = !matches!(state, None | Some("Z" | "X" | "x"));
    is_alive && its_group.and_then(|text| text.parse().ok()) == Some(group.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_a_living_process_of_the_group_whatever_its_name() {
        let group = Pid::from_raw(12);
        assert!(is_member("34 (a) b) S 1 12 12 0 -1", group));
        assert!(is_member("12 (sh) R 1 12 12 0 -1", group));
        assert!(!is_member("34 (sh) S 1 13 12 0 -1", group));
        assert!(!is_member("34 (sh) Z 1 12 12 0 -1", group));
        assert!(!is_member("34 (12) S 1", group));
        assert!(!is_member("", group));
    }

    #[test]
    fn part11_a_guard_that_was_told_in_time_has_not_acted() {
        let at = Duration::from_millis;
        let mut told = Told::default();
        assert!(!told.may_have_acted(at(1000)));
        told.replace(at(5000), at(1000));
        told.replace(at(6000), at(2000));
        assert!(!told.may_have_acted(at(5500)));
        assert!(told.may_have_acted(at(5960)));
        assert!(told.may_have_acted(at(6000)));
    }

    #[test]
    fn part11_a_guard_that_was_told_late_may_have_acted_for_a_while() {
        let at = Duration::from_millis;
        let mut told = Told::default();
        told.replace(at(5000), at(1000));
        told.replace(at(60_000), at(5001));
        told.replace(at(61_000), at(5500));
        assert!(told.may_have_acted(at(6000)));
        assert!(!told.may_have_acted(at(11_000)));
    }
}
