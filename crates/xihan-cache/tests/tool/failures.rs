//! Stores that are away, slow, full of other things, or that do not want us.

use std::time::{Duration, Instant};

use redis_support::Server;

use crate::support::{Call, Scene};

pub(crate) const EVERY: [&[&str]; 8] = [
    &["get", "k"],
    &["set", "k", "v"],
    &["add", "k", "v"],
    &["remove", "k"],
    &["ttl", "k"],
    &["keys", ""],
    &["ping"],
    &["lock", "r", "--ttl", "5s", "--", "touch", "ran"],
];

#[test]
fn s3_a_store_that_is_away_is_status_69_for_every_command() {
    let mut scene = Scene::new();
    scene.server.kill();
    for arguments in EVERY {
        let done = scene.call(arguments).run().expect(69);
        assert!(done.error.contains("CACHING_UNAVAILABLE_001"), "{done:?}");
        assert!(done.output.is_empty(), "{done:?}");
        let done = scene
            .call(&[&["--json"], arguments].concat())
            .run()
            .expect(69);
        assert_eq!(done.json_error()["code"], "CACHING_UNAVAILABLE_001");
    }
    assert!(!scene.path("ran").exists());
}

#[test]
fn s3_a_store_that_does_not_answer_is_status_69_within_the_timeout() {
    let scene = Scene::new();
    scene.server.pause();
    let begun = Instant::now();
    let done = scene.call(&["ping", "--timeout", "300ms"]).run().expect(69);
    assert!(begun.elapsed() < Duration::from_secs(10), "{done:?}");
    scene.server.resume();
}

#[test]
fn a_refused_login_is_status_69_and_says_so() {
    let server = Server::with(&[("requirepass", "right")]);
    let url = format!("redis://:hush@127.0.0.1:{}", server.port());
    for arguments in EVERY {
        let done = Call::new(arguments)
            .env("XIHAN_CACHE_STORE", &url)
            .run()
            .expect(69);
        assert!(
            done.error.contains("CACHING_UNAUTHENTICATED_001"),
            "{done:?}"
        );
        assert!(!done.error.contains("hush"), "{done:?}");
    }
}

#[test]
fn s7_a_value_of_another_kind_is_status_65() {
    let scene = Scene::new();
    for key in ["k", "lock:r"] {
        scene.server.raw().command(&["RPUSH", key, "x"]);
    }
    for arguments in [EVERY[0], EVERY[7]] {
        let done = scene.call(&[arguments].concat()).run().expect(65);
        assert!(done.error.contains("CACHING_CONFLICT_004"), "{done:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_complain() {
    let scene = Scene::new();
    let value = "x".repeat(1_000_000);
    scene.call(&["set", "k", "-"]).input(value).run().expect(0);
    let tool = env!("CARGO_BIN_EXE_xihan-cache");
    let script = format!("{{ {tool} get k; echo $? >&2; }} | head -c 1 > first");
    let url = scene.server.url();
    let done = Call::of("sh")
        .args(&["-c", &script])
        .env("XIHAN_CACHE_STORE", &url)
        .in_directory(scene.directory.path())
        .run()
        .expect(0);
    assert_eq!(
        (scene.read("first").as_str(), done.error.as_str()),
        ("x", "74\n")
    );
}
