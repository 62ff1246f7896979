//! Starts the command-line tool.

use std::process::ExitCode;

fn main() -> ExitCode {
    xihan_cache::main()
}
