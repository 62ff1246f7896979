//! `lock` on a server of this tool.

use std::time::{Duration, Instant, SystemTime};

use redis_support::{Proxy, wait_until};

use crate::support::{Served, is_alive};

const TTL: [&str; 2] = ["--ttl", "30s"];
/// Runs until it is told to end.
const HOLD: &str = "echo $XIHAN_LOCK_FENCING $$ > run; until [ -e stop ]; do sleep 0.01; done";

/// The fencing number and the process of the command that runs.
fn until_runs(served: &Served) -> (u64, u32) {
    served.until_written("run", "\n");
    let line = served.read("run");
    let (fencing, id) = line.trim().split_once(' ').unwrap();
    (fencing.parse().unwrap(), id.parse().unwrap())
}

#[test]
fn part11_a_lock_that_is_held_is_status_75_and_runs_nothing() {
    let served = Served::start(&[]);
    let holder = served.lock(&TTL, HOLD).start();
    let (first, _) = until_runs(&served);
    let done = served.lock(&TTL, "touch ran").run().expect(75);
    assert_eq!(done.error, "");
    let wait = ["--ttl", "30s", "--wait", "200ms"];
    let done = served.lock(&wait, "touch ran").run().expect(75);
    assert!(done.error.contains("did not become free"), "{done:?}");
    assert!(!served.path("ran").exists());
    std::fs::write(served.path("stop"), "").unwrap();
    holder.wait().expect(0);
    assert_eq!(served.token(), "");
    let next = served
        .lock(&TTL, "echo $XIHAN_LOCK_FENCING")
        .run()
        .expect(0);
    let next: u64 = next.text().trim().parse().unwrap();
    assert!(next > first, "{next} after {first}");
}

#[test]
fn l9_who_waits_is_woken_by_the_release_and_not_by_the_next_look() {
    let served = Served::start(&[]);
    let mut took = Vec::new();
    for _ in 0..5 {
        for name in ["stop", "run", "woken"] {
            let _ = std::fs::remove_file(served.path(name));
        }
        let holder = served.lock(&TTL, HOLD).start();
        until_runs(&served);
        let wait = ["--ttl", "30s", "--wait", "1m"];
        let waiter = served.lock(&wait, "touch woken").start();
        // Enough to be waiting; whoever comes later finds the lock free, which is quick as well.
        std::thread::sleep(Duration::from_millis(300));
        assert!(!served.path("woken").exists());
        let released = SystemTime::now();
        std::fs::write(served.path("stop"), "").unwrap();
        waiter.wait().expect(0);
        holder.wait().expect(0);
        let woken = std::fs::metadata(served.path("woken")).unwrap().modified();
        took.push(woken.unwrap().duration_since(released).unwrap());
    }
    // Somebody who looks once a second would need half a second in the middle.
    took.sort_unstable();
    assert!(took[2] < Duration::from_millis(300), "{took:?}");
}

#[test]
fn l12_a_server_that_is_killed_stops_the_command_within_the_lease() {
    let served = Served::start(&[]);
    let options = ["--ttl", "3s", "--keep-alive", "--timeout", "500ms"];
    let holder = served.lock(&options, HOLD).start();
    let (_, id) = until_runs(&served);
    let begun = Instant::now();
    served.signal("KILL");
    wait_until("an end", || !is_alive(id));
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    let done = holder.wait().expect(76);
    assert!(done.error.contains("the command was stopped"), "{done:?}");
}

#[test]
fn s6_a_server_that_was_restarted_has_forgotten_the_lock_and_says_so_at_the_next_renewal() {
    let served = Served::start(&[]);
    let options = ["--ttl", "6s", "--keep-alive"];
    let holder = served.lock(&options, HOLD).start();
    let (first, id) = until_runs(&served);
    served.signal("KILL");
    let again = again(&served);
    let next = again.lock(&TTL, "echo $XIHAN_LOCK_FENCING").run().expect(0);
    let next: u64 = next.text().trim().parse().unwrap();
    assert!(next > first, "{next} after {first}");
    holder.wait().expect(76);
    assert!(!is_alive(id));
}

/// Another server where the first one was.
fn again(served: &Served) -> Served {
    Served::of(crate::support::Call::new(&["serve"]), served.port())
}

#[test]
fn l12_a_connection_that_is_cut_for_less_than_the_lease_does_no_harm() {
    let served = Served::start(&[]);
    let proxy = Proxy::start(served.port());
    let store = format!("grpc://127.0.0.1:{}", proxy.port());
    let options = ["--ttl", "4s", "--keep-alive", "--timeout", "500ms"];
    let script = format!("{HOLD}; exit 4");
    let holder = served
        .lock(&options, &script)
        .env("XIHAN_CACHE_STORE", &store)
        .start();
    until_runs(&served);
    for _ in 0..5 {
        proxy.break_once();
        std::thread::sleep(Duration::from_secs(1));
    }
    assert!(proxy.accepted() > 1, "the connection was not cut");
    std::fs::write(served.path("stop"), "").unwrap();
    holder.wait().expect(4);
    assert_eq!(served.token(), "");
}
