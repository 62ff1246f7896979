//! Every row of `cases/distributed-cache.tsv` (D4).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod support;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use caching_abstractions::{
    CacheKey, CacheStore, Clock, ErrorCode, KeyPrefix, ManualClock, Result, days, milliseconds,
    seconds,
};
use distcache_adapter::{
    CacheStoreDistributedCache, DistributedCache, DistributedCacheEntryOptions, ImmediateStore,
};
use support::ClockStore;
use tokio::runtime::Builder;

const CASES: &str = include_str!("cases/distributed-cache.tsv");

#[tokio::test]
async fn d4_every_case_holds() {
    let rows: Vec<(&str, &str)> = CASES
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once('\t'))
        .collect();
    assert_eq!(rows.len(), 36, "rows of the table");
    for (given, expected) in rows {
        println!("{given} -> {expected}");
        run(given, expected).await;
    }
}

/// A cache on a fresh store, and the hand that moves its clock.
struct Scene {
    clock: ManualClock,
    store: Arc<ClockStore>,
    cache: CacheStoreDistributedCache,
}

impl Scene {
    fn new() -> Self {
        let clock = ManualClock::new();
        let store = Arc::new(ClockStore::new(clock.clone()));
        let cache = CacheStoreDistributedCache::new(store.clone());
        let cache = cache.with_clock(Arc::new(clock.clone()));
        Self {
            clock,
            store,
            cache,
        }
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + self.clock.unix_time()
    }

    async fn set(&self, options: DistributedCacheEntryOptions) {
        self.cache.set("k", b"v", options).await.unwrap();
    }

    async fn left(&self) -> Option<Duration> {
        let key = CacheKey::new("k").unwrap();
        self.store.time_to_live(&key).await.unwrap()
    }

    async fn is_alive(&self) -> bool {
        self.left().await.is_some()
    }

    async fn lives(&self, options: DistributedCacheEntryOptions, time: Duration) {
        self.set(options).await;
        assert_eq!(self.left().await, Some(time));
    }

    async fn refuses(&self, options: DistributedCacheEntryOptions) {
        self.set(new().relative(seconds(60))).await;
        let refused = self.cache.set("k", b"other", options).await;
        assert_eq!(code(refused), ErrorCode::InvalidExpiration);
        let refused = self.cache.set_blocking("k", b"other", options);
        assert_eq!(code(refused), ErrorCode::InvalidExpiration);
        assert_eq!(self.left().await, Some(seconds(60)));
        assert_eq!(self.cache.get("k").await.unwrap().unwrap(), "v");
    }

    async fn keeps(&self, value: &[u8]) {
        self.cache.set("k", value, new()).await.unwrap();
        assert_eq!(self.cache.get("k").await.unwrap().unwrap(), value);
        self.cache.set_blocking("b", value, new()).unwrap();
        assert_eq!(self.cache.get_blocking("b").unwrap().unwrap(), value);
    }
}

