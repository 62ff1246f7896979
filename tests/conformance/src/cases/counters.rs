//! `increment` (spec part 3).

use caching_abstractions::{CachingError, ErrorCode};

use crate::harness::StoreHarness;
use crate::scene::{Scene, absent, bytes, holds, key, left, long, put, refused};

pub async fn increment_counts_an_absent_key_from_zero(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let store = scene.client().await;
    for delta in [1, -1, 0, 41, i64::MAX, i64::MIN] {
        let k = key(&format!("k{delta}"));
        assert_eq!(store.increment(&k, delta, long()).await.unwrap(), delta);
        holds(&store, &k, &delta.to_string()).await;
    }
}

pub async fn increment_gives_the_sum_and_writes_it_as_text(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let mut sum = 0;
    for delta in [5, -7, 0, 2, 1_000_000, -1] {
        sum += delta;
        assert_eq!(store.increment(&k, delta, long()).await.unwrap(), sum);
        holds(&store, &k, &sum.to_string()).await;
    }
}

pub async fn increment_takes_numbers_that_others_wrote(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    for text in [
        "0",
        "7",
        "-7",
        "10",
        "-9223372036854775808",
        "9223372036854775807",
    ] {
        put(&store, &k, text).await;
        let number: i64 = text.parse().unwrap();
        let step = if number > 0 { -1 } else { 1 };
        let sum = store.increment(&k, step, long()).await.unwrap();
        assert_eq!(sum, number + step, "from {text}");
        assert!(
            store
                .try_remove(&k, sum.to_string().as_bytes())
                .await
                .unwrap()
        );
    }
}

pub async fn increment_refuses_what_is_no_decimal_number(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let refused_texts = [
        "",
        " ",
        "-",
        "+",
        "007",
        "00",
        "-0",
        "-01",
        "+1",
        " 1",
        "1 ",
        "1\n",
        "1.0",
        "1e3",
        "0x1",
        "one",
        "\u{661}",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999",
    ];
    for text in refused_texts {
        store
            .set(&k, bytes(text), scene.lasting(100))
            .await
            .unwrap();
        for delta in [1, 0, -1] {
            let result = store.increment(&k, delta, long()).await;
            assert!(
                result.is_err(),
                "{text:?} is no number and gives {result:?}"
            );
            let error = refused(result, ErrorCode::WrongKind);
            assert_eq!(error.parameter("key"), Some("k"), "it names the key");
        }
        holds(&store, &k, text).await;
        assert!(left(&store, &k).await <= scene.ticks(100));
    }
}

pub async fn increment_refuses_bytes_that_are_no_text(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    for value in [&b"1\0"[..], b"\xff", b"\0", b"1\xff", &[b'1'; 5000]] {
        let value = bytes::Bytes::copy_from_slice(value);
        store.set(&k, value.clone(), long()).await.unwrap();
        refused(store.increment(&k, 1, long()).await, ErrorCode::WrongKind);
        assert_eq!(store.get(&k).await.unwrap(), Some(value));
    }
}

pub async fn increment_refuses_an_overflow_both_ways(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let overflows = [
        (i64::MAX, 1),
        (i64::MAX, i64::MAX),
        (1, i64::MAX),
        (i64::MIN, -1),
        (i64::MIN, i64::MIN),
        (-1, i64::MIN),
    ];
    for (number, delta) in overflows {
        let text = number.to_string();
        store
            .set(&k, bytes(&text), scene.lasting(100))
            .await
            .unwrap();
        let error = refused(
            store.increment(&k, delta, long()).await,
            ErrorCode::WrongKind,
        );
        assert_eq!(error.parameter("key"), Some("k"), "it names the key");
        holds(&store, &k, &text).await;
        assert!(left(&store, &k).await <= scene.ticks(100));
    }
}

pub async fn increment_reaches_both_ends(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    let steps = [
        (i64::MAX - 1, i64::MAX - 1),
        (1, i64::MAX),
        (i64::MIN, -1),
        (i64::MIN + 1, i64::MIN),
        (i64::MAX, -1),
    ];
    for (delta, sum) in steps {
        assert_eq!(store.increment(&k, delta, long()).await.unwrap(), sum);
        holds(&store, &k, &sum.to_string()).await;
    }
}

pub async fn increment_takes_options_only_when_it_creates(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    store.increment(&k, 1, scene.lasting(10)).await.unwrap();
    assert!(left(&store, &k).await <= scene.ticks(10));
    scene.pass(2).await;
    store.increment(&k, 1, long()).await.unwrap();
    assert!(
        left(&store, &k).await <= scene.ticks(9),
        "what was left is kept"
    );
    scene.pass(2).await;
    store.increment(&k, 1, scene.sliding(1000)).await.unwrap();
    holds(&store, &k, "3").await;
    assert!(
        left(&store, &k).await <= scene.ticks(7),
        "it does not begin to slide"
    );
    scene.pass(7).await;
    absent(&store, &k).await;
}

pub async fn increment_keeps_the_life_of_an_entry_others_wrote(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    put(&store, &k, "1").await;
    store.increment(&k, 1, scene.lasting(2)).await.unwrap();
    scene.pass(3).await;
    holds(&store, &k, "2").await;
}

pub async fn increment_is_seen_by_another_client(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (one, two, k) = (scene.client().await, scene.client().await, key("k"));
    for expected in [1, 3, 5] {
        assert_eq!(one.increment(&k, 1, long()).await.unwrap(), expected);
        assert_eq!(two.increment(&k, 1, long()).await.unwrap(), expected + 1);
    }
}

/// X3: whoever logs the error logs no stored value.
pub async fn x3_the_error_of_increment_shows_no_stored_value(harness: &dyn StoreHarness) {
    let scene = Scene::start(harness).await;
    let (store, k) = (scene.client().await, key("k"));
    put(&store, &k, "s3cret").await;
    let error = refused(store.increment(&k, 1, long()).await, ErrorCode::WrongKind);
    assert!(!shown(&error).contains("s3cret"), "{error}");
    put(&store, &k, "9223372036854770000").await;
    let error = refused(
        store.increment(&k, i64::MAX, long()).await,
        ErrorCode::WrongKind,
    );
    assert!(!shown(&error).contains("9223372036854770000"), "{error}");
    assert!(!format!("{store:?}").contains("9223372036854770000"));
}

/// Everything that a log could show of `error`, causes included.
fn shown(error: &CachingError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(" {error} {error:?}"));
        cause = error.source();
    }
    let parameters = error.parameters().map(|(_, value)| value);
    text.extend(parameters);
    text
}
