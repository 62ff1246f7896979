//! The load generator, a process of its own: 64 connections, each with one request at a time.

use std::fs;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tokio::task::LocalSet;

use super::wire::{Connection, Request};
use crate::Result;

/// What every order asks for.
const BODY: &str = r#"{"name":"Keyboard","amount":2}"#;
/// More keys than a connection ever uses.
const KEYS_PER_CONNECTION: u64 = 10_000_000_000;
/// Requests that one session makes; a peer keeps its records per session.
const KEYS_PER_SESSION: u64 = 16;

#[derive(Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    port: u16,
    #[arg(long)]
    mode: Mode,
    /// The server's process, whose processor time is measured
    #[arg(long)]
    server: u32,
    /// Sent with every request, as `name: value`; `{key}` and `{session}` are replaced
    #[arg(long = "header")]
    headers: Vec<String>,
    /// Sent with every request that has a key
    #[arg(long = "keyed-header")]
    keyed_headers: Vec<String>,
    #[arg(long, default_value_t = 64)]
    connections: u64,
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

/// How requests are keyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// No key
    None,
    /// A new key for each request
    Fresh,
    /// A key per connection, recorded before the measurement
    Replay,
}

impl Mode {
    /// As the command line spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fresh => "fresh",
            Self::Replay => "replay",
        }
    }
}

/// What was measured, as the process prints it.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) per_second: f64,
    pub(crate) p99_milliseconds: f64,
    /// Answers that were not 201.
    pub(crate) unexpected: u64,
    /// The generator's own share of its core; near 1 it would be the bottleneck.
    pub(crate) busy: f64,
    /// The server's share of its core; below 1 something else held it back.
    pub(crate) server_busy: f64,
}

impl Report {
    /// The processor time that the server spends on one request.
    pub(crate) fn server_microseconds(&self) -> f64 {
        self.server_busy / self.per_second * 1_000_000.0
    }
}

/// Generates load and prints the [`Report`] as one line of JSON.
pub(crate) fn run(arguments: Arguments) -> Result {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = LocalSet::new().block_on(&runtime, generate(arguments))?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// When the measurement begins and ends; before it the server warms up.
struct Window {
    start: Instant,
    end: Instant,
}

#[derive(Default)]
struct Tally {
    microseconds: Vec<u32>,
    unexpected: u64,
}

async fn generate(arguments: Arguments) -> Result<Report> {
    let arguments = Rc::new(arguments);
    let mut connections = Vec::new();
    for _ in 0..arguments.connections {
        connections.push(Connection::open(arguments.port).await?);
    }
    let measured = Duration::from_secs_f64(arguments.seconds);
    let start = Instant::now() + measured / 6;
    let window = Rc::new(Window {
        start,
        end: start + measured,
    });
    let mut workers = Vec::new();
    for (connection, index) in connections.into_iter().zip(0..) {
        let worker = work(connection, index, arguments.clone(), window.clone());
        workers.push(tokio::task::spawn_local(worker));
    }
    tokio::time::sleep_until(start.into()).await;
    let server = arguments.server.to_string();
    let before = (cpu_seconds("self")?, cpu_seconds(&server)?);
    tokio::time::sleep_until(window.end.into()).await;
    let after = (cpu_seconds("self")?, cpu_seconds(&server)?);

    let mut all = Tally::default();
    for worker in workers {
        let tally = worker.await??;
        all.microseconds.extend(tally.microseconds);
        all.unexpected += tally.unexpected;
    }
    Ok(Report {
        per_second: all.microseconds.len() as f64 / arguments.seconds,
        p99_milliseconds: percentile(&mut all.microseconds, 0.99) / 1000.0,
        unexpected: all.unexpected,
        busy: (after.0 - before.0) / arguments.seconds,
        server_busy: (after.1 - before.1) / arguments.seconds,
    })
}

/// One connection's requests until the window is over.
async fn work(
    mut connection: Connection,
    index: u64,
    arguments: Rc<Arguments>,
    window: Rc<Window>,
) -> Result<Tally> {
    let mut headers = arguments.headers.clone();
    if arguments.mode != Mode::None {
        headers.extend(arguments.keyed_headers.iter().cloned());
    }
    let mut request = Request::post("/orders", &headers, BODY);
    let mut tally = Tally::default();
    for count in 0.. {
        let key = match arguments.mode {
            Mode::Fresh => count,
            Mode::None | Mode::Replay => 0,
        };
        let first = index * KEYS_PER_CONNECTION;
        request.fill(first + key, first + key / KEYS_PER_SESSION);
        let sent = Instant::now();
        let response = connection.send(&request).await?;
        let unexpected = response.status != 201;
        let answered = Instant::now();
        if answered >= window.end {
            break;
        }
        if sent >= window.start {
            let micros = (answered - sent).as_micros();
            tally
                .microseconds
                .push(u32::try_from(micros).unwrap_or(u32::MAX));
            tally.unexpected += u64::from(unexpected);
        }
    }
    Ok(tally)
}

fn percentile(values: &mut [u32], share: f64) -> f64 {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    let index = (last as f64 * share).round() as usize;
    values.get(index).copied().map_or(f64::NAN, f64::from)
}

/// The processor time a process has used, as the kernel counts it (100 ticks a second).
fn cpu_seconds(process: &str) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, after_name) = stat.rsplit_once(')').ok_or("no process name in stat")?;
    let ticks = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse::<f64>)
        .sum::<std::result::Result<f64, _>>()?;
    Ok(ticks / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_measured_value() {
        let mut values: Vec<u32> = (0..=1000).rev().collect();
        assert_eq!(percentile(&mut values, 0.99), 990.0);
        assert_eq!(percentile(&mut [7], 0.99), 7.0);
        assert!(percentile(&mut [], 0.99).is_nan());
    }
}
