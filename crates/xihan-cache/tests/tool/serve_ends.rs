//! How `serve` shuts down.

use std::time::{Duration, Instant};

use caching_remote::RemoteStore;
use redis_support::wait_until;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use xihan_caching::{CacheEntryOptions, CacheKey, CacheStore, CachingError, CachingSettings};

use crate::support::{Scene, Served, http};

/// A server before a Redis that stands still, with an operation under way.
struct Busy {
    served: Served,
    runtime: Runtime,
    operation: JoinHandle<Result<(), CachingError>>,
}

impl Busy {
    fn start(scene: &Scene, options: &[&str]) -> Self {
        let serve = ["serve", "--metrics-listen", "127.0.0.1:0"];
        let serve = scene.call(&serve).args(&["--timeout", "40s"]);
        let served = Served::of(serve.args(options), 0);
        let runtime = Runtime::new().unwrap();
        let mut settings = CachingSettings::default();
        settings.remote.endpoint = Some(served.store.clone());
        settings.remote.operation_timeout = Duration::from_secs(50);
        let store = runtime.block_on(RemoteStore::connect(&settings)).unwrap();
        let set = |store: RemoteStore, value: &'static str| async move {
            let (key, options) = (CacheKey::new("k").unwrap(), CacheEntryOptions::default());
            store.set(&key, value.into(), options).await
        };
        runtime.block_on(set(store.clone(), "before")).unwrap();
        let begun = || operations(&served);
        let before = begun();
        scene.server.pause();
        let operation = runtime.spawn(set(store, "after"));
        wait_until("the operation", || begun() > before);
        Self {
            served,
            runtime,
            operation,
        }
    }
}

/// How many operations have come to the server.
fn operations(served: &Served) -> u64 {
    let (_, metrics) = http(&served.metrics(), "GET", "/metrics");
    let line = |line: &str| {
        line.strip_prefix("xihan_caching_server_session_operations_total ")
            .and_then(|number| number.parse().ok())
    };
    metrics.lines().find_map(line).unwrap_or_default()
}

fn is_stopping(served: &Served) -> bool {
    http(&served.metrics(), "GET", "/readyz") == (503, "shutting down\n".to_owned())
}

#[test]
fn part11_term_and_int_shut_down_with_status_0() {
    for name in ["TERM", "INT"] {
        let served = Served::start(&[]);
        served.answers();
        served.signal(name);
        let done = served.wait().expect(0);
        assert!(done.error.contains("shutting down"), "{done:?}");
    }
}

#[test]
fn part11_what_runs_at_a_shutdown_is_answered() {
    let scene = Scene::new();
    let busy = Busy::start(&scene, &[]);
    busy.served.signal("TERM");
    wait_until("a shutdown", || is_stopping(&busy.served));
    scene.server.resume();
    let Busy {
        served,
        runtime,
        operation,
    } = busy;
    served.wait().expect(0);
    runtime.block_on(operation).unwrap().unwrap();
    assert_eq!(scene.call(&["get", "k"]).run().expect(0).text(), "after");
}

#[test]
fn part11_a_shutdown_takes_no_longer_than_it_may() {
    let scene = Scene::new();
    let Busy {
        served,
        runtime,
        operation,
    } = Busy::start(&scene, &["--shutdown-timeout", "500ms"]);
    let begun = Instant::now();
    served.signal("TERM");
    served.wait().expect(0);
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(450), "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    let error = runtime.block_on(operation).unwrap().unwrap_err();
    assert!(error.may_have_been_applied(), "{error}");
}

#[test]
fn part11_a_second_signal_ends_at_once() {
    let scene = Scene::new();
    let Busy {
        served,
        runtime,
        operation,
    } = Busy::start(&scene, &["--shutdown-timeout", "40s"]);
    served.signal("TERM");
    wait_until("a shutdown", || is_stopping(&served));
    let begun = Instant::now();
    served.signal("INT");
    served.wait().expect(128 + 2);
    assert!(begun.elapsed() < Duration::from_secs(10));
    let error = runtime.block_on(operation).unwrap().unwrap_err();
    assert!(error.may_have_been_applied(), "{error}");
}

#[test]
fn part11_while_it_drains_calls_go_on() {
    let served = Served::start(&["--metrics-listen", "127.0.0.1:0", "--drain", "1m"]);
    served.signal("TERM");
    let ready = || http(&served.metrics(), "GET", "/readyz");
    wait_until("a shutdown", || {
        ready() == (503, "shutting down\n".to_owned())
    });
    assert_eq!(http(&served.metrics(), "GET", "/healthz").0, 200);
    served.answers();
    served.signal("TERM");
    served.wait().expect(128 + 15);
}

#[test]
fn part11_who_waits_for_a_lock_is_no_reason_to_wait_with_a_shutdown() {
    let served = Served::start(&[]);
    let holder = served
        .lock(&["--ttl", "30s"], "touch run; sleep 100")
        .start();
    wait_until("the holder", || served.path("run").exists());
    let wait = ["--ttl", "30s", "--wait", "2s"];
    let waiter = served.lock(&wait, "echo ran").start();
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    served.signal("TERM");
    served.wait().expect(0);
    assert!(begun.elapsed() < Duration::from_secs(10));
    let done = waiter.wait().expect(69);
    assert!(done.output.is_empty(), "{done:?}");
    holder.signal("TERM");
    holder.wait().expect(128 + 15);
}
