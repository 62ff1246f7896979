//! Starting a command and its guard.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use nix::unistd::{Pid, getpid};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use xihan_caching::LockHandle;

use super::entry::Orders;
use super::group::{Group, Guard};
use super::guard::READY;
use super::{ENTRY, GUARD};

/// A command that was started and does not run yet.
pub(super) struct Started {
    pub(super) process: Child,
    pub(super) group: Group,
}

/// Starts `command` as the leader of a new group, with what `handle` knows in its environment, and
/// the guard beside it.
///
/// On Linux the command waits for [`Group::go`], so that it never runs unguarded. Everything is
/// started from the calling thread, and ends with it.
pub(super) async fn start(
    command: &[OsString],
    handle: &LockHandle,
    in_foreground: bool,
) -> io::Result<Started> {
    let orders = Orders {
        wrapper: getpid(),
        in_foreground,
    };
    let process = myself()?
        .arg(ENTRY)
        .args(orders.to_arguments())
        .args(command)
        .env("XIHAN_LOCK_RESOURCE", handle.resource())
        // The environment of a process is for its owner alone; its arguments are for everybody.
        .env("XIHAN_LOCK_TOKEN", handle.token().as_str())
        .env("XIHAN_LOCK_FENCING", handle.fencing().to_string())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let id = process.id().and_then(|id| i32::try_from(id).ok());
    let id = Pid::from_raw(id.ok_or_else(|| io::Error::other("a process without a number"))?);
    let guard = if stands_still(id)? {
        Some(guard(id).await?)
    } else {
        None
    };
    Ok(Started {
        process,
        group: Group::new(id, guard),
    })
}

/// Starts a guard in the group `id`, and waits until it stands.
async fn guard(id: Pid) -> io::Result<Guard> {
    let mut process = myself()?
        .arg(GUARD)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(id.as_raw())
        .spawn()?;
    let missing = || io::Error::other("a process without its pipes");
    let pipe = process.stdin.take().ok_or_else(missing)?;
    let mut output = process.stdout.take().ok_or_else(missing)?;
    if output.read_u8().await? != READY {
        return Err(io::Error::other("the guard does not stand"));
    }
    Ok(Guard { process, pipe })
}

/// Waits until the command's process stands still; `false` if it has ended.
#[cfg(target_os = "linux")]
fn stands_still(id: Pid) -> io::Result<bool> {
    use nix::errno::Errno;
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};

    // Only looked at: the status is left to the one who waits for the end.
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    loop {
        match waitid(Id::Pid(id), flags) {
            Ok(WaitStatus::Stopped(..)) => return Ok(true),
            Ok(_) => return Ok(false),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Elsewhere the command does not wait.
#[cfg(not(target_os = "linux"))]
fn stands_still(_: Pid) -> io::Result<bool> {
    Ok(true)
}

/// This very program, also if its file was replaced or removed meanwhile.
fn myself() -> io::Result<Command> {
    let running = PathBuf::from("/proc/self/exe");
    let program = if running.exists() {
        running
    } else {
        std::env::current_exe()?
    };
    let mut command = Command::new(program);
    command.arg0("xihan-cache");
    Ok(command)
}
