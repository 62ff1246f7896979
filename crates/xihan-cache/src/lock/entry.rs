//! The first steps of a command's process, before it becomes the command.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::unistd::{Pid, getppid};

use super::terminal;
use crate::status::Status;

/// What the wrapper tells its child besides the command.
pub(super) struct Orders {
    /// The process whose end ends the command.
    pub(super) wrapper: Pid,
    /// Whether the command's group takes the terminal over.
    pub(super) in_foreground: bool,
}

const FOREGROUND: &str = "foreground";
const BACKGROUND: &str = "background";

impl Orders {
    pub(super) fn to_arguments(&self) -> [OsString; 2] {
        let place = if self.in_foreground {
            FOREGROUND
        } else {
            BACKGROUND
        };
        [self.wrapper.to_string().into(), place.into()]
    }

    fn parse(wrapper: &OsString, place: &OsString) -> Option<Self> {
        Some(Self {
            wrapper: Pid::from_raw(wrapper.to_str()?.parse().ok()?),
            in_foreground: place.to_str()? == FOREGROUND,
        })
    }
}

/// Becomes the command; returns only if that fails.
pub(super) fn run(arguments: &[OsString]) -> Status {
    let [wrapper, place, program, rest @ ..] = arguments else {
        return refuse("this is for xihan-cache itself; use xihan-cache lock");
    };
    let Some(orders) = Orders::parse(wrapper, place) else {
        return refuse("this is for xihan-cache itself; use xihan-cache lock");
    };
    if let Err(text) = bind_to(orders.wrapper) {
        return refuse(&text);
    }
    if orders.in_foreground {
        // A command that cannot have the terminal runs without.
        let _ = terminal::take();
    }
    let error = Command::new(program).args(rest).exec();
    let status = if error.kind() == io::ErrorKind::NotFound {
        Status::NOT_FOUND
    } else {
        Status::NOT_EXECUTABLE
    };
    say(&format!("cannot run `{}`: {error}", program.display()));
    status
}

/// Ends this process when the wrapper ends, and waits until the wrapper says that the guard
/// stands.
#[cfg(target_os = "linux")]
fn bind_to(wrapper: Pid) -> Result<(), String> {
    use nix::sys::prctl::set_pdeathsig;
    use nix::sys::signal::{Signal, raise};

    set_pdeathsig(Signal::SIGKILL)
        .map_err(|error| format!("cannot ask for the parent-death signal: {error}"))?;
    // It may have ended before that.
    still_there(wrapper)?;
    raise(Signal::SIGSTOP).map_err(|error| format!("cannot wait for the guard: {error}"))
}

/// Elsewhere there is no parent-death signal; the guard does what it can.
#[cfg(not(target_os = "linux"))]
fn bind_to(wrapper: Pid) -> Result<(), String> {
    still_there(wrapper)
}

fn still_there(wrapper: Pid) -> Result<(), String> {
    if getppid() == wrapper {
        return Ok(());
    }
    Err("the process that holds the lock is gone".to_owned())
}

fn refuse(text: &str) -> Status {
    say(text);
    Status::NOT_EXECUTABLE
}

fn say(text: &str) {
    // Nobody can be told if this fails.
    let _ = writeln!(io::stderr(), "xihan-cache: {text}");
}
