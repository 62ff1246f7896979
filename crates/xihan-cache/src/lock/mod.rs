//! A command under a lock.
//!
//! Three processes take part:
//!
//! - **this one** holds the lock, renews it, passes signals on, and stops the command in time;
//! - **the command**, the leader of a process group of its own. It starts as this program
//!   ([`entry`]), which binds its life to this process's and then becomes the command;
//! - **the guard** ([`guard`]), a member of that group. When this process is gone, however it
//!   went, or lets the lease run out without a word, the guard kills the group and so itself.

mod end;
mod entry;
mod group;
mod guard;
mod lease;
mod running;
mod signals;
mod start;
mod terminal;
mod wrap;

pub(crate) use wrap::run;

use std::ffi::OsString;

use crate::status::Status;

/// The first argument that makes this program the beginning of a command.
const ENTRY: &str = "__locked-command";
/// The first argument that makes this program a guard.
const GUARD: &str = "__lock-guard";

/// Runs as one of the helpers, if the arguments say so.
pub(crate) fn helper(arguments: &[OsString]) -> Option<Status> {
    match arguments.get(1)?.to_str()? {
        ENTRY => Some(entry::run(arguments.get(2..)?)),
        GUARD => Some(guard::run()),
        _ => None,
    }
}
