//! Failover and resharding.
#![allow(
    clippy::unwrap_used,
    reason = "the whole file is test code: a failed expectation is a failed test"
)]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, CacheStoreExt, ErrorCode, LeaseToken,
    TimeToLive, milliseconds, minutes, seconds,
};
use caching_redis::RedisStore;
use futures_util::TryStreamExt;
use redis_support::{Cluster, SentinelGroup};
use support::Lateness;
use tokio::time::{Instant, sleep};

fn key(text: &str) -> CacheKey {
    CacheKey::new(text).unwrap()
}

fn long() -> CacheEntryOptions {
    CacheEntryOptions::time_to_live(minutes(10)).unwrap()
}

fn life() -> TimeToLive {
    TimeToLive::new(minutes(10)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_primary_is_used_within_five_seconds_of_its_election() {
    let mut group = SentinelGroup::start(1000);
    let store = RedisStore::connect(&support::settings(&group.url(0))).await;
    let store = store.unwrap();
    store.set(&key("k"), "v".into(), long()).await.unwrap();
    let token = LeaseToken::generate();
    store
        .try_lease(&key("lease"), &token, life())
        .await
        .unwrap();
    // One sentinel less is no reason not to find the primary.
    group.kill_first_sentinel();
    group.servers_mut()[0].kill();
    let lateness = Lateness::watch();
    let begun = Instant::now();
    let mut elected = None;
    loop {
        if elected.is_none() && group.primary() != 0 {
            elected = Some(Instant::now());
        }
        match store.increment(&key("n"), 1, long()).await {
            Ok(_) => break,
            Err(error) => assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}"),
        }
        assert!(begun.elapsed() < seconds(60), "no new primary is used");
        sleep(milliseconds(10)).await;
    }
    let took = elected.map(|at| at.elapsed()).unwrap_or_default();
    assert!(
        took < lateness.allow(seconds(5)),
        "{took:?} after the election"
    );
    assert_eq!(store.get(&key("k")).await.unwrap(), Some("v".into()));
    // Scripts are not loaded there, and the lease came along.
    let again = store
        .try_lease(&key("lease"), &LeaseToken::generate(), life())
        .await;
    assert_eq!(again.unwrap(), None);
    assert!(store.release(&key("lease"), &token).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s3_a_dead_primary_of_a_cluster_takes_its_slots_away_and_no_others() {
    let mut cluster = Cluster::with_settings(&[("cluster-require-full-coverage", "no")]);
    let settings = support::settings(&cluster.url());
    let most = settings.redis.operation_timeout + milliseconds(500);
    let store = RedisStore::connect(&settings).await.unwrap();
    let names = || (0..).map(|number| key(&format!("k{number}")));
    let of = |index: usize| {
        names().find(|name| cluster.owner(slot_of(&cluster, name.as_str())) == index)
    };
    let [first, dead, third] = [0, 1, 2].map(|index| of(index).unwrap());
    store.set(&dead, "v".into(), long()).await.unwrap();

    cluster.servers_mut()[1].kill();
    // Longer than the nodes need to agree that it is gone.
    let lateness = Lateness::watch();
    let begun = Instant::now();
    let mut refused = 0;
    while begun.elapsed() < seconds(5) {
        for name in [&first, &third] {
            store.set(name, "v".into(), long()).await.unwrap();
            assert_eq!(store.get(name).await.unwrap(), Some("v".into()));
        }
        let asked = Instant::now();
        let error = store.increment(&dead, 1, long()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
        let took = asked.elapsed();
        assert!(took < lateness.allow(most), "{took:?}");
        refused += 1;
        sleep(milliseconds(50)).await;
    }
    assert!(refused > 1, "it was asked {refused} times");

    cluster.restart(1);
    let begun = Instant::now();
    while let Err(error) = store.try_add(&dead, "w".into(), long()).await {
        assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
        assert!(begun.elapsed() < seconds(30), "it does not come back");
        sleep(milliseconds(10)).await;
    }
    assert_eq!(store.get(&dead).await.unwrap(), Some("w".into()));
}

/// Keys in one slot, of which a part is moved.
const TAG: &str = "{moving}";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_gives_no_wrong_answer_while_slots_move() {
    let cluster = Arc::new(Cluster::start());
    let store = RedisStore::connect(&support::settings(&cluster.url())).await;
    let store = store.unwrap();
    let names: BTreeSet<CacheKey> = (0..300)
        .map(|number| key(&format!("stable:{TAG}{number}")))
        .chain((0..300).map(|number| key(&format!("stable:{number}"))))
        .collect();
    let items: Vec<CacheItem> = names
        .iter()
        .map(|name| CacheItem::new(name.clone(), name.as_str().to_owned(), long()))
        .collect();
    store.set_many(&items).await.unwrap();

    let is_over = Arc::new(AtomicBool::new(false));
    let refused = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let (store, is_over) = (store.clone(), Arc::clone(&is_over));
            let (names, refused) = (names.clone(), Arc::clone(&refused));
            tokio::spawn(async move {
                let mut rounds = 0;
                while !is_over.load(Ordering::Relaxed) {
                    rounds += 1;
                    one_round(&store, &names, task, rounds, &refused).await;
                }
                rounds
            })
        })
        .collect();
    let moving = {
        let (is_over, cluster) = (Arc::clone(&is_over), Arc::clone(&cluster));
        tokio::task::spawn_blocking(move || {
            let slot = slot_of(&cluster, TAG);
            for round in 0..6 {
                let to = (cluster.owner(slot) + 1) % 3;
                let slots = [slot, slot.wrapping_add(1) % 16384, 5000 + round * 7];
                for slot in slots {
                    cluster.move_slot(slot, to, || pause(100));
                }
            }
            is_over.store(true, Ordering::Relaxed);
        })
    };
    moving.await.unwrap();
    let mut rounds = 0;
    for task in tasks {
        rounds += task.await.unwrap();
    }
    let refused = refused.load(Ordering::Relaxed);
    assert!(
        refused < rounds * 8,
        "{refused} calls of {rounds} rounds failed"
    );
    assert!(rounds >= 8, "only {rounds} rounds ran while slots moved");
    let listed: Vec<CacheKey> = store.sorted_keys("stable:").await.unwrap();
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), names);
}

