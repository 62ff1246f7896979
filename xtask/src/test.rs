//! `cargo xtask test`: everything a user runs to see that it works.

use crate::Result;
use crate::process::{cargo, run as run_command};

/// Runs all tests of the workspace, documentation tests included, with every feature.
///
/// A failing test does not hide the ones after it; the last lines are the test runner's own.
pub(crate) fn run() -> Result {
    run_command(&mut cargo(&[
        "test",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ]))
}
