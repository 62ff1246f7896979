//! Every command on a server of this tool: plain, over TLS, with tokens.

use redis_support::{Certificates, free_port, wait_until};
use serde_json::json;

use crate::failures::EVERY;
use crate::support::{Call, Served};

/// Runs every command once, with `set_up` done to each call.
fn every_command(set_up: impl Fn(&[&str]) -> Call) {
    let output = |arguments: &[&str]| {
        let done = set_up(arguments).run().expect(0);
        assert_eq!(done.error, "", "{arguments:?}");
        done.output
    };
    set_up(&["get", "k"]).run().expect(1);
    for value in [&b""[..], b"text", b"\x00\xff\r\n\x80"] {
        let set = ["set", "k", "-", "--ttl", "1m"];
        set_up(&set).input(value).run().expect(0);
        assert_eq!(output(&["get", "k"]), value);
    }
    let left = set_up(&["ttl", "k", "--json"]).run().expect(0).json();
    let left = left["timeToLiveMilliseconds"].as_u64().unwrap();
    assert!((1..=60_000).contains(&left), "{left}");
    output(&["set", "s", "v", "--sliding", "1m"]);
    set_up(&["add", "k", "w"]).run().expect(1);
    output(&["add", "a", "w"]);
    let keys = set_up(&["keys", "", "--json"]).run().expect(0).json();
    let mut keys: Vec<_> = keys["keys"].as_array().unwrap().clone();
    keys.sort_by_key(ToString::to_string);
    assert_eq!(keys, [json!("a"), json!("k"), json!("s")]);
    output(&["remove", "k"]);
    set_up(&["remove", "k"]).run().expect(1);
    output(&["ping"]);
    let lock = ["lock", "r", "--ttl", "30s", "--", "echo", "ran"];
    assert_eq!(output(&lock), b"ran\n");
}

#[test]
fn part11_every_command_works_on_a_server_over_plain_text() {
    let served = Served::start(&[]);
    assert!(served.store.starts_with("grpc://127.0.0.1:"));
    every_command(|arguments| served.call(arguments));
    let http = served.store.replace("grpc://", "http://");
    let done = Call::new(&["get", "a", "--store", &http]).run();
    assert_eq!(done.expect(0).text(), "w");
}

#[test]
fn part11_every_command_works_over_tls_with_token_and_client_certificate() {
    let (made, foreign) = (Certificates::make(), Certificates::make());
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    let (authority, certificate, key) = (
        text(made.authority()),
        text(made.certificate()),
        text(made.key()),
    );
    let serve = Call::new(&["serve"])
        .args(&["--tls-cert", &certificate, "--tls-key", &key])
        .args(&["--client-ca", &authority])
        .env("XIHAN_CACHE_TOKEN", "hush-token");
    let served = Served::of(serve, 0);
    assert!(served.store.starts_with("grpcs://127.0.0.1:"));
    let call = |arguments: &[&str]| {
        served
            .call(arguments)
            .env("XIHAN_CACHE_TOKEN", "hush-token")
    };
    let trust = ["--ca-file", &authority];
    let shown = ["--client-cert", &certificate, "--client-key", &key];
    every_command(|arguments| {
        let options = [&trust[..], &shown].concat();
        call(&[&options[..], arguments].concat())
    });

    // Without the authority, without a certificate, with one of somebody else.
    let (other, others_key) = (text(foreign.certificate()), text(foreign.key()));
    let others = ["--client-cert", &other, "--client-key", &others_key];
    for options in [&shown[..], &trust, &[&trust[..], &others].concat()] {
        let done = call(&["ping"]).args(options).run().expect(69);
        assert!(done.error.contains("CACHING_UNAVAILABLE_001"), "{done:?}");
    }
    let plain = served.store.replace("grpcs://", "grpc://");
    call(&["ping", "--store", &plain]).run().expect(69);
}

/// A server with a token for everything and one for `shop`.
fn with_tokens() -> Served {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, "# ours\nhush-whole\nhush-shop shop\n").unwrap();
    Served::start(&["--token-file", file.to_str().unwrap()])
}

