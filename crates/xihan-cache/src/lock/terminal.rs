//! Whose the terminal is.
//!
//! Only the terminal's foreground process group may read from it and gets Ctrl-C. A command has a
//! group of its own, so where this program was in the foreground, the command takes its place and
//! gives it back at the end.

use std::io::{self, IsTerminal};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

/// Whether standard input is a terminal and this process is in its foreground.
pub(super) fn is_ours() -> bool {
    io::stdin().is_terminal() && tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Brings this process's group to the foreground.
pub(super) fn take() -> nix::Result<()> {
    // Whoever is in the background is stopped for trying, unless it blocks that.
    let former = block_output_stop()?;
    let taken = tcsetpgrp(io::stdin(), getpgrp());
    former.thread_set_mask()?;
    taken
}

/// Takes the terminal back from `group`, unless somebody else has it by now.
pub(super) fn take_back_from(group: Pid) {
    if tcgetpgrp(io::stdin()).is_ok_and(|present| present == group) {
        // Without a terminal there is nothing to take.
        let _ = take();
    }
}

/// Lets this thread write to the terminal from the background: a holder of a lock that is stopped
/// for a message would lose it. Gives the mask as it was.
pub(super) fn block_output_stop() -> nix::Result<SigSet> {
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTTOU);
    stop.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)
}
