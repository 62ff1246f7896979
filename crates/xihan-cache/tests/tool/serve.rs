//! `serve`: where it listens, what it refuses, what it says about itself.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use caching_remote::RemoteStore;
use redis_support::{Certificates, wait_until};
use xihan_caching::{CacheEntryOptions, CacheKey, CacheStore, CachingSettings, ErrorCode};

use crate::support::{Call, Scene, Served, http};

const MIB: usize = 1024 * 1024;

#[test]
fn part11_wrong_usage_of_serve_is_status_64() {
    let made = Certificates::make();
    let (certificate, key) = (made.certificate(), made.key());
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    for (options, says) in [
        (&["--listen", "50051"][..], "HOST:PORT"),
        (&["--listen", "host:port"], "HOST:PORT"),
        (&["--metrics-listen", "9464"], "HOST:PORT"),
        (&["--token", "hush"], "unexpected argument"),
        (&["--token-file", "/nowhere"], "`/nowhere`"),
        (&["--tls-cert", certificate], "--tls-key"),
        (&["--tls-key", key], "--tls-cert"),
        (&["--client-ca", certificate], "--tls-cert"),
        (
            &["--tls-cert", "/nowhere.pem", "--tls-key", key],
            "`/nowhere.pem`",
        ),
        (
            &["--tls-cert", key, "--tls-key", certificate],
            "no certificate",
        ),
        (&["--max-connections", "0"], "zero"),
        (&["--max-message-bytes", "many"], "invalid"),
        (&["--max-capacity-bytes", "0"], "zero"),
        (&["--store", "grpc://127.0.0.1:1"], "a server already"),
        (
            &[
                "--store",
                "redis://127.0.0.1:1",
                "--max-protected-bytes",
                "1",
            ],
            "`maxmemory`",
        ),
        (&["--store", "redis://127.0.0.1:x"], "--store: "),
    ] {
        let listen = ["--listen", "127.0.0.1:0"];
        let listen = &listen[..if options[0] == "--listen" { 0 } else { 2 }];
        let done = Call::new(&["serve"]).args(listen).args(options).run();
        let done = done.refused(says);
        assert!(done.output.is_empty(), "{done:?}");
    }
    let done = Call::new(&["serve", "--listen", "127.0.0.1:0"])
        .env("XIHAN_CACHE_TOKEN", "hush hush")
        .run()
        .refused("XIHAN_CACHE_TOKEN");
    assert!(!done.error.contains("hush"), "{done:?}");
}

#[test]
fn part11_an_address_that_others_reach_needs_token_and_tls_or_to_be_insecure() {
    let made = Certificates::make();
    let (certificate, key) = (made.certificate(), made.key());
    let tls = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key"];
    let tls = [&tls[..], &[key.to_str().unwrap()]].concat();
    let open = ["serve", "--listen", "0.0.0.0:0"];
    for (call, missing) in [
        (Call::new(&open), "no token and no TLS"),
        (Call::new(&open).env("XIHAN_CACHE_TOKEN", "hush"), "no TLS"),
        (Call::new(&open).args(&tls), "no token"),
    ] {
        let done = call.run().refused(missing);
        for says in ["--insecure", "--token-file", "--tls-cert"] {
            assert!(done.error.contains(says), "{done:?}");
        }
    }
    for call in [
        Call::new(&open).args(&["--insecure"]),
        Call::new(&open).args(&tls).env("XIHAN_CACHE_TOKEN", "hush"),
    ] {
        let mut running = call.start();
        wait_until("a server", || running.output().contains("://0.0.0.0:"));
        running.signal("TERM");
        running.wait().expect(0);
    }
}

