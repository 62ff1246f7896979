//! The store behind its server against a bare unary echo of tonic that moves as many bytes.
//!
//! Both servers are in one process on one core, all clients in another one on the other core, each
//! with one connection. What Redis gives on one connection is shown beside it.
//!
//! With one task a call is alone in its message, and the session saves no more than a call's head;
//! with many tasks it carries many operations in one message, which the echo cannot.

pub(crate) mod client;
mod echo;
mod measure;
mod ours;
mod redis;
pub(crate) mod server;

use std::process::Stdio;

use self::client::{ECHO, REDIS, SESSION, UNARY};
use self::measure::{Figure, Operation, TASKS};
use self::server::Servers;
use crate::process::{CLIENT_CORE, SERVER_CORE, can_pin, pinned};
use crate::redis::server::RedisServer;
use crate::table::{Bar, Row, median, ratios};
use crate::{Options, Result};

/// The number of tasks that the bars are about.
const MANY: usize = 64;

/// A row: what it is called, and whose operation is compared with whose.
struct Comparison {
    what: &'static str,
    ours: (&'static str, Operation),
    baseline: (&'static str, Operation),
    /// For [`MANY`] tasks.
    bar: Option<Bar>,
}

impl Comparison {
    /// One of ours against another.
    const fn new(
        what: &'static str,
        ours: &'static str,
        baseline: &'static str,
        operation: Operation,
    ) -> Self {
        Self {
            what,
            ours: (ours, operation),
            baseline: (baseline, operation),
            bar: None,
        }
    }

    /// The same, of an operation that the baseline has under another name.
    const fn against(mut self, operation: Operation) -> Self {
        self.baseline.1 = operation;
        self
    }

    const fn at_least(mut self, ratio: f64) -> Self {
        self.bar = Some(Bar::AtLeast(ratio));
        self
    }
}

const COMPARISONS: [Comparison; 16] = {
    use Operation::{Add, Get, GetStanding, Lease, Lock};
    [
        Comparison::new("get", SESSION, ECHO, Get).at_least(0.90),
        Comparison::new("get_or_add, standing", SESSION, ECHO, GetStanding),
        Comparison::new("get_or_add, new", SESSION, ECHO, Add),
        Comparison::new("try_lease and release", SESSION, ECHO, Lease),
        Comparison::new("lock acquired and released", SESSION, ECHO, Lock).against(Lease),
        Comparison::new("unary, get", UNARY, ECHO, Get),
        Comparison::new("unary, get_or_add, standing", UNARY, ECHO, GetStanding),
        Comparison::new("unary, get_or_add, new", UNARY, ECHO, Add),
        Comparison::new("unary, try_lease and release", UNARY, ECHO, Lease),
        Comparison::new("unary, lock acquired and released", UNARY, ECHO, Lock).against(Lease),
        Comparison::new("session against unary, get", SESSION, UNARY, Get).at_least(2.0),
        Comparison::new("session against unary, lock", SESSION, UNARY, Lock),
        Comparison::new("get against Redis", SESSION, REDIS, Get),
        Comparison::new("unary, get against Redis", UNARY, REDIS, Get),
        Comparison::new("echo of get against Redis", ECHO, REDIS, Get),
        Comparison::new("price of the handle on a lease", SESSION, SESSION, Lock).against(Lease),
    ]
};

/// Measures everything and gives the rows of the table.
pub(crate) fn run(options: &Options) -> Result<Vec<Row>> {
    if !can_pin() {
        println!("note: no taskset or one core only; the servers and their client share cores");
    }
    let mut rounds = Vec::new();
    for round in 1..=options.rounds {
        rounds.push(child()?);
        println!("remote: round {round} of {} done", options.rounds);
    }
    Ok(rows(&rounds))
}

/// The figures of a client process, with servers of its own.
fn child() -> Result<Vec<Figure>> {
    let servers = Servers::start()?;
    let redis = RedisServer::start(SERVER_CORE);
    let mut client = pinned(CLIENT_CORE, std::env::current_exe()?);
    client.arg("remote-client").args(servers.arguments());
    match &redis {
        Ok(redis) => {
            client.args(["--redis-port", &redis.port.to_string()]);
        }
        Err(error) => println!("note: no rows about Redis: {error}"),
    }
    let output = client.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err("the client of the remote store failed".into());
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
                what: format!("remote, {}, {in_words}", comparison.what),
                ours: format!("{:.0}/s", median(&ours)),
                baseline: format!("{} {:.0}/s", comparison.baseline.0, median(&baseline)),
                ratios: ratios(&ours, &baseline),
                cpu_ratios: Vec::new(),
                bar: comparison.bar.filter(|_| tasks == MANY),
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

    fn figure(contender: &str, operation: Operation, tasks: usize, per_second: f64) -> Figure {
        Figure {
            contender: contender.to_owned(),
            operation,
            tasks,
            per_second,
        }
    }

    #[test]
    fn a_row_compares_what_was_measured_in_the_same_round() {
        let get = |contender, per_second| figure(contender, Operation::Get, MANY, per_second);
        let rounds = [
            vec![get(ECHO, 100.0), get(SESSION, 50.0)],
            vec![get(SESSION, 99.0), get(ECHO, 100.0)],
        ];
        let rows = rows(&rounds);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].what, "remote, get, 64 tasks");
        assert_eq!(rows[0].ratios, [0.5, 0.99]);
        assert_eq!(rows[0].bar, Some(Bar::AtLeast(0.90)));
    }

    #[test]
    fn a_lock_is_compared_with_the_echo_of_a_lease_and_one_task_has_no_bar() {
        let rounds = [vec![
            figure(ECHO, Operation::Lease, 1, 10.0),
            figure(UNARY, Operation::Lock, 1, 20.0),
            figure(UNARY, Operation::Get, 1, 20.0),
            figure(SESSION, Operation::Get, 1, 60.0),
        ]];
        let rows = rows(&rounds);
        let found: Vec<_> = rows.iter().map(|row| (&*row.what, row.bar)).collect();
        assert_eq!(
            found,
            [
                ("remote, unary, lock acquired and released, 1 task", None),
                ("remote, session against unary, get, 1 task", None),
            ]
        );
    }
}
