//! A command that runs under a lock, to its end.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::libc;
use nix::sys::signal::Signal;
use tokio::process::Child;
use tokio::signal::unix::{self, SignalKind, signal};
use xihan_caching::LockHandle;

use super::group::Group;
use super::lease::{Plan, Step, next_look};
use super::signals::Signals;
use super::start::Started;
use super::terminal;
use crate::commands::lock::OnLost;
use crate::console::Console;
use crate::status::Status;

/// How long what is left of a group may take to end, once its leader has ended.
const LEFT_OVER: Duration = Duration::from_secs(5);

/// What watching over a command needs to know.
pub(super) struct Watch<'a> {
    pub(super) handle: &'a LockHandle,
    pub(super) plan: Plan,
    pub(super) on_lost: OnLost,
    pub(super) signals: &'a mut Signals,
    pub(super) console: Console,
    pub(super) in_foreground: bool,
}

/// How a command ended.
pub(super) struct Ended {
    pub(super) status: Status,
    /// Whether the lock was lost before that, and how far the command was stopped for it.
    pub(super) lost: Option<Step>,
    /// Whether all of its processes are gone.
    pub(super) is_gone: bool,
}

/// A command and how far its end has come.
struct Running<'a> {
    watch: Watch<'a>,
    process: Child,
    group: Group,
    /// Tells that a child stopped or ended.
    children: unix::Signal,
    step: Step,
    /// Whether somebody asked it to end, so that what is left of it is no surprise.
    was_asked: bool,
    is_guarded: bool,
}

impl Watch<'_> {
    /// Lets the command run and watches over it until all of its group is gone.
    ///
    /// # Errors
    /// Those of the operating system; the group is gone then, too.
    pub(super) async fn over(self, started: Started) -> io::Result<Ended> {
        let mut running = Running {
            watch: self,
            children: signal(SignalKind::child())?,
            step: Step::Run,
            was_asked: false,
            is_guarded: true,
            process: started.process,
            group: started.group,
        };
        running.tell_guard();
        running.group.go();
        let status = running.wait().await;
        // A renewal that was answered since then does not undo what the guard did.
        let is_killed = matches!(&status, Ok(status) if status.signal() == Some(libc::SIGKILL));
        if is_killed && running.group.guard_may_have_acted() {
            running.step = Step::Kill;
        }
        let lost = running.lost();
        let group = running.group.id();
        let in_foreground = running.watch.in_foreground;
        let is_gone = running.clear().await;
        if in_foreground {
            terminal::take_back_from(group);
        }
        Ok(Ended {
            status: status_of(status?),
            lost,
            is_gone,
        })
    }
}

impl Running<'_> {
    /// Waits for the end of the command itself.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            let watch = &mut self.watch;
            tokio::select! {
                biased;
                status = self.process.wait() => return status,
                signal = watch.signals.next() => self.pass_on(signal),
                _ = self.children.recv() => self.look_for_stop(),
                () = next_look(watch.handle, watch.plan, self.step) => self.look(),
            }
        }
    }

    fn pass_on(&mut self, signal: Signal) {
        match signal {
            Signal::SIGTSTP => return self.refuse_to_stop(),
            Signal::SIGUSR1 | Signal::SIGUSR2 => {}
            _ => {
                self.was_asked = true;
                self.group.signal(signal);
                // What stands still ends only when it goes on.
                return self.group.signal(Signal::SIGCONT);
            }
        }
        self.group.signal(signal);
    }

    /// A holder that stands still loses the lock, and another one starts beside it.
    fn refuse_to_stop(&self) {
        let text = "a command under a lock is not suspended; it goes on";
        self.watch.console.warn(text);
    }

    /// Ctrl-Z in the terminal stops the command's group, and not this process. So does reading from
    /// a terminal that belongs to others, and that goes on for as long as the command tries.
    fn look_for_stop(&self) {
        match stopped_by(&self.process) {
            Some(Signal::SIGTSTP) => {
                self.refuse_to_stop();
                self.group.signal(Signal::SIGCONT);
            }
            Some(Signal::SIGTTIN | Signal::SIGTTOU) => {
                let text = "the command stands still: it wants the terminal, which it has only \
                            where standard input is that terminal";
                self.watch.console.warn(text);
            }
            _ => {}
        }
    }

    /// Does what is due by what is left of the lease.
    fn look(&mut self) {
        let watch = &self.watch;
        let left = watch.handle.remaining();
        if watch.on_lost == OnLost::Warn {
            if left.is_zero() {
                self.step = Step::Kill;
                let resource = watch.handle.resource();
                watch.console.warn(&format!(
                    "the lock on `{resource}` is lost; the command goes on without it"
                ));
            }
            return;
        }
        let due = watch.plan.due(left);
        self.tell_guard();
        if due > self.step {
            self.stop(due);
        }
    }

    /// Stops the command; there is no way back from here.
    fn stop(&mut self, due: Step) {
        self.step = due;
        self.was_asked = true;
        // A store that answers again must not keep the lock for a command that was told to end.
        self.watch.handle.keep_alive_up_to(Duration::ZERO);
        if due == Step::Kill {
            self.group.signal(Signal::SIGKILL);
        } else {
            self.group.ask_to_end();
        }
    }

    /// Tells the guard how long the command may live without another word.
    fn tell_guard(&mut self) {
        if self.watch.on_lost == OnLost::Warn {
            return;
        }
        let (handle, margin) = (self.watch.handle, self.watch.plan.kill);
        let hears = self.group.may_live_with(handle, margin);
        if !hears && self.is_guarded {
            self.is_guarded = false;
            tracing::warn!("nothing guards the command's group any more");
        }
    }

    fn lost(&self) -> Option<Step> {
        let left = self.watch.handle.remaining();
        // If this process stood still, the guard may have been quicker to stop the command.
        let is_over = match self.watch.on_lost {
            OnLost::Stop => self.watch.plan.due(left) == Step::Kill,
            OnLost::Warn => left.is_zero(),
        };
        (self.step > Step::Run || is_over).then_some(self.step)
    }

    /// Ends what is left of the group once its leader has ended. `true` if all of it is gone.
    async fn clear(self) -> bool {
        let left_over = self.group.members().unwrap_or(0);
        if left_over > 0 && (self.step < Step::Kill || self.watch.on_lost == OnLost::Warn) {
            if !self.was_asked {
                self.watch.console.warn(&format!(
                    "the command has ended and left processes behind ({left_over}); ending them"
                ));
            }
            self.group.ask_to_end();
            self.group.emptied_within(self.time_to_clear()).await;
        }
        self.group.end().await
    }

    fn time_to_clear(&self) -> Duration {
        match self.watch.on_lost {
            OnLost::Warn => LEFT_OVER,
            OnLost::Stop => {
                let left = self.watch.handle.remaining();
                left.saturating_sub(self.watch.plan.kill).min(LEFT_OVER)
            }
        }
    }
}

/// The signal that has stopped the process since the last call.
#[cfg(target_os = "linux")]
fn stopped_by(process: &Child) -> Option<Signal> {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    use nix::unistd::Pid;

    let id = i32::try_from(process.id()?).ok()?;
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
    match waitid(Id::Pid(Pid::from_raw(id)), flags) {
        Ok(WaitStatus::Stopped(_, signal)) => Some(signal),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn stopped_by(_: &Child) -> Option<Signal> {
    None
}

fn status_of(status: ExitStatus) -> Status {
    match (status.code(), status.signal()) {
        (Some(code), _) => Status::of_command(code),
        (None, Some(signal)) => Status::of_signal(signal),
        (None, None) => Status::INTERNAL,
    }
}
