//! Many processes that want one lock, and are killed at random; apart from the other tests, whose
//! short leases need a machine that has time for them.

#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code on plain threads; a test fails by panicking"
)]

#[path = "tool/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "these cases need a part of it")]
mod support;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use redis_support::wait_until;
use support::{Call, Done, Running, Scene, Served, signal};

const CROWD: usize = 100;
/// Every so many processes one gets this signal at a random moment.
const FATES: [Option<&str>; 5] = [Some("KILL"), Some("TERM"), None, None, None];
/// How often the present holder gets one as well.
const AT_THE_HOLDER: usize = 8;

/// Nobody else holds the file; who runs is written down in order. The second sleeper keeps the file
/// open, and longer than a lease, unless it is ended with its group.
const SCRIPT: &str = "\
exec 9>> exclusive; flock -n 9 || echo $XIHAN_LOCK_FENCING >> overlaps
sleep 5 & echo $XIHAN_LOCK_FENCING $PPID >> log
sleep 0.05; kill $!; wait $!; exit 0";

/// Numbers that look random; the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// A store, and a folder for what commands write.
trait Place {
    fn lock(&self, options: &[&str], script: &str) -> Call;
    fn read(&self, name: &str) -> String;
}

impl Place for Scene {
    fn lock(&self, options: &[&str], script: &str) -> Call {
        self.lock(options, script)
    }

    fn read(&self, name: &str) -> String {
        self.read(name)
    }
}

impl Place for Served {
    fn lock(&self, options: &[&str], script: &str) -> Call {
        self.lock(options, script)
    }

    fn read(&self, name: &str) -> String {
        self.read(name)
    }
}

#[test]
fn part11_of_a_hundred_processes_that_are_killed_at_random_never_two_run_at_once() {
    never_two_at_once(&Scene::new());
}

#[test]
fn part11_of_a_hundred_processes_on_a_served_store_never_two_run_at_once() {
    never_two_at_once(&Served::start(&[]));
}

fn never_two_at_once(scene: &dyn Place) {
    // Twice as many at once would be a test of the machine.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    let seed = std::process::id().into();
    let mut random = Random(seed);
    let options = ["--ttl", "1500ms", "--wait", "1m", "--keep-alive"];
    let crowd: Vec<Running> = (0..CROWD)
        .map(|_| scene.lock(&options, SCRIPT).start())
        .collect();
    let signalled = torment(scene, &crowd, &mut random);

    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for process in crowd {
        let signals = signalled.get(&process.id()).cloned().unwrap_or_default();
        let done = process.wait();
        let outcome = outcome(&done, &signals)
            .unwrap_or_else(|| panic!("seed {seed}: {done:?} after {signals:?}"));
        *outcomes.entry(outcome).or_default() += 1;
    }
    assert_eq!(scene.read("overlaps"), "", "seed {seed}: {outcomes:?}");
    let ran = fencing(&scene.read("log"));
    let rises = ran.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(rises, "seed {seed}: {ran:?}");
    let done = outcomes.get("done").copied().unwrap_or_default();
    assert!(done >= CROWD / 3, "seed {seed}: {outcomes:?}");
    // Some were hit while their command ran, or the case shows nothing.
    assert!(
        ran.len() >= done + AT_THE_HOLDER / 2,
        "seed {seed}: {outcomes:?}"
    );
}

/// Sends signals for some seconds; gives who got which.
fn torment<'a>(
    scene: &dyn Place,
    crowd: &[Running],
    random: &mut Random,
) -> BTreeMap<u32, Vec<&'a str>> {
    let mut plan: Vec<(u64, Option<u32>, &str)> = Vec::new();
    for (number, process) in crowd.iter().enumerate() {
        if let Some(name) = FATES[number % FATES.len()] {
            plan.push((random.below(6000), Some(process.id()), name));
        }
    }
    for number in 0..AT_THE_HOLDER {
        let name = if number % 2 == 0 { "KILL" } else { "TERM" };
        plan.push((random.below(6000), None, name));
    }
    plan.sort_unstable();
    let begun = Instant::now();
    let mut signalled: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (at, id, name) in plan {
        std::thread::sleep(Duration::from_millis(at).saturating_sub(begun.elapsed()));
        let id = id.unwrap_or_else(|| next_holder(scene));
        // The crowd is waited for only later, so a number cannot be somebody else's by now.
        signal(id, name);
        signalled.entry(id).or_default().push(name);
    }
    signalled
}

/// The wrapper of the next command that begins.
fn next_holder(scene: &dyn Place) -> u32 {
    let before = scene.read("log").len();
    let mut holder = None;
    wait_until("another holder", || {
        let log = scene.read("log");
        let line = log[before..].lines().next().filter(|_| log.ends_with('\n'));
        holder = line.and_then(|line| line.split(' ').nth(1)?.parse().ok());
        holder.is_some()
    });
    holder.unwrap()
}

fn fencing(log: &str) -> Vec<u64> {
    log.lines()
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect()
}

/// What a documented status stands for; none for one that the signals do not explain.
fn outcome(done: &Done, signals: &[&str]) -> Option<String> {
    let got = |name: &str| signals.contains(&name);
    let outcome = match (done.code, done.signal) {
        (Some(0), None) => "done",
        (Some(75), None) => "held",
        (Some(76), None) => "lost",
        // The machine was so slow that the grant was of no use any more.
        (Some(69), None) if done.error.contains("granted the lock so late") => "late",
        (None, Some(9)) if got("KILL") => "killed",
        // Either its command was ended by it, or its wait; or it had not begun to listen.
        (Some(143), None) | (None, Some(15)) if got("TERM") => "ended",
        _ => return None,
    };
    Some(outcome.to_owned())
}
