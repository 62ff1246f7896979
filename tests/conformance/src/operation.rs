//! Operations as values: made at random, run on any store, compared by their outcomes.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, CacheStoreExt, ErrorCode, Expiration,
    Result, TimeToLive,
};

use crate::scene::{bytes, key, token};

/// One call of a [`CacheStore`], or some time that passes.
///
/// Keys are numbers, so that a sequence can be run anywhere in a store.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants are the methods of the store")]
pub enum Operation {
    Get(u8),
    GetMany(Vec<u8>),
    Set(u8, &'static str, Life),
    SetMany(Vec<(u8, &'static str, Life)>),
    TryAdd(u8, &'static str, Life),
    GetOrAdd(u8, &'static str, Life),
    TryReplace(u8, &'static str, &'static str, Life),
    TryRemove(u8, &'static str),
    TryExtend(u8, &'static str, Duration),
    TryLease(u8, &'static str, Duration),
    TryRelay(u8, &'static str, &'static str, Duration),
    Release(u8, &'static str),
    Remove(u8),
    RemoveMany(Vec<u8>),
    Increment(u8, i64, Life),
    TimeToLive(u8),
    Keys(&'static str),
    Pass(Duration),
}

/// How an entry expires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Life {
    /// After the store's default.
    Default,
    /// After this time.
    Lasting(Duration),
    /// After this time without a read.
    Sliding(Duration),
}

impl Life {
    fn options(self) -> CacheEntryOptions {
        let life = |duration| TimeToLive::new(duration).unwrap();
        match self {
            Self::Default => Expiration::StoreDefault,
            Self::Lasting(duration) => Expiration::TimeToLive(life(duration)),
            Self::Sliding(duration) => Expiration::Sliding(life(duration)),
        }
        .into()
    }
}

/// What an [`Operation`] answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the answers of the store")]
pub enum Outcome {
    Done,
    Bool(bool),
    Bools(Vec<bool>),
    Value(Option<Bytes>),
    Values(Vec<Option<Bytes>>),
    Number(i64),
    /// The key and its fencing number.
    Fence(u8, Option<u64>),
    /// What is left of a life.
    Left(Option<Duration>),
    Keys(BTreeSet<String>),
    Failed(ErrorCode),
}

/// Keys that begin alike, and one with a glob character.
pub const KEYS: [&str; 4] = ["a", "ab", "a*", "b"];

impl Operation {
    /// Runs the operation on `store`, on the keys that begin with `area`.
    ///
    /// [`Pass`](Self::Pass) is not the store's business and does nothing here.
    pub async fn run(&self, store: &dyn CacheStore, area: &str) -> Outcome {
        match self.answer(store, area).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Failed(error.code()),
        }
    }

    async fn answer(&self, store: &dyn CacheStore, area: &str) -> Result<Outcome> {
        let name = |number: u8| key(&format!("{area}{}", KEYS[usize::from(number)]));
        let names = |numbers: &[u8]| numbers.iter().copied().map(name).collect::<Vec<_>>();
        let life = |duration: Duration| TimeToLive::new(duration).unwrap();
        Ok(match self {
            Self::Get(k) => Outcome::Value(store.get(&name(*k)).await?),
            Self::GetMany(ks) => Outcome::Values(store.get_many(&names(ks)).await?),
            Self::Set(k, value, life) => {
                store.set(&name(*k), bytes(value), life.options()).await?;
                Outcome::Done
            }
            Self::SetMany(items) => {
                store.set_many(&as_items(items, name)).await?;
                Outcome::Done
            }
            Self::TryAdd(k, value, life) => {
                let added = store.try_add(&name(*k), bytes(value), life.options()).await;
                Outcome::Bool(added?)
            }
            Self::GetOrAdd(k, value, life) => {
                let key = name(*k);
                let stands = store.get_or_add(&key, bytes(value), life.options());
                Outcome::Value(stands.await?)
            }
            Self::TryReplace(k, old, new, life) => {
                let (key, old) = (name(*k), old.as_bytes());
                let replaced = store.try_replace(&key, old, bytes(new), life.options());
                Outcome::Bool(replaced.await?)
            }
            Self::TryRemove(k, old) => {
                Outcome::Bool(store.try_remove(&name(*k), old.as_bytes()).await?)
            }
            Self::TryExtend(k, old, time) => {
                let key = name(*k);
                let extended = store.try_extend(&key, old.as_bytes(), life(*time));
                Outcome::Bool(extended.await?)
            }
            Self::TryLease(k, own, time) => {
                let granted = store.try_lease(&name(*k), &token(own), life(*time)).await;
                Outcome::Fence(*k, granted?)
            }
            Self::TryRelay(k, own, new, time) => {
                let (key, own, new) = (name(*k), token(own), token(new));
                let relayed = store.try_relay(&key, &own, &new, life(*time)).await;
                Outcome::Fence(*k, relayed?)
            }
            Self::Release(k, own) => Outcome::Bool(store.release(&name(*k), &token(own)).await?),
            Self::Remove(k) => Outcome::Bool(store.remove(&name(*k)).await?),
            Self::RemoveMany(ks) => Outcome::Bools(store.remove_many(&names(ks)).await?),
            Self::Increment(k, delta, life) => {
                let sum = store.increment(&name(*k), *delta, life.options()).await;
                Outcome::Number(sum?)
            }
            Self::TimeToLive(k) => Outcome::Left(store.time_to_live(&name(*k)).await?),
            Self::Keys(prefix) => {
                let found = store.sorted_keys(&format!("{area}{prefix}")).await?;
                let short = |key: &CacheKey| key.as_str()[area.len()..].to_owned();
                Outcome::Keys(found.iter().map(short).collect())
            }
            Self::Pass(_) => Outcome::Done,
        })
    }
}

fn as_items(items: &[(u8, &'static str, Life)], name: impl Fn(u8) -> CacheKey) -> Vec<CacheItem> {
    let item = |(k, value, life): &(u8, &str, Life)| {
        CacheItem::new(name(*k), bytes(value), life.options())
    };
    items.iter().map(item).collect()
}

/// Replaces every fencing number by its rank among the numbers of its key: 1 for the smallest.
///
/// Stores may choose their numbers freely as long as they rise, so ranks are what two stores
/// have in common.
pub fn rank_fencing_numbers<'a>(outcomes: impl IntoIterator<Item = &'a mut Outcome>) {
    let mut outcomes: Vec<_> = outcomes.into_iter().collect();
    let mut numbers: HashMap<u8, BTreeSet<u64>> = HashMap::new();
    for outcome in &outcomes {
        if let Outcome::Fence(key, Some(number)) = &**outcome {
            numbers.entry(*key).or_default().insert(*number);
        }
    }
    for outcome in &mut outcomes {
        if let Outcome::Fence(key, Some(number)) = &mut **outcome {
            let smaller = numbers[key].range(..*number).count();
            *number = u64::try_from(smaller).unwrap_or(u64::MAX) + 1;
        }
    }
}
