//! The store on a real Redis against the same commands and scripts through bare fred.
//!
//! The server has one core, the client process the other.

mod bare;
pub(crate) mod client;
mod measure;
mod ours;
pub(crate) mod server;

use std::path::Path;
use std::process::Stdio;

use self::client::{BARE, OURS};
use self::measure::{Figure, Operation, TASKS};
use self::server::RedisServer;
use crate::process::{CLIENT_CORE, SERVER_CORE, can_pin, pinned};
use crate::table::{Bar, Row, median, ratios};
use crate::{Options, Result, http};

/// What the store has to keep of the throughput of bare fred.
const LEAST: Option<Bar> = Some(Bar::AtLeast(0.90));
/// Peers, as their process calls them.
const REDIS_CRATE: &str = "redis crate";
const RSLOCK: &str = "rslock";

/// A row: what it is called, and whose operation is compared with whose.
struct Comparison {
    what: &'static str,
    ours: (&'static str, Operation),
    baseline: (&'static str, Operation),
    bar: Option<Bar>,
}

impl Comparison {
    /// The store against bare fred.
    const fn store(what: &'static str, operation: Operation) -> Self {
        Self {
            what,
            ours: (OURS, operation),
            baseline: (BARE, operation),
            bar: LEAST,
        }
    }

    /// A peer against bare fred.
    const fn peer(what: &'static str, name: &'static str, operation: Operation) -> Self {
        Self {
            what,
            ours: (name, operation),
            baseline: (BARE, operation),
            bar: None,
        }
    }
}

const COMPARISONS: [Comparison; 13] = [
    Comparison::store("get", Operation::Get),
    Comparison::store("set", Operation::Set),
    Comparison::store("get_or_add, standing", Operation::GetStanding),
    Comparison::store("get_or_add, new", Operation::Add),
    Comparison::store("try_lease and release", Operation::Lease),
    Comparison {
        what: "lock acquired and released",
        ours: (OURS, Operation::Lock),
        baseline: (BARE, Operation::Lease),
        bar: LEAST,
    },
    Comparison {
        what: "price of fencing (bare scripts against SET NX PX)",
        ours: (BARE, Operation::Lease),
        baseline: (BARE, Operation::PlainLock),
        bar: None,
    },
    Comparison::peer("redis crate, get", REDIS_CRATE, Operation::Get),
    Comparison::peer("redis crate, set", REDIS_CRATE, Operation::Set),
    Comparison::peer(
        "redis crate, SET NX GET, standing",
        REDIS_CRATE,
        Operation::GetStanding,
    ),
    Comparison::peer("redis crate, SET NX GET, new", REDIS_CRATE, Operation::Add),
    Comparison::peer(
        "redis crate, SET NX PX and script",
        REDIS_CRATE,
        Operation::PlainLock,
    ),
    Comparison::peer("rslock, lock and unlock", RSLOCK, Operation::PlainLock),
];

/// Measures everything and gives the rows of the table.
pub(crate) fn run(options: &Options) -> Result<Vec<Row>> {
    if !can_pin() {
        println!("note: no taskset or one core only; redis-server and its client share cores");
    }
    let mut rounds = Vec::new();
    for round in 1..=options.rounds {
        // Each process has a server that holds nothing of another one.
        let mut figures = child(&std::env::current_exe()?, "redis-client")?;
        if let Some(peers) = &options.peers {
            figures.extend(child(peers, "redis")?);
        }
        rounds.push(figures);
        println!("redis: round {round} of {} done", options.rounds);
    }
    let mut rows = rows(&rounds);
    rows.extend(http::run_on_redis(options)?);
    Ok(rows)
}

/// The figures of a client process.
fn child(program: &Path, command: &str) -> Result<Vec<Figure>> {
    let server = RedisServer::start(SERVER_CORE)?;
    let output = pinned(CLIENT_CORE, program)
        .args([command, "--port", &server.port.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{} {command} failed", program.display()).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// One row for each comparison and number of tasks, where both sides were measured.
fn rows(rounds: &[Vec<Figure>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for tasks in TASKS {
        let in_words = match tasks {
            1 => "1 task".to_owned(),
            many => format!("{many} tasks"),
        };
        for comparison in &COMPARISONS {
            let ours = series(rounds, comparison.ours, tasks);
            let baseline = series(rounds, comparison.baseline, tasks);
            if ours.is_empty() || baseline.is_empty() {
                continue;
            }
            rows.push(Row {
                what: format!("Redis, {}, {in_words}", comparison.what),
                ours: format!("{:.0}/s", median(&ours)),
                baseline: format!("{} {:.0}/s", comparison.baseline.0, median(&baseline)),
                ratios: ratios(&ours, &baseline),
                cpu_ratios: Vec::new(),
                bar: comparison.bar,
            });
        }
    }
    rows
}

/// What each round gave.
fn series(rounds: &[Vec<Figure>], (name, operation): (&str, Operation), tasks: usize) -> Vec<f64> {
    let is_meant = |figure: &&Figure| {
        figure.contender == name && figure.operation == operation && figure.tasks == tasks
    };
    let figures = rounds.iter().flatten().filter(is_meant);
    figures.map(|figure| figure.per_second).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_compares_what_was_measured_in_the_same_round() {
        let figure = |contender: &str, per_second| Figure {
            contender: contender.to_owned(),
            operation: Operation::Get,
            tasks: 64,
            per_second,
        };
        let rounds = [
            vec![figure(BARE, 100.0), figure(OURS, 50.0)],
            vec![figure(OURS, 99.0), figure(BARE, 100.0)],
        ];
        let rows = rows(&rounds);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].what, "Redis, get, 64 tasks");
        assert_eq!(rows[0].ratios, [0.5, 0.99]);
        assert_eq!(rows[0].bar, LEAST);
    }
}
