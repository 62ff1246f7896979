//! `POST /orders` without a key, with a fresh key and replayed: requests per second and p99.

mod app;
pub(crate) mod load;
mod server;
mod targets;
mod wire;

use std::collections::BTreeSet;

use self::load::{Mode, Report};
use self::server::Server;
use self::targets::Target;
use self::wire::{Connection, Request, Response};
use crate::process::{CLIENT_CORE, SERVER_CORE, can_pin};
use crate::table::{Bar, Row, median, ratios};
use crate::{Options, Result};

const BODY: &str = r#"{"name":"Keyboard","amount":2}"#;

/// Serves the plain handler.
pub(crate) fn run_raw_server(port: u16) -> Result {
    let runtime = tokio::runtime::Runtime::new()?;
    Ok(runtime.block_on(app::serve(app::router(), port))?)
}

/// Measures every server and gives the rows of the table.
pub(crate) fn run(options: &Options) -> Result<Vec<Row>> {
    let targets = targets(options)?;
    let cells = measure(options, &targets)?;
    note_limits(&cells);
    Ok(rows(&cells))
}

/// Measures the sample service with its records on Redis.
///
/// The service has one core; Redis and the load generator share the other.
pub(crate) fn run_on_redis(options: &Options) -> Result<Vec<Row>> {
    let Some(program) = &options.orders_sample else {
        return Ok(Vec::new());
    };
    let targets = [Target::raw()?, Target::orders_sample_on_redis(program)];
    let cells = measure(options, &targets)?;
    println!(
        "http on redis: the service on core {SERVER_CORE}; redis-server and the load generator \
         on core {CLIENT_CORE}"
    );
    for cell in cells.iter().filter(|cell| cell.target.redis_url.is_some()) {
        let busy = cell.reports.iter().map(|report| report.server_busy * 100.0);
        let busy = median(&busy.collect::<Vec<f64>>());
        let mode = cell.mode.name();
        println!("http on redis: key {mode}: the service used {busy:.0} % of its core");
    }
    // The plain handler is there to be compared with; its own row belongs to the part `http`.
    Ok(rows(&cells).split_off(targets[0].modes().len()))
}

/// Checks every server, and measures it in all its modes.
fn measure<'a>(options: &Options, targets: &'a [Target]) -> Result<Vec<Cell<'a>>> {
    for target in targets {
        verify(target)?;
    }
    if !can_pin() {
        println!("note: no taskset or one core only; servers and load generator share cores");
    }
    let mut cells: Vec<Cell<'_>> = targets
        .iter()
        .flat_map(|target| {
            target
                .modes()
                .iter()
                .map(move |&mode| Cell::new(target, mode))
        })
        .collect();
    for round in 1..=options.rounds {
        for cell in &mut cells {
            cell.measure(options.seconds)?;
        }
        println!("http: round {round} of {} done", options.rounds);
    }
    Ok(cells)
}

fn targets(options: &Options) -> Result<Vec<Target>> {
    let mut targets = vec![Target::raw()?];
    if let Some(program) = &options.orders_sample {
        targets.push(Target::orders_sample(program));
    }
    if let Some(program) = &options.peers {
        targets.push(Target::axum_idempotent(program));
        targets.push(Target::idempotent(program));
    }
    Ok(targets)
}

/// One server in one mode, and what each round gave.
struct Cell<'a> {
    target: &'a Target,
    mode: Mode,
    reports: Vec<Report>,
    resident: u64,
}

impl<'a> Cell<'a> {
    fn new(target: &'a Target, mode: Mode) -> Self {
        Self {
            target,
            mode,
            reports: Vec::new(),
            resident: 0,
        }
    }

    /// One round on a fresh server.
    fn measure(&mut self, seconds: f64) -> Result {
        let server = Server::start(self.target)?;
        let report = server.load(self.target, self.mode, seconds)?;
        if report.unexpected > 0 {
            let (count, name) = (report.unexpected, self.target.name);
            return Err(format!("{name} gave {count} answers that were not 201").into());
        }
        self.resident = self.resident.max(server.resident_bytes()?);
        self.reports.push(report);
        Ok(())
    }

    fn per_second(&self) -> Vec<f64> {
        self.reports
            .iter()
            .map(|report| report.per_second)
            .collect()
    }

    fn cpu_time(&self) -> Vec<f64> {
        let reports = self.reports.iter();
        reports.map(Report::server_microseconds).collect()
    }

