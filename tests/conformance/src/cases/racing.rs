//! 64 tasks race on one key, and each primitive has exactly one winner (S1).

use std::collections::HashSet;
use std::sync::Arc;

use caching_abstractions::CacheKey;
use tokio::sync::Barrier;

use crate::harness::StoreHarness;
use crate::scene::{Client, Scene, absent, bytes, holds, key, long, long_life, put, text, token};

const TASKS: usize = 64;
/// A race that is lost once in a hundred times is lost.
const ROUNDS: usize = 20;

/// Runs `act` at the same moment in 64 tasks on several clients, and gives all answers.
async fn race<T, F, A>(clients: &[Client], act: A) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
    A: Fn(Client, CacheKey, usize) -> F,
{
    let barrier = Arc::new(Barrier::new(TASKS));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let work = act(clients[task % clients.len()].clone(), key("k"), task);
            let barrier = barrier.clone();
            tokio::spawn(async move {
                barrier.wait().await;
                work.await
            })
        })
        .collect();
    let mut answers = Vec::with_capacity(TASKS);
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

async fn clients(scene: &Scene) -> [Client; 4] {
    let client = || scene.client();
    [
        client().await,
        client().await,
        client().await,
        client().await,
    ]
}

/// The position of the one `true`.
fn winner(answers: &[bool]) -> usize {
    let won = answers.iter().filter(|won| **won).count();
    assert_eq!(won, 1, "exactly one task wins");
    answers.iter().position(|won| *won).unwrap()
}

pub async fn s1_one_of_64_wins_try_add(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    for _ in 0..ROUNDS {
        let answers = race(&clients, |store, k, task| async move {
            let added = store.try_add(&k, bytes(&task.to_string()), long()).await;
            added.unwrap()
        });
        let won = winner(&answers.await);
        holds(&clients[0], &key("k"), &won.to_string()).await;
        assert!(clients[1].remove(&key("k")).await.unwrap());
    }
}

pub async fn s1_one_of_64_wins_get_or_add_and_all_others_see_its_value(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    for _ in 0..ROUNDS {
        let answers = race(&clients, |store, k, task| async move {
            let own = bytes(&task.to_string());
            store.get_or_add(&k, own, long()).await.unwrap()
        });
        let answers = answers.await;
        let won: Vec<_> = answers.iter().map(Option::is_none).collect();
        let value = bytes(&winner(&won).to_string());
        let others = answers.into_iter().flatten();
        assert!(others.into_iter().all(|seen| seen == value));
        assert!(clients[1].remove(&key("k")).await.unwrap());
    }
}

pub async fn s1_one_of_64_wins_try_replace(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    for _ in 0..ROUNDS {
        put(&clients[0], &key("k"), "old").await;
        let answers = race(&clients, |store, k, task| async move {
            let new = bytes(&task.to_string());
            store.try_replace(&k, b"old", new, long()).await.unwrap()
        });
        let won = winner(&answers.await);
        holds(&clients[0], &key("k"), &won.to_string()).await;
    }
}

pub async fn s1_one_of_64_wins_try_remove(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    for _ in 0..ROUNDS {
        put(&clients[0], &key("k"), "v").await;
        let answers = race(&clients, |store, k, _| async move {
            store.try_remove(&k, b"v").await.unwrap()
        });
        winner(&answers.await);
        absent(&clients[0], &key("k")).await;
    }
}

pub async fn s1_one_of_64_wins_remove(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    for round in 0..ROUNDS {
        put(&clients[0], &key("k"), "v").await;
        let answers = race(&clients, move |store, k, task| async move {
            if (round + task) % 2 == 0 {
                store.remove(&k).await.unwrap()
            } else {
                store.remove_many(&[k]).await.unwrap()[0]
            }
        });
        winner(&answers.await);
    }
}

pub async fn s1_one_of_64_wins_try_lease(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    let mut last = 0;
    for _ in 0..ROUNDS {
        let answers = race(&clients, |store, k, task| async move {
            let own = token(&task.to_string());
            store.try_lease(&k, &own, long_life()).await.unwrap()
        });
        let answers = answers.await;
        let won: Vec<_> = answers.iter().map(Option::is_some).collect();
        let won = winner(&won);
        let number = answers[won].unwrap();
        assert!(number > last, "{number} after {last}");
        last = number;
        let own = token(&won.to_string());
        assert!(clients[1].release(&key("k"), &own).await.unwrap());
    }
}

