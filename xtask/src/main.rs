//! Developer commands of the workspace, one file per command: `cargo xtask --help`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks on its standard streams"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "how long a step takes is real time"
)]

mod bench;
mod ci;
mod codegen;
mod features;
mod floors;
mod fuzz;
mod metadata;
mod orphans;
mod process;
mod signatures;
mod sources;
mod test;
mod tools;
mod workspace;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a command gives: nothing, or the text that says what is wrong and what to do.
type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Developer commands of the workspace"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every test of the workspace: unit, integration, conformance and documentation tests
    Test,
    /// Run the whole gate, as it has to pass before a merge
    Ci(ci::Arguments),
    /// Write the code of the protobuf contracts
    Codegen(codegen::Arguments),
    /// Check that each crate depends only on the floors below its own
    Floors,
    /// Lint each crate without its default features and with each one alone
    Features,
    /// Check file lengths, forbidden marks, orphaned files and machine paths
    Sources,
    /// Check that no public signature names a library that may be replaced
    Signatures,
    /// Give mutated input to the parsers for a long time
    Fuzz(fuzz::Arguments),
    /// Measure against raw baselines and other libraries; prints one table
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Test => test::run(),
        Command::Ci(arguments) => ci::run(&arguments),
        Command::Codegen(arguments) => codegen::run(&arguments),
        Command::Floors => floors::run(),
        Command::Features => features::run(),
        Command::Sources => sources::run(),
        Command::Signatures => signatures::run(),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `Ok` if `problems` is empty, else an error that lists them all.
fn report(check: &str, problems: &[String]) -> Result {
    if problems.is_empty() {
        println!("{check}: nothing found");
        return Ok(());
    }
    let list: String = problems
        .iter()
        .map(|line| format!("\n  - {line}"))
        .collect();
    Err(format!("{check}: {} found{list}", problems.len()).into())
}