#[test]
fn k4_a_token_opens_its_prefix_and_nothing_else() {
    let served = with_tokens();
    let whole = |arguments: &[&str]| {
        served
            .call(arguments)
            .env("XIHAN_CACHE_TOKEN", "hush-whole")
    };
    let shop = |arguments: &[&str]| served.call(arguments).env("XIHAN_CACHE_TOKEN", "hush-shop");
    whole(&["set", "a", "outside"]).run().expect(0);
    whole(&["set", "a", "inside", "--key-prefix", "shop"])
        .run()
        .expect(0);
    let inside = [&["get", "a"][..], &["get", "a", "--key-prefix", "shop"]];
    for arguments in inside {
        assert_eq!(shop(arguments).run().expect(0).text(), "inside");
    }
    shop(&["get", "shop:a"]).run().expect(1);
    assert_eq!(whole(&["get", "shop:a"]).run().expect(0).text(), "inside");
    assert_eq!(shop(&["keys", ""]).run().expect(0).text(), "a\n");

    // Locks are apart as well: who holds one inside does not keep anybody out outside.
    let inner = ["lock", "r", "--ttl", "30s", "--", "touch", "inner"];
    let outer = [
        &[
            "lock",
            "r",
            "--ttl",
            "30s",
            "--",
            env!("CARGO_BIN_EXE_xihan-cache"),
        ][..],
        &["--key-prefix", "shop"],
        &inner,
    ]
    .concat();
    whole(&outer).run().expect(0);
    assert!(served.path("inner").exists());

    for arguments in EVERY {
        let refused = shop(arguments).args::<&str>(&[]);
        let refused = refused
            .env("XIHAN_CACHE_KEY_PREFIX", "blog")
            .run()
            .expect(69);
        for says in ["CACHING_FORBIDDEN_001", "--key-prefix"] {
            assert!(refused.error.contains(says), "{refused:?}");
        }
        assert!(!refused.error.contains("hush"), "{refused:?}");
    }
    assert!(!served.path("ran").exists());
}

#[test]
fn x3_a_wrong_token_or_none_is_status_69_with_the_remedy_and_without_the_token() {
    let served = with_tokens();
    for arguments in EVERY {
        for token in ["", "hush-wrong"] {
            let call = served.call(arguments).env("XIHAN_CACHE_TOKEN", token);
            let done = call.run().expect(69);
            for says in ["CACHING_UNAUTHENTICATED_001", "--token-file"] {
                assert!(done.error.contains(says), "{done:?}");
            }
            assert!(!done.error.contains("hush"), "{done:?}");
        }
    }
    assert!(!served.path("ran").exists());
    let file = served.path("mine");
    std::fs::write(&file, "hush-whole\n").unwrap();
    let by_file = ["ping", "--token-file", file.to_str().unwrap()];
    served.call(&by_file).run().expect(0);
}

#[test]
fn s3_a_server_that_is_away_is_status_69_for_every_command() {
    let store = format!("grpc://127.0.0.1:{}", free_port());
    let folder = tempfile::tempdir().unwrap();
    for arguments in EVERY {
        let call = Call::new(arguments).env("XIHAN_CACHE_STORE", &store);
        let done = call.in_directory(folder.path()).run().expect(69);
        assert!(done.error.contains("CACHING_UNAVAILABLE_001"), "{done:?}");
        assert!(done.output.is_empty(), "{done:?}");
    }
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn part11_a_server_that_stands_still_is_status_69_within_the_timeout() {
    let served = Served::start(&[]);
    served.signal("STOP");
    let begun = std::time::Instant::now();
    let done = served
        .call(&["ping", "--timeout", "300ms"])
        .run()
        .expect(69);
    assert!(begun.elapsed().as_secs() < 10, "{done:?}");
    served.signal("CONT");
    served.answers();
}

#[test]
fn e4_a_value_of_a_server_expires() {
    let served = Served::start(&["--default-ttl", "1m"]);
    served.call(&["set", "k", "v"]).run().expect(0);
    let left = served.call(&["ttl", "k", "--json"]).run().expect(0).json();
    let left = left["timeToLiveMilliseconds"].as_u64().unwrap();
    assert!((1..=60_000).contains(&left), "{left}");
    served
        .call(&["set", "k", "v", "--ttl", "50ms"])
        .run()
        .expect(0);
    wait_until("the end of the value", || {
        served.call(&["get", "k"]).run().code == Some(1)
    });
}
