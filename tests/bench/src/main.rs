//! Benchmarks of XiHan Caching: each figure is a ratio to a raw baseline of the same run, the
//! median of interleaved rounds. `cargo xtask bench` builds and runs everything.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks on its standard streams"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time, and its own process waits for others"
)]

mod http;
mod lock;
mod memory;
mod process;
mod redis;
mod remote;
mod store;
mod subject;
mod table;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// What a command gives: nothing, or the text that says what is wrong.
type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Parser)]
#[command(about = "Benchmarks of XiHan Caching, as ratios to a raw baseline in the same run")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure and print one table
    Run(Options),
    /// Serve the plain handler (a process of a run)
    RawServer {
        #[arg(long)]
        port: u16,
    },
    /// Generate load (a process of a run)
    Load(http::load::Arguments),
    /// Measure the store and bare fred on a Redis (a process of a run)
    RedisClient {
        #[arg(long)]
        port: u16,
    },
    /// Serve a store and the echo (a process of a run)
    RemoteServer(remote::server::Ports),
    /// Measure the remote store and the echo (a process of a run)
    RemoteClient(remote::client::Arguments),
    /// Fill a store and print the bytes per entry (a process of a run)
    Memory {
        #[arg(long)]
        kind: memory::Kind,
    },
}

#[derive(Args)]
struct Options {
    /// Measure this part only; may be given several times
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// How often each figure is measured; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// How long one HTTP measurement takes
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// The program `orders-sample`, built with `--release`
    #[arg(long)]
    orders_sample: Option<PathBuf>,
    /// The program with the peers' layers, built with `--release`
    #[arg(long)]
    peers: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Operations of the in-memory store against bare moka
    Store,
    /// Acquiring and releasing a lock against two operations of a bare map
    Lock,
    /// Bytes per entry of the in-memory store
    Memory,
    /// Requests per second with and without an idempotency key
    Http,
    /// Operations and requests on a real Redis against bare fred
    Redis,
    /// Operations of the store behind its server against a bare unary echo of tonic
    Remote,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(options) => run(&options),
        Command::RawServer { port } => http::run_raw_server(port),
        Command::Load(arguments) => http::load::run(arguments),
        Command::RedisClient { port } => redis::client::run(port),
        Command::RemoteServer(ports) => remote::server::run(ports),
        Command::RemoteClient(arguments) => remote::client::run(arguments),
        Command::Memory { kind } => memory::run_child(kind),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result {
    let mut rows = Vec::new();
    for part in Part::value_variants() {
        if options.only.is_empty() || options.only.contains(part) {
            rows.extend(match part {
                Part::Store => store::run(options)?,
                Part::Lock => lock::run(options)?,
                Part::Memory => memory::run(options)?,
                Part::Http => http::run(options)?,
                Part::Redis => redis::run(options)?,
                Part::Remote => remote::run(options)?,
            });
        }
    }
    let (table, missed) = table::render(&rows);
    println!("\nMedian of {} rounds.\n\n{table}", options.rounds);
    if missed > 0 {
        println!("{missed} bar(s) missed");
    }
    Ok(())
}
