//! What a user gets wrong.

use crate::support::{Call, Scene};

/// Nothing is asked of a store whose command line is wrong; this one would never answer.
const NOWHERE: &str = "redis://127.0.0.1:1";

fn call(arguments: &[&str]) -> Call {
    Call::new(arguments).env("XIHAN_CACHE_STORE", NOWHERE)
}

#[test]
fn part11_wrong_usage_is_status_64() {
    for (arguments, says) in [
        (&[][..], "requires a subcommand"),
        (&["frobnicate"], "unrecognized subcommand"),
        (&["get"], "required arguments were not provided"),
        (&["get", "k", "--ttl", "1s"], "unexpected argument"),
        (&["get", "two words"], "white space"),
        (&["get", ""], "it is empty"),
        (&["set", "k", "v", "--ttl", "0s"], "it is zero"),
        (&["set", "k", "v", "--ttl", "10"], "with their units"),
        (&["set", "k", "v", "--sliding", "101y"], "100 years"),
        (
            &["set", "k", "v", "--ttl", "1s", "--sliding", "1s"],
            "cannot be used with",
        ),
        (&["add", "k", "v", "--sliding", "1s"], "unexpected argument"),
        (&["ping", "--timeout", "0s"], "it is zero"),
        (&["ping", "--key-prefix", "a:b"], "--key-prefix: "),
        (&["ping", "--ca-file", "/nowhere.pem"], "--ca-file: "),
        (&["ping", "--client-cert", "/nowhere.pem"], "--client-key"),
        (&["ping", "--token-file", "/nowhere"], "grpc(s)://"),
        (
            &["ping", "--store-file", "/nowhere"],
            "--store-file: `/nowhere`",
        ),
        (&["ping", "--store", "ftp://host"], "none of memory"),
        (
            &["ping", "--store", "redis+tls://host"],
            "no scheme of Redis",
        ),
        (&["man", "frobnicate"], "no command"),
        (&["completions", "cmd"], "invalid value"),
    ] {
        call(arguments).run().refused(says);
    }
}

#[test]
fn part11_wrong_usage_of_lock_is_status_64_and_runs_nothing() {
    let scene = Scene::new();
    for (arguments, says) in [
        (
            &["lock", "r", "--ttl", "1s"][..],
            "required arguments were not provided",
        ),
        (&["lock", "r", "--ttl", "1s", "--"], "<COMMAND>..."),
        (
            &["lock", "r", "--ttl", "1s", "touch", "ran"],
            "unexpected argument",
        ),
        (&["lock", "r", "--", "touch", "ran"], "--ttl"),
        (
            &["lock", "r", "--ttl", "0s", "--", "touch", "ran"],
            "it is zero",
        ),
        (
            &[
                "lock", "r", "--ttl", "1s", "--wait", "x", "--", "touch", "ran",
            ],
            "their units",
        ),
        (
            &["lock", "r r", "--ttl", "1s", "--", "touch", "ran"],
            "white space",
        ),
        (
            &[
                "lock", "r", "--ttl", "4s", "--grace", "3s", "--", "touch", "ran",
            ],
            "half of --ttl",
        ),
        (
            &[
                "lock",
                "r",
                "--ttl",
                "1s",
                "--max-hold",
                "1h",
                "--",
                "touch",
                "ran",
            ],
            "--keep-alive",
        ),
        (
            &[
                "lock",
                "r",
                "--ttl",
                "1s",
                "--on-lost",
                "go",
                "--",
                "touch",
                "ran",
            ],
            "stop, warn",
        ),
        (
            &[
                "--store", "memory", "lock", "r", "--ttl", "1s", "--", "touch", "ran",
            ],
            "would exclude nobody",
        ),
    ] {
        scene.call(arguments).run().refused(says);
    }
    let longest = "r".repeat(507);
    let lock = |resource: &str| {
        scene
            .call(&["lock", resource, "--ttl", "1s", "--", "true"])
            .run()
    };
    lock(&longest).expect(0);
    lock(&format!("{longest}r")).refused("512");
    assert!(!scene.path("ran").exists());
}

#[test]
fn part11_no_store_is_a_usage_error_that_says_how_to_name_one() {
    for call in [
        Call::new(&["ping"]),
        Call::new(&["ping"]).env("XIHAN_CACHE_STORE", ""),
    ] {
        let done = call.run().refused("--store");
        assert!(done.error.contains("XIHAN_CACHE_STORE"), "{done:?}");
    }
}

#[test]
fn x3_a_password_in_a_url_is_never_printed() {
    for url in [
        "redis://:hush@host:port",
        "redis://:hu@sh@host",
        "redis://user:hush@127.0.0.1:1",
        "hush://127.0.0.1:1",
        "memory:hush",
    ] {
        let by_variable = Call::new(&["ping", "-vv"])
            .env("XIHAN_CACHE_STORE", url)
            .run();
        let by_option = Call::new(&["ping", "--json", "--store", url]).run();
        for done in [by_variable, by_option] {
            assert!(matches!(done.code, Some(64 | 69)), "{done:?}");
            assert!(!done.error.contains("hush"), "{done:?}");
            assert!(!done.error.contains("sh@"), "{done:?}");
        }
    }
    for arguments in [&["--help"][..], &["lock", "--help"], &["get"]] {
        let done = Call::new(arguments)
            .env("XIHAN_CACHE_STORE", "redis://:hush@host")
            .run();
        assert!(!done.error.contains("hush") && !done.text().contains("hush"));
    }
}