#[expect(clippy::disallowed_methods, reason = "it runs on a thread of its own")]
fn pause(duration: u64) {
    std::thread::sleep(milliseconds(duration));
}

fn slot_of(cluster: &Cluster, name: &str) -> u16 {
    let mut raw = cluster.servers()[0].raw();
    let slot = raw.command(&["CLUSTER", "KEYSLOT", name]).text();
    slot.parse().unwrap()
}

/// Asserts that every answer is right, or that the store says it is not available.
async fn one_round(
    store: &RedisStore,
    names: &BTreeSet<CacheKey>,
    task: u32,
    round: u32,
    refused: &AtomicU32,
) {
    let or_unavailable = |error: caching_abstractions::CachingError| {
        assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
        refused.fetch_add(1, Ordering::Relaxed);
    };
    match store.keys("stable:").try_collect::<Vec<_>>().await {
        Ok(listed) => {
            let once: BTreeSet<CacheKey> = listed.iter().cloned().collect();
            assert_eq!(once.len(), listed.len(), "a key comes twice");
            assert_eq!(&once, names, "a key is missing");
        }
        Err(error) => or_unavailable(error),
    }
    for name in names.iter().step_by(29) {
        match store.get(name).await {
            Ok(value) => assert_eq!(value, Some(name.as_str().to_owned().into())),
            Err(error) => or_unavailable(error),
        }
    }
    let name = key(&format!("own:{TAG}{task}:{round}"));
    match store.try_add(&name, "1".into(), long()).await {
        Ok(added) => assert!(added, "it is new"),
        Err(error) => return or_unavailable(error),
    }
    match store.increment(&name, 1, long()).await {
        Ok(sum) => assert_eq!(sum, 2),
        Err(error) => return or_unavailable(error),
    }
    match store.try_remove(&name, b"2").await {
        Ok(removed) => assert!(removed, "it stood there"),
        Err(error) => return or_unavailable(error),
    }
    let (lease, token) = (key(&format!("lease:{TAG}{task}")), LeaseToken::generate());
    match store
        .try_lease(&lease, &token, TimeToLive::new(seconds(30)).unwrap())
        .await
    {
        Ok(number) => assert!(number.is_some(), "nobody else has it"),
        Err(error) => {
            or_unavailable(error);
            return clear(store, &lease).await;
        }
    }
    match store.release(&lease, &token).await {
        Ok(released) => assert!(released, "it was held"),
        Err(error) => {
            or_unavailable(error);
            clear(store, &lease).await;
        }
    }
}

/// Removes a lease that may have been left behind by a call whose outcome is unknown.
async fn clear(store: &RedisStore, lease: &CacheKey) {
    while store.remove(lease).await.is_err() {
        sleep(milliseconds(10)).await;
    }
}
