//! Exit statuses (spec part 11), after `sysexits.h`.

use std::process::ExitCode;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(u8);

impl Status {
    /// What was asked for is done.
    pub(crate) const DONE: Self = Self(0);
    /// The key is not there, or was not added or removed.
    pub(crate) const NOT: Self = Self(1);
    /// The command line is wrong, bad keys and durations included.
    pub(crate) const USAGE: Self = Self(64);
    /// The key holds a value of another kind.
    pub(crate) const WRONG_KIND: Self = Self(65);
    /// The store cannot be used: away, full, or it refuses this client.
    pub(crate) const UNAVAILABLE: Self = Self(69);
    /// A fault of the program, or of the operating system beneath it.
    pub(crate) const INTERNAL: Self = Self(70);
    /// Standard input or output failed.
    pub(crate) const INPUT_OUTPUT: Self = Self(74);
    /// Somebody else holds the lock.
    pub(crate) const HELD: Self = Self(75);
    /// The lock was lost while the command ran.
    pub(crate) const LOST: Self = Self(76);
    /// The command was found and cannot be run.
    pub(crate) const NOT_EXECUTABLE: Self = Self(126);
    /// The command was not found.
    pub(crate) const NOT_FOUND: Self = Self(127);

    /// The status of a command, as a shell gives it.
    pub(crate) fn of_command(code: i32) -> Self {
        // The operating system keeps eight bits of it.
        Self(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
    }

    /// The status of a command that a signal ended.
    pub(crate) fn of_signal(signal: i32) -> Self {
        Self::of_command(128 + signal)
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.0)
    }
}
