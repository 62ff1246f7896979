//! A lock, its command, and the exit status.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use redis_support::wait_until;

use crate::support::{Call, Scene};

const TTL: [&str; 2] = ["--ttl", "30s"];

#[test]
fn part11_the_status_is_that_of_the_command() {
    let scene = Scene::new();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        scene.lock(&TTL, script).run().expect(code);
        assert_eq!(scene.token(), "", "{script}: not given back");
    }
    for (command, code) in [
        ("./not-there", 127),
        ("not-in-the-path", 127),
        ("/etc/passwd", 126),
    ] {
        let done = scene
            .call(&["lock", "r", "--ttl", "30s", "--", command])
            .run()
            .expect(code);
        assert!(done.error.contains(command), "{done:?}");
        assert_eq!(scene.token(), "");
    }
}

#[test]
fn part11_a_held_lock_is_status_75_and_the_command_does_not_run() {
    let scene = Scene::new();
    let holder = scene.lock(&TTL, "touch begun; read line").input("").start();
    wait_until("a holder", || scene.path("begun").exists());
    let done = scene.lock(&TTL, "touch ran").run().expect(75);
    assert_eq!(done.error, "", "cron would send a mail");
    let done = scene
        .lock(&["-v", "--ttl", "30s"], "touch ran")
        .run()
        .expect(75);
    assert!(done.error.contains("CACHING_CONFLICT_001"), "{done:?}");
    let done = scene
        .lock(&["--json", "--ttl", "30s"], "touch ran")
        .run()
        .expect(75);
    assert_eq!(done.json_error()["messageKey"], "caching.lock.held");
    assert_eq!(done.json_error()["parameters"]["resource"], "r");
    let done = scene
        .lock(&["--ttl", "30s", "--wait", "200ms"], "touch ran")
        .run()
        .expect(75);
    assert!(done.error.contains("did not become free"), "{done:?}");
    scene
        .call(&["lock", "other", "--ttl", "30s", "--", "true"])
        .run()
        .expect(0);
    assert!(!scene.path("ran").exists());
    holder.wait();
    scene.lock(&TTL, "touch ran").run().expect(0);
    assert!(scene.path("ran").exists());
}

#[test]
fn l11_whoever_waits_gets_the_lock_when_it_is_given_back() {
    let scene = Scene::new();
    let script = "touch begun; read line; echo first >> log";
    let holder = scene.lock(&TTL, script).input("").start();
    wait_until("a holder", || scene.path("begun").exists());
    let waiting = scene
        .lock(&["--ttl", "30s", "--wait", "1m"], "echo second >> log")
        .start();
    let watchers = || scene.server.raw().command(&["CLIENT", "LIST"]).text();
    wait_until("a waiter", || watchers().contains("sub=1"));
    holder.wait();
    waiting.wait().expect(0);
    assert_eq!(scene.read("log"), "first\nsecond\n");
}

#[test]
fn l3_other_programs_with_the_same_convention_are_excluded_and_exclude() {
    let scene = Scene::new();
    scene
        .server
        .raw()
        .command(&["SET", "lock:r", "another", "NX", "PX", "60000"]);
    scene.lock(&TTL, "touch ran").run().expect(75);
    scene.server.raw().command(&["DEL", "lock:r"]);
    let holder = scene.lock(&TTL, "touch begun; read line").input("").start();
    wait_until("a holder", || scene.path("begun").exists());
    let set = ["SET", "lock:r", "another", "NX", "PX", "60000"];
    assert_eq!(scene.server.raw().command(&set), redis_support::Reply::Nil);
    holder.wait().expect(1);
}

