//! `cargo xtask fuzz`: mutated input for the parsers, for as long as wanted.

use crate::Result;
use crate::process::{cargo, run as run_command};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long to go on
    #[arg(long, default_value_t = 30)]
    minutes: u64,
}

/// Runs the fuzz test of the pipeline, which the gate runs for two seconds.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let mut command = cargo(&[
        "test",
        "--release",
        "--package",
        "idempotency-pipeline",
        "--test",
        "fuzz",
        "--",
        "--nocapture",
    ]);
    command.env("XIHAN_FUZZ_SECONDS", (arguments.minutes * 60).to_string());
    run_command(&mut command)
}