pub async fn s1_one_of_64_wins_try_relay(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    let (k, old) = (key("k"), token("old"));
    for _ in 0..ROUNDS {
        let granted = clients[0].try_lease(&k, &old, long_life()).await;
        let before = granted.unwrap().unwrap();
        let answers = race(&clients, |store, k, task| async move {
            let heir = token(&task.to_string());
            store
                .try_relay(&k, &token("old"), &heir, long_life())
                .await
                .unwrap()
        });
        let answers = answers.await;
        let won: Vec<_> = answers.iter().map(Option::is_some).collect();
        let won = winner(&won);
        assert!(answers[won].unwrap() > before);
        let heir = token(&won.to_string());
        assert!(clients[1].release(&k, &heir).await.unwrap());
    }
}

pub async fn s1_one_of_64_wins_release(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    for _ in 0..ROUNDS {
        let granted = clients[0]
            .try_lease(&key("k"), &token("t"), long_life())
            .await;
        assert!(granted.unwrap().is_some());
        let answers = race(&clients, |store, k, _| async move {
            store.release(&k, &token("t")).await.unwrap()
        });
        winner(&answers.await);
        absent(&clients[0], &key("k")).await;
    }
}

/// Whoever extends and whoever removes: the entry is never extended once it is gone.
pub async fn s1_try_extend_and_try_remove_exclude_each_other(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    for _ in 0..ROUNDS {
        put(&clients[0], &key("k"), "v").await;
        let answers = race(&clients, |store, k, task| async move {
            if task == TASKS / 2 {
                store.try_remove(&k, b"v").await.unwrap()
            } else {
                store.try_extend(&k, b"v", long_life()).await.unwrap();
                false
            }
        });
        assert_eq!(winner(&answers.await), TASKS / 2);
        absent(&clients[0], &key("k")).await;
    }
}

pub async fn s1_increments_of_64_tasks_add_up(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    let answers = race(&clients, |store, k, _| async move {
        let mut sums = Vec::new();
        for _ in 0..ROUNDS {
            sums.push(store.increment(&k, 1, long()).await.unwrap());
        }
        sums
    });
    let sums: HashSet<_> = answers.await.into_iter().flatten().collect();
    assert_eq!(sums.len(), TASKS * ROUNDS, "no sum comes twice");
    holds(&clients[0], &key("k"), &(TASKS * ROUNDS).to_string()).await;
}

/// A counter kept with get and try_replace loses no step either.
pub async fn s1_compare_and_swap_of_64_tasks_loses_no_step(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    put(&clients[0], &key("k"), "0").await;
    let answers = race(&clients, |store, k, _| async move {
        loop {
            let old = text(&store, &k).await.unwrap();
            let new = (old.parse::<u64>().unwrap() + 1).to_string();
            let swapped = store
                .try_replace(&k, old.as_bytes(), bytes(&new), long())
                .await;
            if swapped.unwrap() {
                return;
            }
        }
    });
    assert_eq!(answers.await.len(), TASKS);
    holds(&clients[0], &key("k"), &TASKS.to_string()).await;
}

/// A reader sees the old value or the new one, never a mixture and never nothing.
pub async fn s1_readers_never_see_half_a_write(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let clients = clients(&scene).await;
    put(&clients[0], &key("k"), &"a".repeat(4096)).await;
    let answers = race(&clients, |store, k, task| async move {
        let letter = char::from(b'a' + u8::try_from(task % 26).unwrap());
        for _ in 0..ROUNDS {
            if task % 2 == 0 {
                put(&store, &k, &String::from(letter).repeat(4096)).await;
                continue;
            }
            let value = store.get(&k).await.unwrap().unwrap();
            let whole = value.len() == 4096 && value.iter().all(|byte| *byte == value[0]);
            assert!(whole, "half a write was seen");
        }
    });
    assert_eq!(answers.await.len(), TASKS);
}
