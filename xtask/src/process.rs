//! Running other programs.

use std::env;
use std::process::{Command, Stdio};

use crate::{Result, workspace};

/// Cargo, as it was called, in the root folder of the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(workspace::root()).args(arguments);
    command
}

/// Runs `command` on this terminal.
///
/// # Errors
/// The program is missing or did not succeed.
pub(crate) fn run(command: &mut Command) -> Result {
    let line = line(command);
    println!("$ {line}");
    let status = command
        .status()
        .map_err(|error| format!("cannot run `{line}`: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{line}` failed ({status})").into())
    }
}

/// Runs `command` and gives what it prints.
///
/// # Errors
/// The program is missing, did not succeed, or printed no UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run `{line}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{line}` failed ({})", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The command as a person would type it.
fn line(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or(&program).to_owned();
    command.get_args().fold(name, |line, argument| {
        line + " " + &argument.to_string_lossy()
    })
}
