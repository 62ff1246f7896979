//! `xihan-cache completions`

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::status::Status;

/// Print the completions for a shell
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  source <(xihan-cache completions bash)
  xihan-cache completions zsh > ~/.zfunc/_xihan-cache
  xihan-cache completions fish > ~/.config/fish/completions/xihan-cache.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(command: &Completions) -> Result<Status, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        command.shell,
        &mut Cli::command(),
        "xihan-cache",
        &mut script,
    );
    io::stdout().lock().write_all(&script)?;
    Ok(Status::DONE)
}
