//! `cargo xtask ci`: the gate.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::process::{cargo, run as run_command};
use crate::{Result, codegen, features, floors, signatures, sources, test, tools};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Run this step alone
    #[arg(long, value_name = "STEP")]
    only: Option<Step>,
}

/// The steps in the order they run: quick ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// The code is formatted
    Format,
    /// The generated code is what its contracts give
    Codegen,
    /// Crates depend on lower floors only
    Floors,
    /// File lengths, forbidden marks, orphaned files, machine paths
    Sources,
    /// No public signature names a library that may be replaced
    Signatures,
    /// Duplicates, licences and origins of the dependencies
    Deny,
    /// Lints
    Clippy,
    /// Each crate builds without its default features and with each one alone
    Features,
    /// The documentation builds without a warning
    Docs,
    /// All tests
    Test,
}

/// Runs the steps; the first failure stops the gate.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let steps = match &arguments.only {
        Some(step) => std::slice::from_ref(step),
        None => Step::value_variants(),
    };
    let start = Instant::now();
    for step in steps {
        let name = step.name();
        println!("\n=== {name}");
        let start = Instant::now();
        step.run().map_err(|error| {
            let hint = format!("run it alone with `cargo xtask ci --only {name}`");
            format!("step {name} failed; {hint}\n{error}")
        })?;
        println!("=== {name}: passed in {}", in_words(start.elapsed()));
    }
    if arguments.only.is_none() {
        println!("\n=== the gate passed in {}", in_words(start.elapsed()));
    }
    Ok(())
}

impl Step {
    fn run(self) -> Result {
        match self {
            Self::Format => run_command(&mut cargo(&["fmt", "--all", "--check"])),
            Self::Codegen => codegen::check(),
            Self::Floors => floors::run(),
            Self::Sources => sources::run(),
            Self::Signatures => signatures::run(),
            Self::Deny => {
                tools::need_cargo_command("deny")?;
                run_command(&mut cargo(&[
                    "deny", "check", "bans", "licenses", "sources",
                ]))
            }
            Self::Clippy => {
                let mut clippy = cargo(&["clippy", "--workspace", "--all-targets"]);
                run_command(clippy.args(["--all-features", "--", "--deny", "warnings"]))
            }
            Self::Features => features::run(),
            Self::Docs => {
                let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
                run_command(doc.env("RUSTDOCFLAGS", "--deny warnings"))
            }
            Self::Test => test::run(),
        }
    }

    fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    format!(
        "{} min {} s",
        duration.as_secs() / 60,
        duration.as_secs() % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_goes_by_its_name() {
        let names: Vec<String> = Step::value_variants().iter().map(|s| s.name()).collect();
        assert_eq!(
            names,
            [
                "format",
                "codegen",
                "floors",
                "sources",
                "signatures",
                "deny",
                "clippy",
                "features",
                "docs",
                "test"
            ]
        );
        assert_eq!(Step::from_str("deny", false), Ok(Step::Deny));
    }

    #[test]
    fn durations_are_readable() {
        assert_eq!(in_words(Duration::from_millis(1540)), "1.5 s");
        assert_eq!(in_words(Duration::from_secs(135)), "2 min 15 s");
    }
}
