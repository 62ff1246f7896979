//! `cargo xtask bench`: builds what is measured and prints one table of ratios.

use clap::Args;

use crate::process::{cargo, run as run_command};
use crate::{Result, workspace};

/// A workspace of its own, so that the peers' dependencies and licences stay out of the product's.
const PEERS: &str = "tests/bench/peers/Cargo.toml";
const PEERS_TARGET: &str = "target/peers";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Leave out the rows of other libraries
    #[arg(long)]
    without_peers: bool,
    /// Passed on to the program, for example `--only store` (see `--help` there)
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Builds with `--release` and runs the benchmarks.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let packages = ["--package", "bench", "--package", "orders-sample"];
    run_command(cargo(&["build", "--release", "--locked"]).args(packages))?;
    if !arguments.without_peers {
        // A peer asks for a newer compiler than it needs.
        let mut build = cargo(&["build", "--release", "--locked", "--ignore-rust-version"]);
        run_command(build.args(["--manifest-path", PEERS, "--target-dir", PEERS_TARGET]))?;
    }
    let release = workspace::target().join("release");
    let mut bench = std::process::Command::new(release.join("bench"));
    bench.arg("run");
    bench
        .arg("--orders-sample")
        .arg(release.join("orders-sample"));
    if !arguments.without_peers {
        let peers = workspace::root().join(PEERS_TARGET);
        bench.arg("--peers").arg(peers.join("release/bench-peers"));
    }
    run_command(bench.args(&arguments.rest))
}
