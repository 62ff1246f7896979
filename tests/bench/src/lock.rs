//! Acquiring and releasing a lock against two operations of a bare map.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use caching_abstractions::{CacheKey, DistributedLock, seconds};
use parking_lot::Mutex;
use tokio::runtime::Builder;

use crate::subject::Ours;
use crate::table::{Row, median, ratios};
use crate::{Options, Result};

const RESOURCES: usize = 10_000;
const CYCLES: usize = 100_000;

/// Measures the cycle and gives its row.
pub(crate) fn run(options: &Options) -> Result<Vec<Row>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let resources: Vec<String> = (0..RESOURCES).map(|n| format!("orders:{n:06}")).collect();
    let locks = DistributedLock::new(Arc::clone(Ours::new()?.store()));
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        bare.push(bare_map(&resources)?);
        ours.push(runtime.block_on(cycles(&locks, &resources))?);
    }
    println!("lock: done");
    Ok(vec![Row {
        what: "lock, acquire and release".to_owned(),
        ours: format!("{:.0} ns", median(&ours)),
        baseline: format!("map insert and remove {:.0} ns", median(&bare)),
        ratios: ratios(&ours, &bare),
        cpu_ratios: Vec::new(),
        bar: None,
    }])
}

/// Nanoseconds per cycle of the lock.
async fn cycles(locks: &DistributedLock, resources: &[String]) -> Result<f64> {
    let start = Instant::now();
    for resource in resources.iter().cycle().take(CYCLES) {
        let lock = locks.acquire(resource, seconds(30)).await?;
        if !lock.release().await? {
            return Err("a lease of 30 s was over before it was released".into());
        }
    }
    Ok(nanoseconds_per_cycle(start))
}

/// Nanoseconds per cycle of a map behind a mutex: no lifetime, no token, no fencing number.
fn bare_map(resources: &[String]) -> Result<f64> {
    let map: Mutex<HashMap<CacheKey, Bytes>> = Mutex::new(HashMap::new());
    let start = Instant::now();
    for resource in resources.iter().cycle().take(CYCLES) {
        let key = CacheKey::new(format!("lock:{resource}"))?;
        map.lock().insert(key.clone(), Bytes::from_static(b"token"));
        if map.lock().remove(&key).is_none() {
            return Err("the map lost an entry".into());
        }
    }
    Ok(nanoseconds_per_cycle(start))
}

fn nanoseconds_per_cycle(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / CYCLES as f64
}