fn new() -> DistributedCacheEntryOptions {
    DistributedCacheEntryOptions::new()
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> ErrorCode {
    result.unwrap_err().code()
}

async fn run(given: &str, expected: &str) {
    let scene = Scene::new();
    let (now, long) = (scene.now(), days(200 * 365));
    match given {
        "options: none" => scene.lives(new(), seconds(300)).await,
        "absolute = now + 10 s" => {
            scene
                .lives(new().absolute(now + seconds(10)), seconds(10))
                .await;
        }
        "absolute relative = 10 s" => {
            scene.lives(new().relative(seconds(10)), seconds(10)).await;
        }
        "absolute = now + 20 s, relative = 10 s" => {
            let options = new().absolute(now + seconds(20)).relative(seconds(10));
            scene.lives(options, seconds(10)).await;
        }
        "absolute = now + 10 s, relative = 20 s" => {
            let options = new().absolute(now + seconds(10)).relative(seconds(20));
            scene.lives(options, seconds(10)).await;
        }
        "absolute = now - 1 s" => scene.refuses(new().absolute(now - seconds(1))).await,
        "absolute = now" => scene.refuses(new().absolute(now)).await,
        "absolute = now - 1 s, relative = 10 s" => {
            let options = new().absolute(now - seconds(1)).relative(seconds(10));
            scene.refuses(options).await;
        }
        "relative = 0" => scene.refuses(new().relative(Duration::ZERO)).await,
        "sliding = 0" => scene.refuses(new().sliding(Duration::ZERO)).await,
        "relative = 200 years" => scene.refuses(new().relative(long)).await,
        _ => run_reads(&scene, given, expected).await,
    }
}

async fn run_reads(scene: &Scene, given: &str, expected: &str) {
    match given {
        "sliding = 1 s; no access for 1.5 s" => {
            scene.set(new().sliding(seconds(1))).await;
            scene.clock.advance(milliseconds(1500));
            assert_eq!(scene.cache.get("k").await.unwrap(), None);
        }
        "sliding = 1 s; get every 0.5 s, ten times" => {
            scene.set(new().sliding(seconds(1))).await;
            for _ in 0..10 {
                scene.clock.advance(milliseconds(500));
                assert!(scene.cache.get("k").await.unwrap().is_some());
            }
        }
        "sliding = 1 s; refresh every 0.5 s, ten times" => {
            scene.set(new().sliding(seconds(1))).await;
            for turn in 0..10 {
                scene.clock.advance(milliseconds(500));
                match turn % 2 {
                    0 => scene.cache.refresh("k").await.unwrap(),
                    _ => scene.cache.refresh_blocking("k").unwrap(),
                }
            }
            assert!(scene.is_alive().await);
        }
        "sliding = 1 s, relative = 3 s" => {
            scene
                .set(new().sliding(seconds(1)).relative(seconds(3)))
                .await;
            for _ in 0..5 {
                scene.clock.advance(milliseconds(500));
                assert!(scene.cache.get("k").await.unwrap().is_some());
            }
            assert_eq!(scene.left().await, Some(milliseconds(500)));
        }
        "relative = 2 s; get and refresh at 1.5 s" => {
            scene.set(new().relative(seconds(2))).await;
            scene.clock.advance(milliseconds(1500));
            assert!(scene.cache.get("k").await.unwrap().is_some());
            scene.cache.refresh("k").await.unwrap();
            scene.clock.advance(milliseconds(500));
            assert_eq!(scene.cache.get("k").await.unwrap(), None);
        }
        "relative = 250 ms" => {
            scene.set(new().relative(milliseconds(250))).await;
            scene.clock.advance(milliseconds(100));
            assert!(scene.is_alive().await);
            scene.clock.advance(milliseconds(300));
            assert!(!scene.is_alive().await);
        }
        "relative = 0.4 ms" => {
            let options = new().relative(Duration::from_micros(400));
            scene.lives(options, milliseconds(1)).await;
        }
        "set k v1 relative 1 s; set k v2 (none)" => {
            scene.set(new().relative(seconds(1))).await;
            scene.lives(new(), seconds(300)).await;
        }
        "set k v1 sliding 1 s; set k v2 relative 10 s; no access for 2 s" => {
            scene.set(new().sliding(seconds(1))).await;
            scene.set(new().relative(seconds(10))).await;
            scene.clock.advance(seconds(2));
            assert!(scene.cache.get("k").await.unwrap().is_some());
        }
        _ => run_values(scene, given, expected).await,
    }
}

async fn run_values(scene: &Scene, given: &str, expected: &str) {
    let cache = &scene.cache;
    match given {
        "value of 0 bytes" => scene.keeps(b"").await,
        "value of all 256 byte values, CR LF and NUL included" => {
            let value: Vec<u8> = (0..=255).chain(*b"\r\n\0").collect();
            scene.keeps(&value).await;
        }
        "value of 1 MiB" => scene.keeps(&vec![7; 1024 * 1024]).await,
        "keys 'myKey' and 'MyKey'" => {
            cache.set("myKey", b"1", new()).await.unwrap();
            cache.set("MyKey", b"2", new()).await.unwrap();
            assert_eq!(cache.get("myKey").await.unwrap().unwrap(), "1");
            assert_eq!(cache.get("MyKey").await.unwrap().unwrap(), "2");
        }
        "key ''" => bad_key(cache, "").await,
        "key 'a b'" => bad_key(cache, "a b").await,
        "key of 512 characters" => {
            cache.set(&"é".repeat(512), b"v", new()).await.unwrap();
        }
        "key of 513 characters" => bad_key(cache, &"k".repeat(513)).await,
        "get of a missing key" => {
            assert_eq!(cache.get("k").await.unwrap(), None);
            assert_eq!(cache.get_blocking("k").unwrap(), None);
        }
        "refresh of a missing key" => {
            cache.refresh("k").await.unwrap();
            cache.refresh_blocking("k").unwrap();
            assert!(!scene.is_alive().await);
        }
        "remove of a missing key" => {
            cache.remove("k").await.unwrap();
            cache.remove_blocking("k").unwrap();
        }
        "the store is down" => {
            scene.store.go_down();
            every_member(cache, "k", ErrorCode::StoreUnavailable).await;
        }
        _ => run_places(scene, given, expected).await,
    }
}

async fn run_places(scene: &Scene, given: &str, expected: &str) {
    scene.set(new()).await;
    let cache = scene.cache.clone();
    let get = move || assert_eq!(cache.get_blocking("k").unwrap().unwrap(), "v");
    let inside = |mut builder: Builder| {
        let get = get.clone();
        let runtime = builder.build().unwrap();
        runtime.block_on(async { tokio::spawn(async move { get() }).await.unwrap() });
    };
    match given {
        "blocking get from a plain thread" => std::thread::spawn(get).join().unwrap(),
        "blocking get inside a current-thread runtime's task" => {
            std::thread::scope(|s| {
                s.spawn(|| inside(Builder::new_current_thread()))
                    .join()
                    .unwrap();
            });
        }
        "blocking get inside a multi-thread runtime's task" => {
            std::thread::scope(|s| {
                s.spawn(|| inside(Builder::new_multi_thread()))
                    .join()
                    .unwrap();
            });
        }
        "two adapters on one store with prefixes 'a' and 'ab', keys 'bc' and 'c'" => {
            let prefixed = |prefix: &str| {
                let cache = CacheStoreDistributedCache::new(scene.store.clone());
                cache.with_prefix(KeyPrefix::new(prefix).unwrap())
            };
            let (a, ab) = (prefixed("a"), prefixed("ab"));
            a.set("bc", b"1", new()).await.unwrap();
            ab.set("c", b"2", new()).await.unwrap();
            assert_eq!(a.get("bc").await.unwrap().unwrap(), "1");
            assert_eq!(ab.get("c").await.unwrap().unwrap(), "2");
        }
        _ => panic!("no test for the case `{given}` -> `{expected}`"),
    }
}

async fn bad_key(cache: &CacheStoreDistributedCache, key: &str) {
    every_member(cache, key, ErrorCode::InvalidKey).await;
}

async fn every_member(cache: &CacheStoreDistributedCache, key: &str, expected: ErrorCode) {
    let codes = [
        code(cache.get(key).await),
        code(cache.set(key, b"v", new()).await),
        code(cache.refresh(key).await),
        code(cache.remove(key).await),
        code(cache.get_blocking(key)),
        code(cache.set_blocking(key, b"v", new())),
        code(cache.refresh_blocking(key)),
        code(cache.remove_blocking(key)),
    ];
    assert_eq!(codes, [expected; 8]);
}

#[tokio::test]
async fn k4_a_key_that_does_not_fit_with_its_prefix_is_refused() {
    let cache = Scene::new()
        .cache
        .with_prefix(KeyPrefix::new("shop").unwrap());
    cache.set(&"k".repeat(507), b"v", new()).await.unwrap();
    bad_key(&cache, &"k".repeat(508)).await;
}

#[tokio::test]
async fn k4_the_stored_key_is_prefix_and_key() {
    let scene = Scene::new();
    let shop = scene
        .cache
        .clone()
        .with_prefix(KeyPrefix::new("shop").unwrap());
    shop.set("order:1", b"v", new()).await.unwrap();
    assert_eq!(scene.cache.get("shop:order:1").await.unwrap().unwrap(), "v");
    shop.remove("order:1").await.unwrap();
    assert_eq!(scene.cache.get("shop:order:1").await.unwrap(), None);
}

#[tokio::test]
async fn d3_a_store_that_waits_is_an_error_of_the_blocking_face_and_no_deadlock() {
    let scene = Scene::new();
    scene.set(new()).await;
    scene.store.start_waiting();
    assert_eq!(code(scene.cache.get_blocking("k")), ErrorCode::Internal);
    assert_eq!(scene.cache.get("k").await.unwrap().unwrap(), "v");
}

#[tokio::test]
async fn d3_a_store_can_bring_its_own_blocking_face() {
    let scene = Scene::new();
    let other = Scene::new();
    scene.set(new()).await;
    scene.store.start_waiting();
    let own = ImmediateStore::new(other.store.clone());
    let cache = scene.cache.clone().with_blocking_store(Arc::new(own));
    cache.set_blocking("k", b"own", new()).unwrap();
    assert_eq!(other.cache.get("k").await.unwrap().unwrap(), "own");
    assert_eq!(cache.get("k").await.unwrap().unwrap(), "v");
}

#[tokio::test]
async fn part8_the_contract_is_object_safe() {
    let cache: Arc<dyn DistributedCache> = Arc::new(Scene::new().cache);
    cache
        .set("greeting", b"hello", new().sliding(seconds(1)))
        .await
        .unwrap();
    assert_eq!(cache.get("greeting").await.unwrap().unwrap(), "hello");
}
