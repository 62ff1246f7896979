//! Work under a lock (L10).

use std::future::pending;

use caching_abstractions::ErrorCode;
use tokio::sync::oneshot;

use super::{LONG, RESOURCE, acquired, freed, is_held, lock_key, one, two};
use crate::harness::StoreHarness;
use crate::scene::{Scene, absent, refused};

pub async fn l10_the_works_own_result_comes_back_and_the_lock_is_free(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let done = locks.with_lock(RESOURCE, LONG, || async { 42 }).await;
    assert_eq!(done.unwrap(), 42);
    absent(&store, &lock_key()).await;
    let work = || async { Err::<(), _>("out of paper") };
    let failed = locks.with_lock(RESOURCE, LONG, work).await;
    assert_eq!(failed.unwrap(), Err("out of paper"));
    absent(&store, &lock_key()).await;
}

pub async fn l10_the_work_runs_under_the_lock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let work = || async { is_held(&there).await };
    here.with_lock(RESOURCE, LONG, work).await.unwrap();
    let _next = acquired(&there).await;
}

pub async fn l10_under_a_held_lock_the_work_does_not_run(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let _lock = acquired(&here).await;
    let work = || async { panic!("the work runs although the lock is held") };
    let refusal = there.with_lock::<_, _, _>(RESOURCE, LONG, work).await;
    let _: () = match refusal {
        Ok(never) => never,
        Err(error) => {
            refused::<()>(Err(error), ErrorCode::LockHeld);
        }
    };
}

pub async fn l10_a_late_release_never_replaces_the_result(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let [here, there] = two(&scene).await;
    let work = || async {
        scene.pass(4).await;
        acquired(&there).await
    };
    let next = here.with_lock(RESOURCE, scene.life(3), work).await.unwrap();
    assert!(next.release().await.unwrap(), "it was not released for us");
}

pub async fn l10_a_panic_frees_the_lock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let panicking = tokio::spawn(async move {
        let work = || async { std::panic::resume_unwind(Box::new("the work is broken")) };
        let _: caching_abstractions::Result<()> = locks.with_lock(RESOURCE, LONG, work).await;
    });
    assert!(panicking.await.unwrap_err().is_panic());
    freed(&scene, &store, &lock_key()).await;
}

pub async fn l10_a_cancellation_frees_the_lock(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, locks) = one(&scene).await;
    let (started, has_started) = oneshot::channel();
    let working = tokio::spawn(async move {
        let work = || async {
            started.send(()).unwrap();
            pending::<()>().await
        };
        locks.with_lock(RESOURCE, LONG, work).await
    });
    has_started.await.unwrap();
    assert!(store.get(&lock_key()).await.unwrap().is_some());
    working.abort();
    assert!(working.await.unwrap_err().is_cancelled());
    freed(&scene, &store, &lock_key()).await;
}
