//! Bytes per entry, by the resident set of a process of its own.

use std::fs;
use std::process::{Command, Stdio};

use bytes::Bytes;
use caching_abstractions::CacheKey;
use clap::ValueEnum;

use crate::subject::{BareMoka, Ours, Subject};
use crate::table::{Bar, Row, median, ratios};
use crate::{Options, Result};

const ENTRIES: u64 = 1_000_000;
const VALUE_BYTES: usize = 100;
/// What an entry may take at most.
const LIMIT: f64 = 660.0;

/// What is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Bare moka
    Moka,
    /// Our evictable entries
    Evictable,
    /// Our protected entries
    Protected,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Moka => "moka",
            Self::Evictable => "evictable",
            Self::Protected => "protected",
        }
    }
}

/// Measures each kind in processes of its own and gives the rows of the table.
pub(crate) fn run(options: &Options) -> Result<Vec<Row>> {
    let (mut moka, mut evictable, mut protected) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        moka.push(child(Kind::Moka)?);
        evictable.push(child(Kind::Evictable)?);
        protected.push(child(Kind::Protected)?);
    }
    println!("memory: done");
    let row = |kind: Kind, ours: &[f64], against: &str, baseline: &[f64], bar| Row {
        what: format!("memory per entry, {}, {against}", kind.name()),
        ours: format!("{:.0} B", median(ours)),
        baseline: format!("{:.0} B", median(baseline)),
        ratios: ratios(ours, baseline),
        cpu_ratios: Vec::new(),
        bar,
    };
    let limit = vec![LIMIT; moka.len()];
    let within = Some(Bar::AtMost(1.0));
    Ok(vec![
        row(Kind::Evictable, &evictable, "against moka", &moka, None),
        row(
            Kind::Evictable,
            &evictable,
            "against its limit",
            &limit,
            within,
        ),
        row(Kind::Protected, &protected, "against moka", &moka, None),
        row(
            Kind::Protected,
            &protected,
            "against its limit",
            &limit,
            within,
        ),
    ])
}

/// Fills a store of `kind` and prints the bytes per entry.
pub(crate) fn run_child(kind: Kind) -> Result {
    let per_entry = match kind {
        Kind::Moka => fill(&BareMoka::new(), |subject, key, value| {
            subject.set(key, value)
        })?,
        Kind::Evictable => fill(&Ours::new()?, |subject, key, value| subject.set(key, value))?,
        Kind::Protected => fill(&Ours::new()?, |subject, key, value| {
            subject.try_add(key, value)
        })?,
    };
    println!("{per_entry}");
    Ok(())
}

/// The bytes per entry that the process has grown by.
fn fill<S: Subject>(subject: &S, write: impl Fn(&S, &CacheKey, &Bytes) -> bool) -> Result<f64> {
    let key = |index: u64| CacheKey::new(format!("tenant:order:{index:08}"));
    let before = resident_bytes("self")?;
    for index in 0..ENTRIES {
        // Each value is an allocation of its own, as a value from a network is.
        let value = Bytes::from(vec![1; VALUE_BYTES]);
        if !write(subject, &key(index)?, &value) {
            return Err(format!("entry {index} was not written").into());
        }
    }
    let after = resident_bytes("self")?;
    for index in 0..ENTRIES {
        if !subject.get(&key(index)?) {
            return Err(format!("entry {index} is gone").into());
        }
    }
    Ok((after - before) as f64 / ENTRIES as f64)
}

fn child(kind: Kind) -> Result<f64> {
    let output = Command::new(std::env::current_exe()?)
        .args(["memory", "--kind", kind.name()])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("measuring the memory of {} failed", kind.name()).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// The resident set of a process (`self` or its number).
pub(crate) fn resident_bytes(process: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let kibibytes: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"))
        .ok_or("the kernel does not say how much memory the process holds")?
        .trim()
        .parse()?;
    Ok(kibibytes * 1024)
}
