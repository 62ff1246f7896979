//! Programs that the commands need beside Rust.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Result, process};

/// The Pythons that are tried, as the tests try them: Debian's packages belong to its own one,
/// which need not be the one of the search path.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];

/// Sees to it that `program` can be run: on a Debian machine where we are root, by installing
/// `package`; else by saying what to install.
///
/// # Errors
/// The program is missing and could not be installed.
pub(crate) fn need(program: &str, package: &str) -> Result {
    provide(&format!("`{program}`"), &[package], || {
        find(program).is_some()
    })
}

/// The same for a Python that can import `modules`.
///
/// # Errors
/// There is none and it could not be installed.
pub(crate) fn need_python(modules: &str, packages: &[&str]) -> Result {
    provide(&format!("a Python with `{modules}`"), packages, || {
        PYTHONS
            .iter()
            .any(|program| can_import(program.as_ref(), modules))
    })
}

fn can_import(program: &Path, modules: &str) -> bool {
    let mut python = Command::new(program);
    python.args(["-c", &format!("import {modules}")]);
    let status = python.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Installs `packages` unless `what` is there.
fn provide(what: &str, packages: &[&str], is_there: impl Fn() -> bool) -> Result {
    if is_there() {
        return Ok(());
    }
    let names = packages.join(" ");
    let advice =
        format!("{what} is missing; install it (Debian and Ubuntu: `apt-get install {names}`)");
    if find("apt-get").is_none() || !is_root() {
        return Err(advice.into());
    }
    println!("{what} is missing: installing from Debian: {names}");
    if install(packages).is_err() {
        // The package lists of a fresh machine are empty or old.
        process::run(apt().arg("update"))?;
        install(packages)?;
    }
    if is_there() {
        Ok(())
    } else {
        Err(advice.into())
    }
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

fn install(packages: &[&str]) -> Result {
    let mut install = apt();
    install.args(["install", "--yes", "--no-install-recommends"]);
    process::run(install.args(packages))
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
    fn a_python_that_is_missing_or_lacks_a_module_does_not_count() {
        assert!(!can_import(Path::new("no-such-program"), "sys"));
        // Any program that fails stands for a Python without the module.
        assert!(!can_import(Path::new("false"), "sys"));
        assert!(can_import(Path::new("true"), "sys"));
    }

    #[test]
    fn what_is_there_is_not_installed() {
        assert!(provide("it", &["no-such-package"], || true).is_ok());
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