#[test]
fn l13_the_command_knows_resource_token_and_a_rising_fencing_number() {
    let scene = Scene::new();
    let mut former = 0;
    for _ in 0..3 {
        let script = "echo $XIHAN_LOCK_RESOURCE $XIHAN_LOCK_FENCING; echo $XIHAN_LOCK_TOKEN >&2; \
                      echo > begun; read line";
        let holder = scene.lock(&TTL, script).input("").start();
        scene.until_written("begun", "\n");
        let stored = scene.token();
        let done = holder.wait();
        assert_eq!(done.error.trim(), stored);
        let (resource, fencing) = done.text().trim().split_once(' ').unwrap();
        assert_eq!(resource, "r");
        let fencing: u64 = fencing.parse().unwrap();
        assert!(fencing > former, "{fencing} after {former}");
        former = fencing;
        std::fs::remove_file(scene.path("begun")).unwrap();
    }
}

#[test]
fn x3_the_token_stands_in_no_command_line() {
    let scene = Scene::new();
    let holder = scene
        .lock(&TTL, "echo > begun; read line")
        .input("")
        .start();
    scene.until_written("begun", "\n");
    let token = scene.token();
    assert_eq!(token.len(), 32);
    for entry in std::fs::read_dir("/proc").unwrap() {
        let line = entry.unwrap().path().join("cmdline");
        let line = std::fs::read(line).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains(&token), "{line:?}");
    }
    holder.wait();
}

#[test]
fn part11_everything_after_the_dashes_is_the_command_as_it_is() {
    let scene = Scene::new();
    let script = r#"printf '[%s]' "$@""#;
    let begin = ["lock", "r", "--ttl", "30s", "--", "sh", "-c", script, "sh"];
    let odd = OsString::from_vec(b"\xff\xfe".to_vec());
    let mut arguments: Vec<OsString> = begin.iter().map(OsString::from).collect();
    let after = ["--json", "-v", "", "a b", "$HOME", "--", "*", "'\"\\"];
    arguments.extend(after.iter().map(OsString::from));
    arguments.push(odd);
    let done = Call::new(&arguments)
        .env("XIHAN_CACHE_STORE", &scene.server.url())
        .run()
        .expect(0);
    let expected = b"[--json][-v][][a b][$HOME][--][*]['\"\\][\xff\xfe]";
    assert_eq!(done.output, expected, "{done:?}");
}

#[test]
fn the_command_has_the_wrappers_streams_and_nothing_of_its_own_signals() {
    let scene = Scene::new();
    let done = scene
        .lock(&TTL, "cat; echo oops >&2")
        .input("in")
        .run()
        .expect(0);
    assert_eq!((done.text(), done.error.as_str()), ("in", "oops\n"));
    // What a Rust program ignores and blocks is not handed down.
    let script = "grep -E 'SigBlk|SigIgn' /proc/self/status";
    let inside = scene.lock(&TTL, script).run().expect(0);
    let outside = Call::of("sh").args(&["-c", script]).run().expect(0);
    assert_eq!(inside.text(), outside.text());
}

#[test]
fn part11_min_hold_keeps_the_lock_after_a_short_command() {
    let scene = Scene::new();
    let hold = ["--ttl", "30s", "--min-hold", "1500ms"];
    scene.lock(&hold, "exit 3").run().expect(3);
    let left: u64 = scene
        .server
        .raw()
        .command(&["PTTL", "lock:r"])
        .text()
        .parse()
        .unwrap();
    assert!((1..=1500).contains(&left), "{left}");
    scene.lock(&TTL, "touch ran").run().expect(75);
    scene
        .lock(&["--ttl", "30s", "--wait", "30s"], "touch ran")
        .run()
        .expect(0);
    // A command that took longer holds no longer.
    let hold = ["--ttl", "30s", "--min-hold", "10ms"];
    scene.lock(&hold, "sleep 0.05").run().expect(0);
    assert_eq!(scene.token(), "");
}

#[test]
fn l12_keep_alive_outlives_many_leases() {
    let scene = Scene::new();
    let options = ["--ttl", "1s", "--keep-alive"];
    let holder = scene
        .lock(&options, "echo $XIHAN_LOCK_TOKEN > token; sleep 3")
        .start();
    scene.until_written("token", "\n");
    std::thread::sleep(Duration::from_millis(2000));
    assert_eq!(scene.token(), scene.read("token").trim());
    holder.wait().expect(0);
    assert_eq!(scene.token(), "");
}
