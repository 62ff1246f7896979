//! Processes of a run, each on its own core.

use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::thread;

/// Where the server runs that is measured.
pub(crate) const SERVER_CORE: &str = "0";
/// Where its clients run.
pub(crate) const CLIENT_CORE: &str = "1";

/// Whether processes can be bound to cores here.
pub(crate) fn can_pin() -> bool {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    cores > 1 && Path::new("/usr/bin/taskset").exists()
}

/// `program` on `core`, or on any where processes cannot be bound.
pub(crate) fn pinned(core: &str, program: impl AsRef<OsStr>) -> Command {
    if !can_pin() {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    let program = program.as_ref().to_owned();
    let arguments: [OsString; 3] = ["--cpu-list".into(), core.into(), program];
    command.args(arguments);
    command
}

pub(crate) fn free_port() -> crate::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