#[test]
fn part11_an_address_in_use_is_status_70_and_says_so() {
    let served = Served::start(&["--metrics-listen", "127.0.0.1:0"]);
    let (store, metrics) = (format!("127.0.0.1:{}", served.port()), served.metrics());
    for (options, option) in [
        (
            ["--listen", &store, "--metrics-listen", "127.0.0.1:0"],
            "with --listen",
        ),
        (
            ["--listen", "127.0.0.1:0", "--metrics-listen", &metrics],
            "with --metrics-listen",
        ),
    ] {
        let done = Call::new(&["serve"]).args(&options).run().expect(70);
        for says in ["in use", option] {
            assert!(done.error.contains(says), "{done:?}");
        }
        assert!(done.output.is_empty(), "{done:?}");
    }
    served.answers();
}

#[test]
fn part11_where_it_listens_is_an_object_for_programs() {
    let mut running = Call::new(&["serve", "--json", "--listen", "[::1]:0"])
        .args(&["--metrics-listen", "127.0.0.1:0"])
        .start();
    wait_until("a server", || running.output().ends_with('\n'));
    running.signal("INT");
    let said = running.wait().expect(0).json();
    let store = said["listening"].as_str().unwrap();
    assert!(store.starts_with("grpc://[::1]:"), "{said}");
    let metrics = said["metrics"].as_str().unwrap();
    assert!(metrics.starts_with("http://127.0.0.1:") && metrics.ends_with("/metrics"));
}

#[test]
fn part10_metrics_count_operations_and_hold_no_key_token_or_value() {
    let serve = Call::new(&["serve", "--metrics-listen", "127.0.0.1:0"]);
    let served = Served::of(serve.env("XIHAN_CACHE_TOKEN", "hush-token"), 0);
    let call = |arguments: &[&str]| {
        served
            .call(arguments)
            .env("XIHAN_CACHE_TOKEN", "hush-token")
    };
    call(&["set", "hush-key", "hush-value"]).run().expect(0);
    call(&["get", "hush-none"]).run().expect(1);
    let lock = ["lock", "hush-lock", "--ttl", "30s", "--"];
    let command = ["sh", "-c", "printf %s $XIHAN_LOCK_TOKEN"];
    let token = call(&[&lock[..], &command].concat()).run().expect(0);
    served.call(&["get", "hush-key"]).run().expect(69);

    let (status, metrics) = http(&served.metrics(), "GET", "/metrics");
    assert_eq!(status, 200);
    for says in [
        r#"xihan_caching_store_operations_total{provider="inmemory",operation="set",outcome="ok"} 1"#,
        r#"operation="get",outcome="miss"} 1"#,
        r#"operation="try_lease",outcome="ok"} 1"#,
        "xihan_caching_store_operation_seconds_bucket",
        "xihan_caching_server_connections",
        r#"xihan_caching_server_refusals_total{reason="unauthenticated"}"#,
    ] {
        assert!(metrics.contains(says), "{says}\n{metrics}");
    }
    for hidden in ["hush", token.text()] {
        assert!(!metrics.contains(hidden), "{hidden}\n{metrics}");
    }
}

#[test]
fn part11_health_is_served_beside_the_metrics_and_nothing_else_is() {
    let served = Served::start(&["--metrics-listen", "127.0.0.1:0"]);
    let address = served.metrics();
    for (method, path, status) in [
        ("GET", "/healthz", 200),
        ("HEAD", "/healthz", 200),
        ("GET", "/readyz", 200),
        ("GET", "/", 404),
        ("POST", "/metrics", 405),
    ] {
        assert_eq!(http(&address, method, path).0, status, "{method} {path}");
    }
}

