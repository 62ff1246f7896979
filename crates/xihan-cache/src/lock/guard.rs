//! The process that kills a command's group when nobody looks after it any more.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

use crate::status::Status;

/// How long one message is: a moment in milliseconds by [`machine_time`], little end first. A pipe
/// takes and gives that little in one piece.
pub(super) const MESSAGE: usize = size_of::<u64>();
/// What the guard says once it can be relied on.
pub(super) const READY: u8 = b'!';
/// A sleeping machine stops timers: look at the clock at least this often.
const LOOK: Duration = Duration::from_secs(1);

/// The time since the machine started, sleep included where the system counts it; the same for
/// all its processes.
pub(super) fn machine_time() -> nix::Result<Duration> {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
    Ok(clock_gettime(CLOCK)?.into())
}

/// Stands guard until the wrapper ends, or says the moment it named last has come; then kills the
/// process group that this process belongs to.
///
/// Whatever goes wrong here counts as the wrapper's end: a guard that cannot see is no guard.
pub(super) fn run() -> Status {
    // What is meant for the command, the command's own `kill 0` included, is not meant for us.
    let _ = SigSet::all().thread_block();
    // Who ends every `xihan-cache` does not end this one first.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(c"lock-guard");
    let _ = stand();
    // Zero is the process group of the caller, so this ends here.
    let _ = kill(Pid::from_raw(0), Signal::SIGKILL);
    Status::INTERNAL
}

fn stand() -> io::Result<()> {
    let mut ready = io::stdout();
    ready.write_all(&[READY])?;
    ready.flush()?;
    let mut input = io::stdin();
    let mut moment = None;
    loop {
        let left = match moment {
            None => LOOK,
            Some(moment) => Duration::saturating_sub(moment, machine_time()?),
        };
        if left.is_zero() {
            return Ok(());
        }
        if !is_readable(&input, left.min(LOOK))? {
            continue;
        }
        let mut messages = [0; 64 * MESSAGE];
        let length = match input.read(&mut messages) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if let Some(last) = messages[..length].as_chunks::<MESSAGE>().0.last() {
            moment = Some(Duration::from_millis(u64::from_le_bytes(*last)));
        }
    }
}

fn is_readable(input: &io::Stdin, limit: Duration) -> io::Result<bool> {
    let limit = PollTimeout::try_from(limit.as_millis() + 1).unwrap_or(PollTimeout::ZERO);
    let mut asked = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    match poll(&mut asked, limit) {
        Ok(ready) => Ok(ready > 0),
        Err(nix::errno::Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
