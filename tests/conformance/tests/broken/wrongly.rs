//! The defects of single methods.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheKey, CacheStore, CachingError, Clock, LeaseToken, Result, TimeToLive,
    hours,
};
use conformance::ReferenceStore;
use futures_util::{FutureExt, StreamExt, TryStreamExt};

use crate::defect::{Defect, Method};
use crate::store::{Broken, Dropped, pause};

impl Broken {
    pub async fn read_wrongly(&self, key: &CacheKey) -> Option<Result<Option<Bytes>>> {
        match self.defect {
            Defect::EvictsOnRead => {
                let found = self.inner.get(key).await;
                let _ = self.inner.remove(key).await;
                Some(found)
            }
            Defect::CachesPerClient => {
                let cached = self.own.values.lock().get(key).cloned();
                cached.map(|value| Ok(Some(value)))
            }
            Defect::SlidesForItsWriterOnly => {
                let writer = self.shared.writers.lock().get(key).copied();
                let other = writer.is_some_and(|writer| writer != self.client);
                if other {
                    Some(self.inner.fork().get(key).await)
                } else {
                    None
                }
            }
            Defect::MixesAnswers => {
                if let Some(answer) = self.own.answer.lock().take() {
                    return Some(Ok(answer));
                }
                let answer = self.inner.get(key).await;
                let (left, own) = (answer.clone().ok()?, self.own.answer.clone());
                let dropped = Dropped(Some(move || *own.lock() = Some(left.clone())));
                tokio::task::yield_now().await;
                dropped.forget();
                Some(answer)
            }
            _ => None,
        }
    }

    pub async fn after_read(&self, key: &CacheKey, found: Option<Bytes>) -> Result<Option<Bytes>> {
        let Some(value) = found else {
            if self.defect == Defect::AnswersForOthers
                && let Some(other) = self.inner.keys("").next().await
            {
                return self.inner.get(&other?).await;
            }
            return Ok(None);
        };
        match self.defect {
            Defect::EmptyIsAbsent if value.is_empty() => return Ok(None),
            Defect::CachesPerClient => {
                let mut cached = self.own.values.lock();
                cached.insert(key.clone(), value.clone());
            }
            Defect::ReadsProlongFixedLives => {
                let life = TimeToLive::new(hours(1))?;
                self.inner.try_extend(key, &value, life).await?;
            }
            Defect::PeriodOutlivesEntry => {
                let period = self.shared.periods.lock().get(key).copied();
                if let Some(period) = period {
                    self.inner.try_extend(key, &value, period).await?;
                }
            }
            _ => {}
        }
        Ok(Some(value))
    }

    pub async fn set_wrongly(&self, key: &CacheKey, value: &Bytes) -> Option<Result<()>> {
        match self.defect {
            Defect::SendsLate => {
                let error = self.inner.ping().await.err()?;
                let mut unsent = self.shared.unsent.lock();
                unsent.push((key.clone(), value.clone()));
                Some(Err(error))
            }
            Defect::WritesHalves => {
                let options = CacheEntryOptions::default();
                let old = self.inner.get(key).await.ok()??;
                let mut half = old.to_vec();
                let middle = half.len().min(value.len()) / 2;
                half[..middle].copy_from_slice(&value[..middle]);
                let _ = self.inner.set(key, half.into(), options).await;
                pause().await;
                None
            }
            Defect::SetNeverEvicts => {
                let fork = self.inner.fork();
                let count = |store: &ReferenceStore| store.keys("").count().now_or_never();
                let _ = fork.try_remove(key, b"").await;
                let before = count(&fork);
                let _ = fork
                    .set(key, value.clone(), CacheEntryOptions::default())
                    .await;
                (count(&fork) <= before).then(|| Err(CachingError::store_full("no room")))
            }
            _ => None,
        }
    }

    pub fn empty_batch(&self) -> Result<()> {
        match self.defect {
            Defect::EmptyBatchFails => Err(CachingError::internal("the batch is empty")),
            _ => Ok(()),
        }
    }

    /// Takes the room of what was removed for good.
    pub async fn keep_room(&self, removed: bool, value: Bytes) -> Result<()> {
        if removed && self.defect == Defect::KeepsRoomOfTheGone {
            let number = self.shared.counter.fetch_add(1, Ordering::SeqCst);
            let key = CacheKey::new(format!("gone{number}"))?;
            let options = CacheEntryOptions::default();
            self.inner.try_add(&key, value, options).await?;
        }
        Ok(())
    }

