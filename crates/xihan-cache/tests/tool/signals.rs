//! Signals on their way to the command.

use redis_support::wait_until;

use crate::support::{Call, Running, Scene, group_of};

/// Says that it is there, and of each signal that it came; ends after those that end others.
const SCRIPT: &str = "\
for s in TERM INT HUP QUIT; do trap \"echo $s >> got; exit 42\" $s; done
for s in USR1 USR2; do trap \"echo $s >> got\" $s; done
echo $$ > pid
while :; do sleep 0.02; done";

fn start(scene: &Scene) -> Running {
    let holder = scene.lock(&["--ttl", "30s"], SCRIPT).start();
    scene.until_number("pid");
    holder
}

#[test]
fn part11_signals_are_passed_on_and_the_lock_is_given_back() {
    for name in ["TERM", "INT", "HUP", "QUIT"] {
        let scene = Scene::new();
        let holder = start(&scene);
        holder.signal(name);
        let done = holder.wait().expect(42);
        assert_eq!(scene.read("got"), format!("{name}\n"), "{done:?}");
        assert_eq!(scene.token(), "", "{name}");
    }
}

#[test]
fn part11_user_signals_are_passed_on_and_end_nothing() {
    let scene = Scene::new();
    let holder = start(&scene);
    for name in ["USR1", "USR2"] {
        holder.signal(name);
        scene.until_written("got", name);
    }
    assert_ne!(scene.token(), "");
    holder.signal("TERM");
    holder.wait().expect(42);
}

#[test]
fn part11_a_command_without_handlers_ends_with_128_and_the_signal() {
    for (name, code) in [("TERM", 143), ("INT", 130), ("HUP", 129), ("USR1", 138)] {
        let scene = Scene::new();
        let holder = scene
            .lock(&["--ttl", "30s"], "echo $$ > pid; exec sleep 60")
            .start();
        scene.until_number("pid");
        holder.signal(name);
        holder.wait().expect(code);
        assert_eq!(scene.token(), "");
    }
}

#[test]
fn part11_a_signal_reaches_the_whole_group() {
    let scene = Scene::new();
    let script = "(trap 'echo child >> got; exit' TERM; echo > child; \
                  while :; do sleep 0.02; done) &
                  trap 'echo leader >> got; exit 5' TERM
                  echo $$ > pid; while :; do sleep 0.02; done";
    let holder = scene.lock(&["--ttl", "30s"], script).start();
    let leader = scene.until_number("pid");
    scene.until_written("child", "\n");
    assert_eq!(group_of(leader), Some(leader));
    assert_ne!(group_of(leader), group_of(holder.id()));
    holder.signal("TERM");
    let done = holder.wait().expect(5);
    assert!(scene.read("got").contains("child"), "{done:?}");
    // What was asked to end is no surprise.
    assert!(!done.error.contains("left processes behind"), "{done:?}");
}

#[test]
fn a_command_that_goes_on_after_a_signal_keeps_the_lock() {
    let scene = Scene::new();
    let script = "trap 'echo TERM >> got' TERM; echo $$ > pid
                  until [ -e stop ]; do sleep 0.02; done; exit 6";
    let holder = scene.lock(&["--ttl", "30s"], script).start();
    scene.until_number("pid");
    holder.signal("TERM");
    scene.until_written("got", "TERM");
    scene.lock(&["--ttl", "30s"], "true").run().expect(75);
    std::fs::write(scene.path("stop"), "").unwrap();
    holder.wait().expect(6);
}

#[test]
fn what_was_ignored_at_the_start_stays_ignored_as_with_nohup() {
    let scene = Scene::new();
    let tool = env!("CARGO_BIN_EXE_xihan-cache");
    let script = format!("trap '' HUP; exec {tool} lock r --ttl 30s -- sh -c \"$0\"");
    let command = "echo $$ > pid; until [ -e stop ]; do sleep 0.02; done; exit 6";
    let holder = Call::of("sh")
        .args(&["-c", &script, command])
        .env("XIHAN_CACHE_STORE", &scene.server.url())
        .in_directory(scene.directory.path())
        .start();
    let leader = scene.until_number("pid");
    holder.signal("HUP");
    crate::support::signal(leader, "HUP");
    std::fs::write(scene.path("stop"), "").unwrap();
    holder.wait().expect(6);
}

#[test]
fn a_holder_is_not_suspended() {
    let scene = Scene::new();
    let holder = start(&scene);
    holder.signal("TSTP");
    holder.signal("USR1");
    scene.until_written("got", "USR1");
    holder.signal("TERM");
    let done = holder.wait().expect(42);
    assert!(done.error.contains("not suspended"), "{done:?}");
}

#[test]
fn l9_a_signal_ends_the_wait_for_a_lock_and_leaves_nothing() {
    let scene = Scene::new();
    let holder = start(&scene);
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let options = ["--ttl", "30s", "--wait", "1m"];
        let waiting = scene.lock(&options, "touch ran").start();
        let watchers = || scene.server.raw().command(&["CLIENT", "LIST"]).text();
        wait_until("a waiter", || watchers().contains("sub=1"));
        waiting.signal(name);
        waiting.wait().expect(code);
    }
    holder.signal("TERM");
    holder.wait().expect(42);
    assert!(!scene.path("ran").exists());
    assert_eq!(scene.token(), "");
}
