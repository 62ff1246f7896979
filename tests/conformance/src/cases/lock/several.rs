//! Several locks at once (L14).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use caching_abstractions::ErrorCode;

use super::{LONG, freed, one, soon, two};
use crate::harness::StoreHarness;
use crate::scene::{Client, Scene, absent, key, refused};

async fn leased(store: &Client, resource: &str) -> bool {
    let key = key(&format!("lock:{resource}"));
    store.get(&key).await.unwrap().is_some()
}

pub async fn l14_each_resource_is_locked_once(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let all = locks.acquire_all(["b", "a", "b", "a"], LONG).await.unwrap();
    let names: Vec<_> = all.locks().iter().map(|lock| lock.resource()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(leased(&store, "a").await && leased(&store, "b").await);
    assert!(all.is_held());
    assert!(all.release().await.unwrap());
    assert!(!leased(&store, "a").await && !leased(&store, "b").await);
    assert!(!all.release().await.unwrap());
}

pub async fn l14_one_that_is_held_means_none(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let held = here.acquire("b", LONG).await.unwrap();
    let none = there.try_acquire_all(["a", "b", "c"], LONG).await.unwrap();
    assert!(none.is_none());
    let error = there.acquire_all(["c", "b", "a"], LONG).await;
    let error = refused(error, ErrorCode::LockHeld);
    assert_eq!(error.parameter("resource"), Some("b"));
    for free in ["a", "c"] {
        absent(here.store(), &key(&format!("lock:{free}"))).await;
    }
    assert!(
        held.release().await.unwrap(),
        "the other's lock is still there"
    );
    let all = there.try_acquire_all(["a", "b", "c"], LONG).await.unwrap();
    assert!(all.is_some_and(|all| all.is_held()));
}

pub async fn l14_dropping_the_handle_frees_every_lock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    drop(locks.acquire_all(["a", "b"], LONG).await.unwrap());
    freed(&scene, &store, &key("lock:a")).await;
    freed(&scene, &store, &key("lock:b")).await;
}

/// Each takes what the other needs first, if they take it in the order in which they name it.
pub async fn l14_opposite_orders_do_not_deadlock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let instances = two(&scene).await;
    let inside = Arc::new(AtomicBool::new(false));
    let orders = [["a", "b"], ["b", "a"]];
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let (locks, inside) = (instances[task % 2].clone(), inside.clone());
            tokio::spawn(async move {
                for _ in 0..5 {
                    let all = locks.acquire_all_within(orders[task % 2], LONG, LONG);
                    let all = all.await.unwrap();
                    assert!(
                        !inside.swap(true, Ordering::SeqCst),
                        "two are inside at once"
                    );
                    tokio::task::yield_now().await;
                    inside.store(false, Ordering::SeqCst);
                    assert!(all.release().await.unwrap());
                }
            })
        })
        .collect();
    for task in tasks {
        // The whole race has to go on; each turn may take as long as a hint.
        task.await.unwrap();
    }
}

pub async fn l14_the_loss_of_one_is_the_loss_of_all(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let all = locks.acquire_all(["a", "b"], scene.life(15)).await.unwrap();
    all.keep_alive();
    assert!(store.remove(&key("lock:b")).await.unwrap());
    soon(&scene, "the loss", all.lost()).await;
    assert!(!all.is_held());
    assert!(!all.release().await.unwrap());
    absent(&store, &key("lock:a")).await;
}