    pub fn evicts_for_a_lease(&self) -> bool {
        self.defect == Defect::EvictsForLeases
            && self.shared.counter.fetch_add(1, Ordering::SeqCst) < 10
    }

    pub fn lease_life(&self, life: TimeToLive) -> Result<TimeToLive> {
        match self.defect {
            Defect::LeaseLivesForEver => Ok(TimeToLive::MAX),
            _ => self.life(life),
        }
    }

    pub async fn lease_wrongly(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        life: TimeToLive,
    ) -> Option<Result<Option<u64>>> {
        let fork = self.inner.fork();
        if self.defect == Defect::NoReserve {
            let value = Bytes::copy_from_slice(token.as_bytes());
            let full = fork.try_add(key, value, life.into()).await;
            return full.err().map(Err);
        }
        let stands = fork.get(key).await.ok()??;
        if stands != token.as_bytes() {
            return None;
        }
        match self.defect {
            Defect::SameTokenIsRefused => Some(Ok(None)),
            Defect::SameTokenGetsANewNumber => {
                Some(self.inner.try_relay(key, token, token, life).await)
            }
            Defect::SameTokenGetsNoNewLife => Some(fork.try_lease(key, token, life).await),
            _ => None,
        }
    }

    /// The fencing number that is given where the reference gives `granted`.
    pub fn number(&self, key: &CacheKey, granted: Option<u64>) -> Option<u64> {
        let numbers = match self.defect {
            Defect::NumberPerClient => &self.own.numbers,
            _ => &self.shared.numbers,
        };
        let mut numbers = numbers.lock();
        let (last, count) = numbers.entry(key.clone()).or_default();
        match (self.defect, granted) {
            (Defect::NumberIsConstant, Some(_)) => Some(7),
            (Defect::NumberIsTheClock, Some(_)) => {
                u64::try_from(self.clock.unix_time().as_micros()).ok()
            }
            (Defect::NumberPerClient | Defect::NumberStartsAgain, Some(number)) => {
                if *last != number {
                    (*last, *count) = (number, *count + 1);
                }
                Some(*count)
            }
            (Defect::FailureUsesANumber, None) => {
                *count += 1;
                None
            }
            (Defect::FailureUsesANumber, Some(number)) => Some(number + *count),
            (_, granted) => granted,
        }
    }

