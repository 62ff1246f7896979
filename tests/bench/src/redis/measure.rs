//! Throughput of operations on a real Redis, measured in turns.
//!
//! The peers are measured by this very file.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// How many tasks send at the same time, never two of them about one key.
pub(crate) const TASKS: [usize; 2] = [1, 64];
/// How many keys there are; a multiple of each number of tasks.
pub(crate) const KEYS: usize = 16_000;
pub(crate) const VALUE: [u8; 100] = [1; 100];
/// As long as a generated token is.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const ENTRY_MILLISECONDS: u32 = 60 * 60 * 1000;
pub(crate) const LEASE_MILLISECONDS: u32 = 30 * 1000;
/// Releases a lock that is no more than `SET NX PX`.
pub(crate) const COMPARE_AND_DELETE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
     return redis.call('DEL', KEYS[1]) else return 0 end";

/// With one task each command waits for the one before it.
const ONE_AT_A_TIME: usize = 3000;
/// How often each contender has its turn; odd, as the median counts.
const TURNS: usize = 5;

/// What is measured. Those on entries come in this order: each one finds what the ones before it
/// left behind.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) enum Operation {
    Set,
    Get,
    /// `get_or_add` of a key that stands
    GetStanding,
    /// `get_or_add` of a new key
    Add,
    /// `SET NX PX`, then compare and delete
    PlainLock,
    /// Taking a lease with a fencing number and releasing it
    Lease,
    /// The same through a lock handle
    Lock,
}

impl Operation {
    pub(crate) const ON_ENTRIES: [Self; 4] = [Self::Set, Self::Get, Self::GetStanding, Self::Add];
}

/// Who sends commands.
pub(crate) trait Contender: Clone + Send + Sync + 'static {
    fn name(&self) -> &'static str;

    /// Does it once on the key `index`; `true` if it was answered as it has to be.
    fn apply(&self, operation: Operation, index: usize) -> impl Future<Output = bool> + Send;
}

/// What a process measured.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) contender: String,
    pub(crate) operation: Operation,
    pub(crate) tasks: usize,
    pub(crate) per_second: f64,
}

/// The name of the entry `index`.
pub(crate) fn entry(index: usize) -> String {
    format!("tenant:order:{index:08}")
}

/// The resource `index` that is locked.
pub(crate) fn resource(index: usize) -> String {
    format!("orders:{index:08}")
}

/// Measures `contenders` against each other: after a turn to warm up, each has its turns in an
/// order that rotates.
pub(crate) async fn measure<C: Contender>(
    port: u16,
    contenders: &[(C, Operation)],
    tasks: usize,
) -> Result<Vec<Figure>> {
    let count = if tasks == 1 { ONE_AT_A_TIME } else { KEYS };
    let mut elapsed = vec![Vec::with_capacity(TURNS); contenders.len()];
    for turn in 0..=TURNS {
        for place in 0..contenders.len() {
            let index = (place + turn) % contenders.len();
            let (contender, operation) = &contenders[index];
            if *operation == Operation::Add {
                flush(port)?;
            }
            let pass = pass(contender, *operation, count, tasks).await?;
            if turn > 0 {
                elapsed[index].push(pass);
            }
        }
    }
    let figure = |((contender, operation), mut turns): (&(C, Operation), Vec<Duration>)| {
        turns.sort_unstable();
        Figure {
            contender: contender.name().to_owned(),
            operation: *operation,
            tasks,
            per_second: count as f64 / turns[TURNS / 2].as_secs_f64(),
        }
    };
    Ok(contenders.iter().zip(elapsed).map(figure).collect())
}

/// One operation on each of `count` keys, the keys shared out among the tasks.
async fn pass<C: Contender>(
    contender: &C,
    operation: Operation,
    count: usize,
    tasks: usize,
) -> Result<Duration> {
    let start = Instant::now();
    let work = |first| {
        let contender = contender.clone();
        tokio::spawn(async move {
            let mut done = 0;
            for index in (first..count).step_by(tasks) {
                done += usize::from(contender.apply(operation, index).await);
            }
            done
        })
    };
    let workers: Vec<_> = (0..tasks).map(work).collect();
    let mut done = 0;
    for worker in workers {
        done += worker.await?;
    }
    let elapsed = start.elapsed();
    if done == count {
        return Ok(elapsed);
    }
    let name = contender.name();
    Err(format!("{name}, {operation:?}: {done} of {count} were answered as they have to").into())
}

/// Empties the server; also the way to find out whether it is there.
pub(crate) fn flush(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.write_all(b"FLUSHALL\r\n")?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer)?;
    match &answer {
        b"+OK\r\n" => Ok(()),
        other => Err(format!("redis-server answers {other:?} to FLUSHALL").into()),
    }
}