    fn value(&self) -> String {
        let median_of = |figure: fn(&Report) -> f64| {
            median(&self.reports.iter().map(figure).collect::<Vec<f64>>())
        };
        format!(
            "{:.0}/s, p99 {:.2} ms, {:.1} µs CPU",
            median_of(|report| report.per_second),
            median_of(|report| report.p99_milliseconds),
            median_of(Report::server_microseconds),
        )
    }
}

/// Each server against itself without a key; without a key against the plain handler.
fn rows(cells: &[Cell<'_>]) -> Vec<Row> {
    let cell = |name: &str, mode: Mode| {
        cells
            .iter()
            .find(|cell| cell.target.name == name && cell.mode == mode)
    };
    let raw = cells.first();
    let mut rows = Vec::new();
    for ours in cells {
        let name = ours.target.name;
        let (what, baseline, bar) = match ours.mode {
            Mode::None => ("no key", raw, None),
            Mode::Fresh => (
                "fresh key",
                cell(name, Mode::None),
                ours.target.bars.map(|b| b.0),
            ),
            Mode::Replay => (
                "replayed",
                cell(name, Mode::None),
                ours.target.bars.map(|b| b.1),
            ),
        };
        let Some(baseline) = baseline else { continue };
        rows.push(Row {
            what: format!("HTTP, {name}, {what}"),
            ours: ours.value(),
            baseline: baseline.value(),
            ratios: ratios(&ours.per_second(), &baseline.per_second()),
            cpu_ratios: ratios(&baseline.cpu_time(), &ours.cpu_time()),
            bar: bar.map(Bar::AtLeast),
        });
    }
    rows
}

/// Says how far the generator was from being the bottleneck, and what the records took.
fn note_limits(cells: &[Cell<'_>]) {
    let reports: Vec<&Report> = cells.iter().flat_map(|cell| &cell.reports).collect();
    let busiest = reports.iter().map(|report| report.busy).fold(0.0, f64::max);
    let idlest = reports
        .iter()
        .map(|report| report.server_busy)
        .fold(1.0, f64::min);
    println!(
        "http: the load generator used at most {:.0} % of its core, a server at least {:.0} %",
        busiest * 100.0,
        idlest * 100.0
    );
    if idlest < 0.9 {
        println!("http: something else used the servers' core; trust the ratio by CPU only");
    }
    println!(
        "http: the stores of orders-sample may hold {} bytes",
        targets::STORE_BYTES
    );
    for cell in cells.iter().filter(|cell| cell.mode == Mode::Fresh) {
        let mebibytes = cell.resident / (1024 * 1024);
        println!(
            "http: {} with fresh keys held at most {mebibytes} MiB",
            cell.target.name
        );
    }
}

/// Checks that the server does what is measured: a repeat is replayed, anything else is not.
fn verify(target: &Target) -> Result {
    let server = Server::start(target)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let answers = runtime.block_on(ask(target, server.port))?;
    let bodies: BTreeSet<&[u8]> = answers
        .iter()
        .map(|answer| answer.body.as_slice())
        .collect();
    let wanted: &[bool] = match target.keyed_headers.is_empty() {
        true => &[false, false],
        false => &[false, false, false, true, false],
    };
    let replayed: Vec<bool> = answers.iter().map(|answer| answer.replayed).collect();
    let executed = wanted.iter().filter(|replayed| !**replayed).count();
    if replayed != wanted || bodies.len() != executed {
        return Err(format!("{} does not replay as it should: {answers:?}", target.name).into());
    }
    Ok(())
}

#[derive(Debug)]
struct Answer {
    replayed: bool,
    body: Vec<u8>,
}

/// Twice without a key; then, where there are keys: the first one, again, and another.
async fn ask(target: &Target, port: u16) -> Result<Vec<Answer>> {
    let plain = Request::post("/orders", &target.headers, BODY);
    let all = [target.headers.as_slice(), &target.keyed_headers].concat();
    let mut keyed = Request::post("/orders", &all, BODY);
    let mut connection = Connection::open(port).await?;
    let mut answers = Vec::new();
    for _ in 0..2 {
        answers.push(answer(target, connection.send(&plain).await?)?);
    }
    if !target.keyed_headers.is_empty() {
        for key in [1, 1, 2] {
            keyed.fill(key, 1);
            answers.push(answer(target, connection.send(&keyed).await?)?);
        }
    }
    Ok(answers)
}

fn answer(target: &Target, response: Response<'_>) -> Result<Answer> {
    if response.status != 201 {
        let body = String::from_utf8_lossy(response.body);
        return Err(format!("{}: {}\n{body}", target.name, response.head).into());
    }
    Ok(Answer {
        replayed: response.header(target.replay_mark) == Some("true"),
        body: response.body.to_vec(),
    })
}
