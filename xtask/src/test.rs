//! `cargo xtask test`: everything a user runs to see that it works.

use crate::metadata::packages;
use crate::process::{cargo, run as run_command};
use crate::{Result, tools};

/// The package whose users start real Redis servers, and what it needs: program, Debian package.
const REDIS_SUPPORT: &str = "redis-support";
const REDIS_NEEDS: [(&str, &str); 2] = [("redis-server", "redis-server"), ("openssl", "openssl")];

/// The package with clients in another language, and what these import: modules, Debian packages.
const E2E: &str = "e2e";
const E2E_MODULES: &str = "google.protobuf, grpc";
const E2E_PACKAGES: [&str; 2] = ["python3-grpcio", "python3-protobuf"];

/// Runs all tests of the workspace, documentation tests included, with every feature.
///
/// A failing test does not hide the ones after it; the last lines are the test runner's own.
pub(crate) fn run() -> Result {
    let packages = packages()?;
    let has = |name: &str| packages.iter().any(|package| package.name == name);
    if has(REDIS_SUPPORT) {
        for (program, package) in REDIS_NEEDS {
            tools::need(program, package)?;
        }
    }
    if has(E2E) {
        tools::need_python(E2E_MODULES, &E2E_PACKAGES)?;
    }
    run_command(&mut cargo(&[
        "test",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ]))
}
