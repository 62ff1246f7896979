//! Mutated input for everything that reads bytes of others: the baggage parser, the key parser, the
//! language negotiation and the record decoder.
//!
//! Runs for two seconds, or for as many as `XIHAN_FUZZ_SECONDS` says: `cargo xtask fuzz`.

#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

use std::panic::catch_unwind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::{
    CacheKey, CacheStore, CacheStoreExt, CachingServices, CachingSettings, ErrorCode, KeyPrefix,
};
use conformance::ReferenceStore;
use idempotency_pipeline::baggage::idempotency_key_header;
use idempotency_pipeline::language::negotiate;
use idempotency_pipeline::{
    Baggage, EntryKind, Failure, IdempotencyRecord, Language, Operation, OperationInvoker, Pipeline,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;

/// An input that takes longer than this would be a hang: the largest is some 20 KiB.
const HANG: Duration = Duration::from_secs(2);

#[test]
fn no_input_makes_a_parser_panic_or_hang() {
    let seconds = std::env::var("XIHAN_FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(2));
    let seed = rand::random();
    let mut random = StdRng::seed_from_u64(seed);
    let corpus = corpus();
    let mut inputs = 0_u64;
    while Instant::now() < end {
        for _ in 0..100 {
            let input = mutated(&corpus, &mut random);
            let start = Instant::now();
            let panicked = catch_unwind(|| read(&input)).is_err();
            let took = start.elapsed();
            assert!(
                !panicked && took < HANG,
                "seed {seed}: {took:?} for {input:?}"
            );
            inputs += 1;
        }
    }
    println!("{inputs} inputs");
}

/// Gives the input to every parser and checks what must hold whatever it is.
fn read(input: &[u8]) {
    if let Ok(baggage) = Baggage::parse([input]) {
        if let Some(key) = baggage.idempotency_key() {
            assert!(
                CacheKey::new(key).is_ok(),
                "a key that was accepted follows the grammar"
            );
        }
        if let Some(header) = baggage.to_header_value() {
            let again = Baggage::parse([header.as_bytes()]).expect("what is written can be read");
            assert_eq!(again.idempotency_key(), baggage.idempotency_key());
        }
    }
    let (left, right) = input.split_at(input.len() / 2);
    let _ = Baggage::parse([left, right]);
    let _ = idempotency_key_header([input]);
    negotiate(
        Some(input),
        &[Language::ENGLISH, Language::SIMPLIFIED_CHINESE],
    );
    if let Ok(text) = std::str::from_utf8(input) {
        match CacheKey::new(text) {
            Ok(key) => assert_eq!(key.as_str(), text),
            Err(error) => assert_eq!(error.code(), ErrorCode::InvalidKey),
        }
        let _ = KeyPrefix::new(text);
        let _ = CacheKey::from_segments([text, "a"]);
    }
    let _ = IdempotencyRecord::decode(&Bytes::copy_from_slice(input));
}

/// What mutation starts from: the cases of the specification, and real records.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = vec![
        Vec::new(),
        b"zh-CN;q=0.5, *;q=0.1".to_vec(),
        b"\"a\\\"b\"".to_vec(),
    ];
    for row in include_str!("data/baggage.tsv")
        .lines()
        .filter(|row| !row.starts_with('#'))
    {
        let lines: Vec<String> =
            serde_json::from_str(row.split('\t').next().expect("a first column"))
                .expect("an array of header lines");
        corpus.extend(lines.into_iter().map(String::into_bytes));
    }
    corpus.extend(records());
    corpus
}

#[derive(Debug)]
struct Services(Arc<dyn CacheStore>, CachingSettings);

impl CachingServices for Services {
    fn store(&self) -> &Arc<dyn CacheStore> {
        &self.0
    }

    fn settings(&self) -> &CachingSettings {
        &self.1
    }
}

/// The records of a success and of a failure, as they stand in a store.
fn records() -> Vec<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let services = Services(Arc::new(ReferenceStore::new()), CachingSettings::default());
        let pipeline = Pipeline::builder().build(&services);
        let invoker = OperationInvoker::new(&pipeline);
        let echo = Operation::new("echo").handler(|_context, text: String| async move {
            if text == "fail" {
                return Err(Failure::new("FUZZ_CONFLICT_001")
                    .with_parameter("a", "b")
                    .into());
            }
            Ok(text)
        });
        for text in ["\"fail\"", "\"fine\""] {
            let key = CacheKey::new(text.trim_matches('"')).expect("a key");
            let context = EntryKind::Raw
                .context()
                .baggage(Baggage::new().with_idempotency_key(key));
            let _ = invoker.invoke(&echo, context, text.into()).await;
        }
        let mut records = Vec::new();
        for key in services.0.sorted_keys("").await.expect("the store answers") {
            let record = services.0.get(&key).await.expect("the store answers");
            records.push(record.expect("a record").to_vec());
        }
        assert_eq!(records.len(), 2);
        records
    })
}

/// One of the corpus, changed in a few places; now and then repeated to a great length.
fn mutated(corpus: &[Vec<u8>], random: &mut StdRng) -> Vec<u8> {
    let mut input = corpus[random.random_range(0..corpus.len())].clone();
    for _ in 0..random.random_range(0..6) {
        let at = random.random_range(0..=input.len());
        match random.random_range(0..6) {
            0 => input.insert(at, random.random()),
            1 if at < input.len() => input[at] = random.random(),
            2 if at < input.len() => drop(input.remove(at)),
            3 => input.truncate(at),
            4 => {
                const TELLING: &[u8] = b",;=%:\"\\ \t-*q0\xff\xc3";
                input.insert(at, TELLING[random.random_range(0..TELLING.len())]);
            }
            _ => {
                let other = &corpus[random.random_range(0..corpus.len())];
                input.splice(at..at, other.iter().copied());
            }
        }
    }
    if !input.is_empty() && random.random_ratio(1, 200) {
        input = input.repeat(20_000 / input.len() + 1);
    }
    input
}
