//! The command-line tool `xihan-cache`: values of a store, commands run under a
//! lock, and the server.
//!
//! What it does and promises is in `docs/cli.md`; `xihan-cache help COMMAND` says how to call it.

mod cli;
mod commands;
mod console;
mod duration;
mod failure;
#[cfg(unix)]
mod lock;
mod open;
mod run;
mod serve;
mod status;

pub use run::main;
