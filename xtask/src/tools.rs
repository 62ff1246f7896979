//! Programs that the commands need beside Rust.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, process};

/// Sees to it that `program` can be run: on a Debian machine where we are root, by installing
/// `package`; else by saying what to install.
///
/// # Errors
/// The program is missing and could not be installed.
pub(crate) fn need(program: &str, package: &str) -> Result {
    if find(program).is_some() {
        return Ok(());
    }
    let advice = format!(
        "`{program}` is missing; install it (Debian and Ubuntu: `apt-get install {package}`)"
    );
    if find("apt-get").is_none() || !is_root() {
        return Err(advice.into());
    }
    println!("`{program}` is missing: installing the Debian package {package}");
    if install(package).is_err() {
        // The package lists of a fresh machine are empty or old.
        process::run(apt().arg("update"))?;
        install(package)?;
    }
    find(program).map(drop).ok_or_else(|| advice.into())
}

/// Says how to get a cargo command that no Debian package brings.
///
/// # Errors
/// `cargo <name>` is missing.
pub(crate) fn need_cargo_command(name: &str) -> Result {
    match find(&format!("cargo-{name}")) {
        Some(_) => Ok(()),
        None => Err(format!(
            "`cargo {name}` is missing; install it with `cargo install --locked cargo-{name}`"
        )
        .into()),
    }
}

fn install(package: &str) -> Result {
    process::run(apt().args(["install", "--yes", "--no-install-recommends", package]))
}

fn apt() -> Command {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive").arg("--quiet");
    apt
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Where `program` is, by the search path.
fn find(program: &str) -> Option<PathBuf> {
    find_in(&env::var_os("PATH")?, program)
}

fn find_in(search_path: impl AsRef<std::ffi::OsStr>, program: &str) -> Option<PathBuf> {
    env::split_paths(&search_path)
        .map(|folder| folder.join(program))
        .find(|file: &PathBuf| Path::is_file(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_the_search_path_only() {
        let folder = crate::workspace::root().join("xtask");
        assert_eq!(
            find_in(&folder, "Cargo.toml"),
            Some(folder.join("Cargo.toml"))
        );
        assert_eq!(find_in(&folder, "no-such-program"), None);
        assert_eq!(find_in(folder.join("no-such-folder"), "Cargo.toml"), None);
    }

    #[test]
    fn a_missing_cargo_command_is_named_with_its_remedy() {
        let error = need_cargo_command("no-such-command").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("cargo install --locked cargo-no-such-command")
        );
    }
}
