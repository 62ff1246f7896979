//! Locks that are lost while the command runs.

use std::time::{Duration, Instant};

use redis_support::wait_until;

use crate::support::{Running, Scene, is_alive};

/// Ends when it is asked to, after a moment of cleaning up.
const POLITE: &str = "\
trap 'echo TERM >> got; sleep 0.05; echo clean >> got; exit 0' TERM
echo $$ > pid; while :; do sleep 0.02; done";

/// Does not listen, with all of its group, and holds a file that nobody else may hold.
const STUBBORN: &str = "\
trap '' TERM
exec 9>> exclusive; flock -n 9 || echo overlap >> overlaps
echo $$ > pid; while :; do sleep 1; done";

fn start(scene: &Scene, options: &[&str], script: &str) -> (Running, u32) {
    let holder = scene.lock(options, script).start();
    (holder, scene.until_number("pid"))
}

fn lost(holder: Running, says: &str) {
    let done = holder.wait().expect(76);
    assert!(done.error.contains(says), "{done:?}");
}

#[test]
fn l7_a_command_that_outlives_its_lease_is_asked_to_stop_before_the_end() {
    let scene = Scene::new();
    let options = ["--ttl", "3s", "--grace", "1500ms"];
    let (holder, _) = start(&scene, &options, POLITE);
    scene.until_written("got", "TERM");
    assert_ne!(scene.token(), "", "asked too late");
    lost(holder, "the command was stopped");
    assert_eq!(scene.read("got"), "TERM\nclean\n");
    // It ended in time, so nobody has to wait for the rest of the lease.
    assert_eq!(scene.token(), "");
}

#[test]
fn part11_a_command_that_does_not_listen_is_gone_before_anybody_else_runs() {
    let scene = Scene::new();
    let (holder, pid) = start(&scene, &["--ttl", "1s"], STUBBORN);
    let next = "exec 9>> exclusive; flock -n 9 || echo overlap >> overlaps";
    let waiting = scene.lock(&["--ttl", "30s", "--wait", "30s"], next).start();
    lost(holder, "the command was stopped");
    assert!(!is_alive(pid));
    waiting.wait().expect(0);
    assert_eq!(scene.read("overlaps"), "");
}

#[test]
fn l12_a_lock_that_is_wiped_out_stops_the_command_at_the_next_renewal() {
    let scene = Scene::new();
    // A third of it is far more than a start takes, and far less than the lease.
    let (holder, pid) = start(&scene, &["--ttl", "3s", "--keep-alive"], STUBBORN);
    let begun = Instant::now();
    scene.server.raw().command(&["FLUSHALL"]);
    wait_until("an end", || !is_alive(pid));
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    lost(holder, "the command was stopped");
}

#[test]
fn l5_a_lock_that_was_given_to_somebody_else_is_theirs() {
    let scene = Scene::new();
    let (holder, pid) = start(&scene, &["--ttl", "900ms", "--keep-alive"], STUBBORN);
    scene
        .server
        .raw()
        .command(&["SET", "lock:r", "another", "PX", "60000"]);
    lost(holder, "the command was stopped");
    assert!(!is_alive(pid));
    assert_eq!(scene.token(), "another");
}

#[test]
fn l12_a_store_that_dies_stops_the_command_within_the_lease() {
    let mut scene = Scene::new();
    let (holder, pid) = start(&scene, &["--ttl", "3s", "--keep-alive"], POLITE);
    let begun = Instant::now();
    scene.server.kill();
    wait_until("an end", || !is_alive(pid));
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    lost(holder, "the command was stopped");
    assert!(scene.read("got").contains("clean"));
}

#[test]
fn l12_a_store_that_is_away_for_less_than_the_lease_does_no_harm() {
    let scene = Scene::new();
    let script = "echo $$ > pid; until [ -e stop ]; do sleep 0.02; done; exit 4";
    let options = ["--ttl", "4s", "--keep-alive", "--timeout", "500ms"];
    let (holder, _) = start(&scene, &options, script);
    scene.server.pause();
    std::thread::sleep(Duration::from_millis(1800));
    scene.server.resume();
    std::thread::sleep(Duration::from_millis(4000));
    std::fs::write(scene.path("stop"), "").unwrap();
    holder.wait().expect(4);
    assert_eq!(scene.token(), "");
}

#[test]
fn part11_with_warn_the_command_goes_on_and_its_status_counts() {
    let scene = Scene::new();
    let script = "echo $$ > pid; until [ -e stop ]; do sleep 0.02; done; exit 4";
    let options = ["--ttl", "600ms", "--on-lost", "warn"];
    let (holder, pid) = start(&scene, &options, script);
    wait_until("the end of the lease", || scene.token().is_empty());
    scene.lock(&["--ttl", "1m"], "true").run().expect(0);
    assert!(is_alive(pid));
    std::fs::write(scene.path("stop"), "").unwrap();
    let done = holder.wait().expect(4);
    assert!(done.error.contains("goes on without it"), "{done:?}");
}

#[test]
fn l12_a_command_that_hangs_is_stopped_at_the_most_that_a_lock_is_kept() {
    let scene = Scene::new();
    let options = ["--ttl", "1s", "--keep-alive", "--max-hold", "2500ms"];
    let begun = Instant::now();
    let (holder, pid) = start(&scene, &options, STUBBORN);
    lost(holder, "the command was stopped");
    assert!(!is_alive(pid));
    assert!(
        begun.elapsed() > Duration::from_millis(2000),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn part11_a_lock_that_turns_out_to_be_gone_at_the_end_is_lost() {
    let scene = Scene::new();
    let script = "echo $$ > pid; until [ -e stop ]; do sleep 0.02; done";
    let (holder, _) = start(&scene, &["--ttl", "30s"], script);
    scene.server.raw().command(&["DEL", "lock:r"]);
    std::fs::write(scene.path("stop"), "").unwrap();
    lost(holder, "taken away");
}

#[test]
fn a_lock_that_cannot_be_given_back_runs_out_and_the_status_is_the_commands() {
    let mut scene = Scene::new();
    let script = "echo $$ > pid; until [ -e stop ]; do sleep 0.02; done; exit 4";
    let (holder, _) = start(&scene, &["--ttl", "30s"], script);
    scene.server.kill();
    std::fs::write(scene.path("stop"), "").unwrap();
    let done = holder.wait().expect(4);
    assert!(done.error.contains("runs out by itself"), "{done:?}");
}

/// The renewal that was under way is answered, but by then the guard has acted.
#[test]
fn part11_a_tool_that_stood_still_is_76_also_where_a_renewal_was_answered_meanwhile() {
    let scene = Scene::new();
    let options = ["--ttl", "3s", "--keep-alive"];
    let (holder, pid) = start(&scene, &options, POLITE);
    scene.server.pause();
    // The first renewal is sent after a third of the lease, and waits for its answer for longer.
    std::thread::sleep(Duration::from_millis(1500));
    holder.signal("STOP");
    scene.server.resume();
    wait_until("the guard", || !is_alive(pid));
    holder.signal("CONT");
    lost(holder, "the lock on `r`");
    assert_eq!(scene.read("got"), "");
    assert_eq!(scene.token(), "");
}
