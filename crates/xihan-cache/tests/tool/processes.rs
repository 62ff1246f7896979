//! What happens to a command's processes when one of those around it is gone.

use std::time::{Duration, Instant};

use redis_support::wait_until;

use crate::support::{Running, Scene, find, is_alive, signal};

/// A leader with a child, both of which ignore everything that can be ignored.
const STUBBORN: &str = "\
trap '' TERM INT HUP QUIT USR1 USR2
sleep 60 & echo $! > child
echo $$ > leader
sleep 60";

struct Group {
    holder: Running,
    leader: u32,
    child: u32,
}

fn start(scene: &Scene, options: &[&str]) -> Group {
    let holder = scene.lock(options, STUBBORN).start();
    Group {
        holder,
        child: scene.until_number("child"),
        leader: scene.until_number("leader"),
    }
}

impl Group {
    fn guard(&self) -> u32 {
        let guards = find(self.leader, "lock-guard");
        assert_eq!(guards.len(), 1);
        guards[0]
    }

    fn until_gone(&self) {
        wait_until("an end of leader and child", || {
            !is_alive(self.leader) && !is_alive(self.child)
        });
    }
}

#[test]
fn part11_the_whole_group_dies_with_a_killed_wrapper_and_the_lease_runs_out() {
    let scene = Scene::new();
    let group = start(&scene, &["--ttl", "3s", "--keep-alive"]);
    let begun = Instant::now();
    group.holder.signal("KILL");
    group.until_gone();
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "as late as the lease"
    );
    assert_eq!(find(group.leader, "lock-guard"), [0_u32; 0]);
    // The lease stands until it has run out.
    assert_ne!(scene.token(), "");
    scene.lock(&["--ttl", "3s"], "true").run().expect(75);
    scene
        .lock(&["--ttl", "3s", "--wait", "30s"], "true")
        .run()
        .expect(0);
}

#[test]
fn part11_the_direct_child_dies_with_a_killed_wrapper_even_without_its_guard() {
    let scene = Scene::new();
    let group = start(&scene, &["--ttl", "30s"]);
    signal(group.guard(), "KILL");
    wait_until("no guard", || find(group.leader, "lock-guard").is_empty());
    assert!(is_alive(group.leader));
    group.holder.signal("KILL");
    wait_until("no leader", || !is_alive(group.leader));
    signal(group.child, "KILL");
}

#[test]
fn a_command_without_a_guard_is_stopped_and_given_back_all_the_same() {
    let scene = Scene::new();
    let group = start(&scene, &["--ttl", "1s"]);
    signal(group.guard(), "KILL");
    let Group {
        holder,
        leader,
        child,
    } = group;
    holder.wait().expect(76);
    assert!(!is_alive(leader) && !is_alive(child));
}

#[test]
fn a_wrapper_that_stands_still_loses_its_command_before_its_lease() {
    let scene = Scene::new();
    let group = start(&scene, &["--ttl", "3s", "--keep-alive"]);
    group.holder.signal("STOP");
    let token = scene.token();
    assert_ne!(token, "");
    // As long as the lease stands it cannot be anybody else's: so look at the group first.
    wait_until("a killed group", || {
        let is_held = scene.token() == token;
        let is_gone = !is_alive(group.leader) && !is_alive(group.child);
        assert!(is_held || is_gone, "the lease ended before the group did");
        is_gone
    });
    group.holder.signal("CONT");
    let done = group.holder.wait().expect(76);
    assert!(done.error.contains("`r`"), "{done:?}");
}

#[test]
fn part11_what_a_command_leaves_behind_is_gone_before_the_lock_is() {
    let scene = Scene::new();
    let script = "sleep 60 & echo $! > child; exit 3";
    let done = scene.lock(&["--ttl", "30s"], script).run().expect(3);
    assert!(done.error.contains("left processes behind"), "{done:?}");
    assert!(!is_alive(scene.until_number("child")));
    assert_eq!(scene.token(), "");
}

#[test]
fn part11_what_is_left_behind_and_does_not_listen_is_killed() {
    let scene = Scene::new();
    let script = "(trap '' TERM; echo > deaf; while :; do sleep 1; done) & echo $! > child
                  until [ -s deaf ]; do sleep 0.01; done; exit 3";
    let begun = Instant::now();
    scene
        .lock(&["--ttl", "1s", "--keep-alive"], script)
        .run()
        .expect(3);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(!is_alive(scene.until_number("child")));
}

#[test]
fn a_daemon_that_left_the_group_is_left_alone() {
    let scene = Scene::new();
    let script = "setsid sh -c 'echo $$ > daemon; exec sleep 60' & until [ -s daemon ]; do \
                  sleep 0.01; done";
    let done = scene.lock(&["--ttl", "30s"], script).run().expect(0);
    assert_eq!(done.error, "");
    let daemon = scene.until_number("daemon");
    assert!(is_alive(daemon));
    signal(daemon, "KILL");
}

#[test]
fn a_command_that_kills_its_own_group_ends_as_it_would_alone() {
    let scene = Scene::new();
    let script = "sleep 60 & kill -KILL 0";
    scene.lock(&["--ttl", "30s"], script).run().expect(137);
    assert_eq!(scene.token(), "");
}
