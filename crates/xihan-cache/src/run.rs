//! From the command line to an exit status.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;
use xihan_caching::CacheStore;

use crate::cli::{Cli, Command, Global};
use crate::commands::{completions, man};
use crate::console::Console;
use crate::failure::Failure;
use crate::open::Named;
use crate::status::Status;

/// Runs the program on the arguments of the process.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    #[cfg(unix)]
    if let Some(helper) = crate::lock::helper(&arguments) {
        return helper.into();
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Nobody can be told if this fails.
            let _ = error.print();
            let status = if error.use_stderr() {
                Status::USAGE
            } else {
                Status::DONE
            };
            return status.into();
        }
    };
    log(cli.global.verbose, matches!(cli.command, Command::Serve(_)));
    let console = Console::new(cli.global.json, cli.global.verbose > 0);
    let status = run(cli, console).unwrap_or_else(|failure| {
        console.failure(&failure);
        failure.status()
    });
    status.into()
}

fn run(cli: Cli, console: Console) -> Result<Status, Failure> {
    match &cli.command {
        Command::Completions(command) => return completions::run(command),
        Command::Man(command) => return man::run(command),
        _ => {}
    }
    let (named, mut threads) = match &cli.command {
        Command::Serve(_) => (
            Named::find_or_memory(&cli.global.store)?,
            Builder::new_multi_thread(),
        ),
        // Everything on this one thread: the kernel ends a command that was started with a
        // parent-death signal when the *thread* that started it ends.
        _ => (
            Named::find(&cli.global.store)?,
            Builder::new_current_thread(),
        ),
    };
    let runtime = threads
        .enable_all()
        .build()
        .map_err(|error| Failure::System(format!("cannot start the runtime: {error}")))?;
    let status = runtime.block_on(dispatch(cli.command, &cli.global, named, console));
    // What a store still does in the background is of no interest any more.
    runtime.shutdown_background();
    status
}

async fn dispatch(
    command: Command,
    global: &Global,
    named: Named,
    console: Console,
) -> Result<Status, Failure> {
    let session = Session {
        options: global,
        named,
        console,
    };
    match command {
        Command::Get(command) => command.run(session).await,
        Command::Set(command) => command.run(session).await,
        Command::Add(command) => command.run(session).await,
        Command::Remove(command) => command.run(session).await,
        Command::Ttl(command) => command.run(session).await,
        Command::Keys(command) => command.run(session).await,
        Command::Ping(command) => command.run(session).await,
        Command::Lock(command) => command.run(session).await,
        Command::Serve(command) => command.run(session).await,
        Command::Completions(command) => completions::run(&command),
        Command::Man(command) => man::run(&command),
    }
}

/// What a command works with.
pub(crate) struct Session<'a> {
    pub(crate) options: &'a Global,
    pub(crate) named: Named,
    pub(crate) console: Console,
}

impl Session<'_> {
    /// Opens the store; after the command has checked its own arguments.
    pub(crate) async fn open(self) -> Result<(Arc<dyn CacheStore>, Console), Failure> {
        let store = self.named.open(&self.options.store).await?;
        Ok((store, self.console))
    }
}

/// Logs to standard error: nothing unless it is asked for, or, for a server, what its operator wants
/// to know.
fn log(verbose: u8, is_server: bool) {
    let filter = match verbose {
        0 => std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default(),
        1 if !is_server => "info".to_owned(),
        _ => DETAILS.to_owned(),
    };
    let filter = match filter.as_str() {
        "" if is_server => "info",
        "" => "off",
        filter => filter,
    };
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}

const DETAILS: &str = "info,xihan_cache=debug,caching_abstractions=debug,caching_redis=debug,\
                       caching_remote=debug";
