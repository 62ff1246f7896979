//! `serve` is killed, or shut down, while clients work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use caching_remote::RemoteStore;
use redis_support::wait_until;
use xihan_caching::{
    CacheEntryOptions, CacheKey, CacheStore, CachingError, CachingSettings, ErrorCode, LeaseToken,
    TimeToLive, minutes,
};

use crate::support::{Call, Served};

const LIMIT: Duration = Duration::from_secs(2);
const MARGIN: Duration = Duration::from_millis(500);
const TASKS: usize = 8;

/// What clients see while something happens to the server.
#[derive(Default)]
struct Seen {
    is_over: AtomicBool,
    done: AtomicU64,
    unknown: AtomicU64,
    failed: AtomicU64,
    fencing: AtomicU64,
    slowest: AtomicU64,
}

impl Seen {
    async fn call<T>(&self, call: impl Future<Output = Result<T, CachingError>>) -> Option<T> {
        let begun = Instant::now();
        let result = call.await;
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap();
        self.slowest.fetch_max(took, Ordering::Relaxed);
        match result {
            Ok(answer) => {
                self.done.fetch_add(1, Ordering::Relaxed);
                Some(answer)
            }
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
                let unknown = u64::from(error.may_have_been_applied());
                self.unknown.fetch_add(unknown, Ordering::Relaxed);
                self.failed.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(5)).await;
                None
            }
        }
    }

    async fn work(&self, store: &RemoteStore, task: usize) {
        let key = |text: &str| CacheKey::new(text).unwrap();
        let (own, lease, number) = (key(&format!("k{task}")), key("lease"), key("n"));
        let (options, life) = (
            CacheEntryOptions::default(),
            TimeToLive::new(minutes(10)).unwrap(),
        );
        while !self.is_over.load(Ordering::Relaxed) {
            self.call(store.set(&own, "v".into(), options)).await;
            self.call(store.get(&own)).await;
            self.call(store.increment(&number, 1, options)).await;
            let token = LeaseToken::generate();
            let before = self.fencing.load(Ordering::SeqCst);
            let leased = self.call(store.try_lease(&lease, &token, life)).await;
            if let Some(Some(number)) = leased {
                assert!(number > before, "S6: {number} after {before}");
                self.fencing.fetch_max(number, Ordering::SeqCst);
            }
            self.call(store.release(&lease, &token)).await;
        }
    }

    /// Waits until some more was done.
    fn progress(&self) {
        let before = self.done.load(Ordering::Relaxed);
        wait_until("progress", || {
            self.done.load(Ordering::Relaxed) > before + 200
        });
    }
}

/// Lets clients work, does `what` to the server, and gives what they saw.
fn under_load(store: &str, what: impl FnOnce(&Seen)) -> Arc<Seen> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut settings = CachingSettings::default();
    settings.remote.endpoint = Some(store.to_owned());
    settings.remote.operation_timeout = LIMIT;
    let client = runtime.block_on(RemoteStore::connect(&settings)).unwrap();
    let seen = Arc::new(Seen::default());
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (seen, client) = (Arc::clone(&seen), client.clone());
            runtime.spawn(async move { seen.work(&client, task).await })
        })
        .collect();
    seen.progress();
    what(&seen);
    seen.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    let slowest = Duration::from_micros(seen.slowest.load(Ordering::Relaxed));
    assert!(slowest < LIMIT + MARGIN, "a call took {slowest:?}");
    seen
}

#[test]
fn s6_after_a_kill_under_load_the_server_is_back_and_fencing_numbers_rise() {
    let served = Served::start(&[]);
    let seen = under_load(&served.store, |seen| {
        served.signal("KILL");
        std::thread::sleep(Duration::from_millis(1500));
        let failed = seen.failed.load(Ordering::Relaxed);
        assert!(failed > 0, "nothing happened");
        let before = seen.fencing.load(Ordering::SeqCst);
        let again = Served::of(Call::new(&["serve"]), served.port());
        let (begun, done) = (Instant::now(), seen.done.load(Ordering::Relaxed));
        wait_until("an answer", || seen.done.load(Ordering::Relaxed) > done);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(2), "back after {took:?}");
        seen.progress();
        wait_until("a higher fencing number", || {
            seen.fencing.load(Ordering::SeqCst) > before
        });
        // The clients stop before the second server does.
        seen.is_over.store(true, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(100));
        again.signal("TERM");
        again.wait().expect(0);
    });
    assert!(seen.done.load(Ordering::Relaxed) > 0);
}

#[test]
fn part11_a_shutdown_under_load_is_graceful() {
    let served = Served::start(&[]);
    let (store, mut took) = (served.store.clone(), Duration::MAX);
    let seen = under_load(&store, |seen| {
        let begun = Instant::now();
        served.signal("TERM");
        served.wait().expect(0);
        took = begun.elapsed();
        wait_until("refused calls", || seen.failed.load(Ordering::Relaxed) > 0);
    });
    assert!(took < Duration::from_secs(10), "{took:?}");
    let unknown = seen.unknown.load(Ordering::Relaxed);
    assert_eq!(unknown, 0, "calls of unknown outcome");
}