#[test]
fn s3_a_store_that_is_away_at_the_start_is_waited_for() {
    let mut scene = Scene::new();
    scene.server.kill();
    let serve = scene.call(&["serve", "--metrics-listen", "127.0.0.1:0"]);
    let served = Served::of(serve, 0);
    let done = served.call(&["get", "k"]).run().expect(69);
    assert!(done.error.contains("CACHING_UNAVAILABLE_001"), "{done:?}");
    let status = |path: &str| http(&served.metrics(), "GET", path).0;
    assert_eq!((status("/healthz"), status("/readyz")), (200, 503));
    scene.server.restart();
    wait_until("the store", || status("/readyz") == 200);
    served.call(&["set", "k", "v"]).run().expect(0);
    assert_eq!(scene.call(&["get", "k"]).run().expect(0).text(), "v");
    let (_, metrics) = http(&served.metrics(), "GET", "/metrics");
    assert!(metrics.contains(r#"provider="redis""#), "{metrics}");
}

#[test]
fn part11_a_store_that_refuses_the_server_is_status_69() {
    let server = redis_support::Server::with(&[("requirepass", "right")]);
    let url = format!("redis://:hush@127.0.0.1:{}", server.port());
    let done = Call::new(&["serve", "--listen", "127.0.0.1:0"])
        .env("XIHAN_CACHE_STORE", &url)
        .run()
        .expect(69);
    assert!(
        done.error.contains("CACHING_UNAUTHENTICATED_001"),
        "{done:?}"
    );
    assert!(!done.error.contains("hush"), "{done:?}");
}

#[test]
fn part11_bytes_that_are_no_call_end_their_connection_and_nothing_else() {
    let served = Served::start(&[]);
    let address = ("127.0.0.1", served.port());
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        vec![0xff; MIB],
        [&preface[..], &[0xa5; 100_000]].concat(),
        [&preface[..], &[0, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat(),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        // The server may have hung up before all was written.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        if let Err(error) = stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        }
        served.answers();
    }
}

#[tokio::test]
async fn part11_a_message_of_100_mib_is_refused_and_the_server_goes_on() {
    let served = Served::start(&[]);
    let mut settings = CachingSettings::default();
    settings.remote.endpoint = Some(served.store.clone());
    settings.remote.max_message_bytes = 1 << 30;
    settings.remote.operation_timeout = Duration::from_secs(30);
    let store = RemoteStore::connect(&settings).await.unwrap();
    let key = CacheKey::new("k").unwrap();
    let set = |bytes: usize| store.set(&key, vec![7; bytes].into(), CacheEntryOptions::default());
    let error = set(100 * MIB).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreFull, "{error}");
    assert!(store.get(&key).await.unwrap().is_none());
    set(15 * MIB).await.unwrap();
    served.answers();
}

#[test]
fn part11_limits_are_those_of_the_command_line() {
    let served = Served::start(&[
        "--max-message-bytes",
        "100000",
        "--max-connections",
        "1",
        "--max-protected-bytes",
        "50000",
    ]);
    let set = |bytes: usize| served.call(&["set", "k", "-"]).input(vec![b'x'; bytes]);
    set(90_000).run().expect(0);
    let done = set(200_000).run().expect(69);
    assert!(done.error.contains("CACHING_UNAVAILABLE_002"), "{done:?}");
    let add = served.call(&["add", "a", "-"]).input(vec![b'x'; 90_000]);
    let done = add.run().expect(69);
    assert!(done.error.contains("CACHING_UNAVAILABLE_002"), "{done:?}");

    let holder = served.lock(
        &["--ttl", "30s"],
        "touch run; until [ -e stop ]; do sleep 0.01; done",
    );
    let holder = holder.start();
    wait_until("the holder", || served.path("run").exists());
    served.call(&["ping"]).run().expect(69);
    std::fs::write(served.path("stop"), "").unwrap();
    holder.wait().expect(0);
}

#[test]
fn part11_a_low_limit_of_open_files_is_raised_for_the_connections() {
    let tool = env!("CARGO_BIN_EXE_xihan-cache");
    let start = |limits: &str| {
        let script = format!("{limits}; exec {tool} serve --max-connections 300 \"$@\"");
        Served::of(Call::of("sh").args(&["-c", &script, "sh"]), 0)
    };
    let served = start("ulimit -Sn 64");
    let connect = |_| TcpStream::connect(("127.0.0.1", served.port())).unwrap();
    let open: Vec<TcpStream> = (0..150).map(connect).collect();
    served.answers();
    drop(open);
    let served = start("ulimit -n 200");
    served.answers();
    served.signal("TERM");
    let done = served.wait().expect(0);
    assert!(done.error.contains("lower --max-connections"), "{done:?}");
}