    pub async fn count_wrongly(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Option<Result<i64>> {
        let store = &self.inner;
        let stands = store.fork().get(key).await.ok()?;
        let text = String::from_utf8_lossy(stands.as_deref().unwrap_or(b"0")).into_owned();
        let sum = match self.defect {
            Defect::CountsFromOne if stands.is_none() => delta.checked_add(1)?,
            Defect::CountsLeniently => text.trim().parse::<i64>().ok()?.checked_add(delta)?,
            Defect::CountsBytes => {
                let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
                digits.parse::<i64>().ok()?.checked_add(delta)?
            }
            Defect::CountsAsFloat => (text.parse::<i64>().ok()? as f64 + delta as f64) as i64,
            Defect::WrapsAround => text.parse::<i64>().ok()?.wrapping_add(delta),
            Defect::OptionsAtEachCount => text.parse::<i64>().ok()?.checked_add(delta)?,
            Defect::CountsPerClient => {
                let mut numbers = self.own.numbers.lock();
                let (sum, _) = numbers.entry(key.clone()).or_default();
                *sum = sum.wrapping_add_signed(delta);
                return Some(Ok(sum.cast_signed()));
            }
            Defect::CountsTwiceWhenCancelled => {
                let (store, key) = (store.clone(), key.clone());
                let twice = Dropped(Some(move || {
                    let _ = store.increment(&key, delta * 2, options).now_or_never();
                }));
                tokio::task::yield_now().await;
                twice.forget();
                return None;
            }
            _ => return None,
        };
        let written = store.set(key, sum.to_string().into(), options).await;
        Some(written.map(|()| sum))
    }

    pub fn list_wrongly(&self, prefix: &str) -> Result<Vec<CacheKey>> {
        self.arrive().now_or_never().unwrap_or(Ok(()))?;
        let collect = |store: &ReferenceStore, prefix: &str| -> Result<Vec<CacheKey>> {
            let listing = store.keys(prefix).try_collect().now_or_never();
            listing.unwrap_or_else(|| Ok(Vec::new()))
        };
        let away = self
            .inner
            .ping()
            .now_or_never()
            .is_some_and(|answer| answer.is_err());
        if away && self.defect == Defect::AbsentWhenAway(Method::Keys) {
            return Ok(Vec::new());
        }
        let own = self.prefix.as_ref().map_or("", |prefix| prefix.as_str());
        let mut listed = match self.defect {
            Defect::KeysIsGlob => {
                let pattern = format!("{prefix}*");
                let mut all = collect(&self.inner, "")?;
                all.retain(|key| is_like(key.as_str(), &pattern));
                all
            }
            Defect::PrefixIsGlob if self.prefix.is_some() => {
                let pattern = format!("{own}:{prefix}*");
                let mut all = collect(&self.everything, "")?;
                all.retain(|key| is_like(key.as_str(), &pattern));
                let rest =
                    |key: CacheKey| key.as_str().split_once(':').map(|(_, key)| key.to_owned());
                all.into_iter()
                    .filter_map(rest)
                    .map(CacheKey::new)
                    .collect::<Result<_>>()?
            }
            Defect::JoinsPrefixWithoutColon => {
                let all = collect(&self.inner, &format!("{own}{prefix}"))?;
                let rest = all
                    .iter()
                    .map(|key| CacheKey::new(&key.as_str()[own.len()..]));
                rest.collect::<Result<_>>()?
            }
            Defect::KeysIgnoresPrefix => collect(&self.inner, "")?,
            _ => collect(&self.inner, prefix)?,
        };
        self.spoil_listing(prefix, &mut listed)?;
        Ok(listed)
    }

    fn spoil_listing(&self, prefix: &str, listed: &mut Vec<CacheKey>) -> Result<()> {
        match self.defect {
            Defect::KeysChecksPrefix if !prefix.is_empty() => {
                CacheKey::new(prefix)?;
            }
            Defect::KeysStopsEarly => listed.truncate(1000),
            Defect::KeysRepeats if listed.len() > 1000 => listed.push(listed[0].clone()),
            Defect::KeysRemembers => {
                let mut remembered = self.own.listed.lock();
                *listed = remembered
                    .entry(prefix.to_owned())
                    .or_insert(listed.clone())
                    .clone();
            }
            Defect::KeysHidesProtected => {
                let writers = self.shared.writers.lock();
                listed.retain(|key| writers.contains_key(key));
            }
            Defect::ShowsPrefix => {
                if let Some(prefix) = &self.prefix {
                    for key in listed {
                        *key = CacheKey::new(prefix.stored(key))?;
                    }
                }
            }
            Defect::Revives(Method::Keys) => {
                listed.extend(self.shared.values.lock().keys().cloned());
                listed.sort_unstable();
                listed.dedup();
            }
            Defect::Prolongs(Method::Keys) => {
                for key in &*listed {
                    let _ = self.inner.get(key).now_or_never();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The key with its prefix, as watchers of all clients are told apart by.
    pub fn full_name(&self, key: &CacheKey) -> CacheKey {
        let stored = self.prefix.as_ref().map(|prefix| prefix.stored(key));
        stored
            .and_then(|text| CacheKey::new(text).ok())
            .unwrap_or_else(|| key.clone())
    }
}

/// Whether `text` is like the glob `pattern`, with `*`, `?` and sets.
fn is_like(text: &str, pattern: &str) -> bool {
    let (mut letters, mut marks) = (text.chars(), pattern.chars());
    match (marks.next(), letters.next()) {
        (None, None) => true,
        (Some('*'), first) => {
            is_like(text, marks.as_str()) || (first.is_some() && is_like(letters.as_str(), pattern))
        }
        (Some('?'), Some(_)) => is_like(letters.as_str(), marks.as_str()),
        (Some('['), Some(letter)) => match marks.as_str().split_once(']') {
            Some((set, rest)) => set.contains(letter) && is_like(letters.as_str(), rest),
            None => false,
        },
        (Some('\\'), Some(letter)) => {
            marks.next() == Some(letter) && is_like(letters.as_str(), marks.as_str())
        }
        (Some(mark), Some(letter)) => mark == letter && is_like(letters.as_str(), marks.as_str()),
        _ => false,
    }
}
