//! `xihan-cache man`

use std::io;

use clap::{Args, CommandFactory};

use crate::cli::Cli;
use crate::failure::Failure;
use crate::status::Status;

/// Print the manual page, of the program or of one of its commands
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  xihan-cache man | man -l -
  xihan-cache man lock > xihan-cache-lock.1")]
pub(crate) struct Man {
    /// A command, such as lock
    command: Option<String>,
}

pub(crate) fn run(command: &Man) -> Result<Status, Failure> {
    let mut page = Cli::command();
    page.build();
    if let Some(name) = &command.command {
        page = page.find_subcommand(name).cloned().ok_or_else(|| {
            Failure::Usage(format!(
                "`{name}` is no command; see xihan-cache --help for them"
            ))
        })?;
    }
    clap_mangen::Man::new(page).render(&mut io::stdout().lock())?;
    Ok(Status::DONE)
}
