//! `get`, `set`, `add`, `remove`, `ttl`, `keys`, `ping`.

use std::time::Duration;

use redis_support::wait_until;
use serde_json::json;

use crate::support::{Call, Scene};

#[test]
fn part11_a_value_goes_in_and_comes_out_byte_for_byte() {
    let scene = Scene::new();
    for value in [&b""[..], b"text", b"no end\nof line", b"\x00\xff\r\n\x80"] {
        let set = ["set", "k", "-", "--ttl", "1m"];
        let done = scene.call(&set).input(value).run().expect(0);
        assert!(done.output.is_empty() && done.error.is_empty(), "{done:?}");
        assert_eq!(scene.call(&["get", "k"]).run().expect(0).output, value);
    }
    scene.call(&["set", "k", "-5"]).run().expect(0);
    assert_eq!(scene.call(&["get", "k"]).run().expect(0).text(), "-5");
    scene.call(&["set", "k", "--", "--ttl"]).run().expect(0);
    assert_eq!(scene.call(&["get", "k"]).run().expect(0).text(), "--ttl");
}

#[test]
fn part11_what_is_not_there_is_status_1() {
    let scene = Scene::new();
    for arguments in [["get", "k"], ["ttl", "k"], ["remove", "k"]] {
        let done = scene.call(&arguments).run().expect(1);
        assert!(done.output.is_empty() && done.error.is_empty(), "{done:?}");
    }
    scene.call(&["add", "k", "first"]).run().expect(0);
    scene.call(&["add", "k", "second"]).run().expect(1);
    assert_eq!(scene.call(&["get", "k"]).run().text(), "first");
    scene.call(&["remove", "k"]).run().expect(0);
    scene.call(&["remove", "k"]).run().expect(1);
}

#[test]
fn e1_every_entry_expires_as_it_was_told_to_or_by_the_stores_default() {
    let scene = Scene::new();
    let left = |key: &str| scene.server.raw().command(&["PTTL", key]).text();
    let left = |key: &str| left(key).parse::<u64>().unwrap();
    scene.call(&["set", "k", "v"]).run().expect(0);
    assert!((290_000..=300_000).contains(&left("k")));
    scene
        .call(&["set", "k", "v", "--ttl", "1h30m"])
        .run()
        .expect(0);
    assert!((5_390_000..=5_400_000).contains(&left("k")));
    scene
        .call(&["add", "a", "v", "--ttl", "10s"])
        .run()
        .expect(0);
    assert!((1..=10_000).contains(&left("a")));

    let printed = scene.call(&["ttl", "k"]).run().expect(0);
    assert!(printed.text().starts_with("1h29m5"), "{printed:?}");
    let value = scene.call(&["--json", "ttl", "k"]).run().expect(0).json();
    let milliseconds = value["timeToLiveMilliseconds"].as_u64().unwrap();
    assert!((5_390_000..=5_400_000).contains(&milliseconds), "{value}");
}

#[test]
fn e2_a_read_restarts_a_sliding_entry_and_ttl_does_not() {
    let scene = Scene::new();
    let sliding = ["set", "k", "v", "--sliding", "1m"];
    scene.call(&sliding).run().expect(0);
    let left = || {
        let text = scene.server.raw().command(&["PTTL", "k"]).text();
        Duration::from_millis(text.parse().unwrap())
    };
    scene.server.raw().command(&["PEXPIRE", "k", "30000"]);
    scene.call(&["ttl", "k"]).run().expect(0);
    assert!(left() <= Duration::from_secs(30));
    scene.call(&["get", "k"]).run().expect(0);
    // The restart may follow the answer.
    wait_until("a restarted clock", || left() > Duration::from_secs(30));
}

#[test]
fn part11_json_comes_before_or_after_the_command() {
    let scene = Scene::new();
    let both = |arguments: &[&str], code: i32, value: serde_json::Value| {
        let before = [&["--json"], arguments].concat();
        let after = [arguments, &["--json"]].concat();
        for arguments in [before, after] {
            let done = scene.call(&arguments).run().expect(code);
            assert_eq!(done.json(), value, "{arguments:?}");
            assert_eq!(done.error, "");
        }
    };
    both(&["get", "k"], 1, json!({ "key": "k", "found": false }));
    both(&["ttl", "k"], 1, json!({ "key": "k", "found": false }));
    both(&["remove", "k"], 1, json!({ "key": "k", "removed": false }));
    both(
        &["set", "k", "v"],
        0,
        json!({ "key": "k", "written": true }),
    );
    both(&["add", "k", "v"], 1, json!({ "key": "k", "added": false }));
    let text = json!({ "key": "k", "found": true, "value": "v", "encoding": "utf-8" });
    both(&["get", "k"], 0, text);
    both(&["keys", ""], 0, json!({ "keys": ["k"] }));
    both(&["keys", "other"], 0, json!({ "keys": [] }));

    let set = ["set", "k", "-"];
    scene.call(&set).input(b"\xff\x00".to_vec()).run().expect(0);
    let bytes = json!({ "key": "k", "found": true, "value": "/wA=", "encoding": "base64" });
    both(&["get", "k"], 0, bytes);

    let ping = scene.call(&["ping", "--json"]).run().expect(0).json();
    assert_eq!(ping["answered"], true);
    assert!(ping["milliseconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn k4_a_key_prefix_keeps_two_users_of_a_store_apart() {
    let scene = Scene::new();
    scene
        .call(&["--key-prefix", "app", "set", "k", "v"])
        .run()
        .expect(0);
    assert_eq!(scene.server.raw().command(&["GET", "app:k"]).text(), "v");
    scene
        .call(&["get", "k", "--key-prefix", "other"])
        .run()
        .expect(1);
    let with_variable = |arguments| scene.call(arguments).env("XIHAN_CACHE_KEY_PREFIX", "app");
    assert_eq!(with_variable(&["get", "k"]).run().expect(0).text(), "v");
    assert_eq!(with_variable(&["keys", ""]).run().expect(0).text(), "k\n");
}

#[test]
fn keys_match_a_literal_prefix() {
    let scene = Scene::new();
    for key in ["a*b", "a1b", "b"] {
        scene.call(&["set", key, ""]).run().expect(0);
    }
    assert_eq!(scene.call(&["keys", "a*"]).run().expect(0).text(), "a*b\n");
    let all = scene.call(&["keys", ""]).run().expect(0);
    assert_eq!(all.text().lines().count(), 3, "{all:?}");
}

#[test]
fn the_store_in_memory_lives_as_long_as_the_call() {
    let memory = |arguments: &[&str]| Call::new(&[&["--store", "memory"], arguments].concat());
    memory(&["set", "k", "v"]).run().expect(0);
    memory(&["get", "k"]).run().expect(1);
    memory(&["ping"]).run().expect(0);
}

#[test]
fn the_store_comes_from_the_option_the_file_or_the_environment() {
    let scene = Scene::new();
    let url = scene.server.url();
    let file = scene.path("url");
    std::fs::write(&file, format!("{url}\n")).unwrap();
    let file = file.to_str().unwrap();
    let away = "redis://127.0.0.1:1";
    Call::new(&["ping", "--store", &url])
        .env("XIHAN_CACHE_STORE", away)
        .run()
        .expect(0);
    Call::new(&["--store-file", file, "ping"])
        .env("XIHAN_CACHE_STORE", away)
        .run()
        .expect(0);
    Call::new(&["ping"])
        .env("XIHAN_CACHE_STORE", &url)
        .run()
        .expect(0);
}
