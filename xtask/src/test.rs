//! `cargo xtask test`: everything a user runs to see that it works.

use crate::metadata::packages;
use crate::process::{cargo, run as run_command};
use crate::{Result, tools};

/// The package whose users start real Redis servers, and what it needs: program, Debian package.
const REDIS_SUPPORT: &str = "redis-support";
const REDIS_NEEDS: [(&str, &str); 2] = [("redis-server", "redis-server"), ("openssl", "openssl")];

/// Runs all tests of the workspace, documentation tests included, with every feature.
///
/// A failing test does not hide the ones after it; the last lines are the test runner's own.
pub(crate) fn run() -> Result {
    if packages()?
        .iter()
        .any(|package| package.name == REDIS_SUPPORT)
    {
        for (program, package) in REDIS_NEEDS {
            tools::need(program, package)?;
        }
    }
    run_command(&mut cargo(&[
        "test",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ]))
}
