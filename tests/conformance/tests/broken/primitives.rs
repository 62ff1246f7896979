//! The methods of a broken store.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheItem, CacheKey, CacheStore, CachingError, ErrorCode, LeaseToken,
    Result, TimeToLive, WakeHints,
};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};

use crate::defect::{Defect, Method};
use crate::store::{Broken, Dropped, act, pause};
use crate::watchers::is_about_watching;

#[async_trait]
impl CacheStore for Broken {
    async fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        if let Some(answer) = self.read_wrongly(key).await {
            return answer;
        }
        let found = act!(self, Get, key, |store| store.get(key))?;
        self.after_read(key, found).await
    }

    async fn get_many(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>> {
        if keys.is_empty() {
            return self.empty_batch().map(|()| Vec::new());
        }
        let mut found = Vec::new();
        for key in keys {
            let one = act!(self, GetMany, key, |store| store.get(key))?;
            found.push(self.after_read(key, one).await?);
        }
        match self.defect {
            Defect::SortsGetMany => found.sort(),
            Defect::CutsBatches => found.truncate(500),
            _ => {}
        }
        Ok(found)
    }

    async fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        if let Some(answer) = self.set_wrongly(key, &value).await {
            return answer;
        }
        let options = self.options(Method::Set, key, options).await?;
        let value = self.value(value);
        match self.defect {
            Defect::SetKeepsOld => {
                return self.inner.get_or_add(key, value, options).await.map(drop);
            }
            Defect::SetTakesProtectedRoom => {
                self.inner.remove(key).await?;
                return self.inner.try_add(key, value, options).await.map(drop);
            }
            _ => {}
        }
        let result = act!(self, Set, key, |store| store.set(
            key,
            value.clone(),
            options
        ));
        if self.defect == Defect::LargeSetDestroys && result.is_err() {
            self.inner.remove(key).await?;
        }
        result
    }

    async fn set_many(&self, items: &[CacheItem]) -> Result<()> {
        if items.is_empty() {
            return self.empty_batch();
        }
        let mut items = items.to_vec();
        match self.defect {
            Defect::FirstOfEqualKeysCounts => items.reverse(),
            Defect::OneLifeForABatch => {
                let options = items[0].options;
                items.iter_mut().for_each(|item| item.options = options);
            }
            _ => {}
        }
        for CacheItem {
            key,
            value,
            options,
        } in items
        {
            let (key, value) = (&key, self.value(value));
            let options = self.options(Method::SetMany, key, options).await?;
            act!(self, SetMany, key, |store| store.set(
                key,
                value.clone(),
                options
            ))?;
        }
        Ok(())
    }

    async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let options = self.options(Method::TryAdd, key, options).await?;
        let value = self.value(value);
        if self.defect == Defect::Unconditional(Method::TryAdd) {
            self.inner.set(key, value, options).await?;
            return Ok(true);
        }
        act!(self, TryAdd, key, |store| store.try_add(
            key,
            value.clone(),
            options
        ))
    }

    async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<Option<Bytes>> {
        let options = self.options(Method::GetOrAdd, key, options).await?;
        let value = self.value(value);
        if self.defect == Defect::Unconditional(Method::GetOrAdd) {
            let stood = self.inner.get(key).await?;
            self.inner.set(key, value, options).await?;
            return Ok(stood);
        }
        let call = value.clone();
        let stood = act!(self, GetOrAdd, key, |store| store.get_or_add(
            key,
            call.clone(),
            options
        ))?;
        Ok(match self.defect {
            Defect::GetOrAddGivesTheNewValue => stood.or(Some(value)),
            Defect::EmptyIsAbsent => stood.filter(|value| !value.is_empty()),
            _ => stood,
        })
    }

    async fn try_replace(
        &self,
        key: &CacheKey,
        expected: &[u8],
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Result<bool> {
        let options = self.options(Method::TryReplace, key, options).await?;
        let expected = &self.expected(Method::TryReplace, key, expected).await;
        let value = self.value(value);
        match self.defect {
            Defect::ReplaceCreates if self.inner.try_add(key, value.clone(), options).await? => {
                return Ok(true);
            }
            Defect::ReplaceOfEqualDoesNothing if value == *expected => return Ok(true),
            _ => {}
        }
        let result = act!(self, TryReplace, key, |store| store.try_replace(
            key,
            expected,
            value.clone(),
            options
        ));
        if self.defect == Defect::RefusalDestroys && result.is_err() {
            self.inner.remove(key).await?;
        }
        result
    }

    async fn try_remove(&self, key: &CacheKey, expected: &[u8]) -> Result<bool> {
        let expected = &self.expected(Method::TryRemove, key, expected).await;
        let removed = act!(self, TryRemove, key, |store| store
            .try_remove(key, expected))?;
        self.keep_room(removed, expected.clone()).await?;
        Ok(removed)
    }

    async fn try_extend(
        &self,
        key: &CacheKey,
        expected: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<bool> {
        let life = self.life(time_to_live)?;
        let expected = &self.expected(Method::TryExtend, key, expected).await;
        let left = self.inner.time_to_live(key).await.unwrap_or(None);
        match self.defect {
            Defect::ExtendOnlyProlongs if left > Some(life.as_duration()) => return Ok(true),
            Defect::ExtendCreates if left.is_none() => {
                self.inner.set(key, expected.clone(), life.into()).await?;
                return Ok(true);
            }
            Defect::ExtendRaces => {
                let matches = self.inner.get(key).await?.as_ref() == Some(expected);
                pause().await;
                if matches {
                    self.inner.set(key, expected.clone(), life.into()).await?;
                }
                return Ok(matches);
            }
            _ => {}
        }
        act!(self, TryExtend, key, |store| store
            .try_extend(key, expected, life))
    }

    async fn try_lease(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let token = &self.token(Method::TryLease, key, token).await;
        let life = self.lease_life(time_to_live)?;
        if let Some(answer) = self.lease_wrongly(key, token, life).await {
            return answer;
        }
        let granted = act!(self, TryLease, key, |store| store
            .try_lease(key, token, life));
        let granted = match granted {
            Err(error) if self.evicts_for_a_lease() => {
                let victim = self.inner.keys("").next().await.ok_or(error)??;
                self.inner.remove(&victim).await?;
                self.inner.try_lease(key, token, life).await?
            }
            granted => granted?,
        };
        if self.defect == Defect::LeavesTraces {
            let trace = CacheKey::new(format!("fence:{key}"))?;
            self.inner.set(&trace, Bytes::new(), life.into()).await?;
        }
        Ok(self.number(key, granted))
    }

    async fn try_relay(
        &self,
        key: &CacheKey,
        token: &LeaseToken,
        new_token: &LeaseToken,
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        let token = &self.token(Method::TryRelay, key, token).await;
        let new_token = match self.defect {
            Defect::WrapsToken => LeaseToken::new(format!("lease:{}", new_token.as_str()))?,
            _ => new_token.clone(),
        };
        let (new, life) = (&new_token, self.lease_life(time_to_live)?);
        let before = self
            .inner
            .fork()
            .try_lease(key, token, life)
            .await
            .unwrap_or(None);
        let relayed = act!(self, TryRelay, key, |store| store
            .try_relay(key, token, new, life))?;
        if self.defect == Defect::RelayKeepsNumber && relayed.is_some() {
            return Ok(before);
        }
        Ok(self.number(key, relayed))
    }

    async fn release(&self, key: &CacheKey, token: &LeaseToken) -> Result<bool> {
        let token = &self.token(Method::Release, key, token).await;
        if !is_about_watching(self.defect) {
            return act!(self, Release, key, |store| store.release(key, token));
        }
        let watchers = &self.shared.watchers;
        let full = self.full_name(key);
        if self.defect == Defect::WakesTooEarly {
            watchers.wake(self.defect, self.client, &full).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let released = self.inner.try_remove(key, token.as_bytes()).await?;
        if released && self.defect != Defect::WakesTooEarly {
            watchers.wake(self.defect, self.client, &full).await;
        }
        Ok(released)
    }

    async fn watch(&self, key: &CacheKey) -> Result<WakeHints> {
        if is_about_watching(self.defect) {
            let full = self.full_name(key);
            return Ok(self.shared.watchers.watch(self.defect, self.client, &full));
        }
        let was_away = self.shared.was_away.load(Ordering::SeqCst);
        if self.defect == Defect::ForgetsWatchers && was_away {
            return Ok(stream::pending().boxed());
        }
        if self.defect == Defect::WatchWrites {
            let options = CacheEntryOptions::default();
            self.inner.get_or_add(key, Bytes::new(), options).await?;
        }
        act!(self, Watch, key, |store| store.watch(key))
    }

    async fn remove(&self, key: &CacheKey) -> Result<bool> {
        let value = self.inner.fork().get(key).await.unwrap_or_default();
        let removed = act!(self, Remove, key, |store| store.remove(key))?;
        self.keep_room(removed, value.unwrap_or_default()).await?;
        if self.defect == Defect::RemovesByPrefix {
            let alike: Vec<_> = self.inner.keys(key.as_str()).collect().await;
            for key in alike {
                self.inner.remove(&key?).await?;
            }
        }
        Ok(removed || self.defect == Defect::RemoveIsAlwaysTrue)
    }

    async fn remove_many(&self, keys: &[CacheKey]) -> Result<Vec<bool>> {
        if keys.is_empty() {
            return self.empty_batch().map(|()| Vec::new());
        }
        let stood = self.inner.fork().get_many(keys).await.unwrap_or_default();
        let mut removed = Vec::new();
        for key in keys {
            removed.push(act!(self, RemoveMany, key, |store| store.remove(key))?);
        }
        match self.defect {
            Defect::SortsRemoveMany => removed.sort_unstable(),
            Defect::RemoveManyIsTrueTwice => {
                return Ok(stood.iter().map(Option::is_some).collect());
            }
            _ => {}
        }
        Ok(removed)
    }

    async fn increment(
        &self,
        key: &CacheKey,
        delta: i64,
        options: CacheEntryOptions,
    ) -> Result<i64> {
        let options = self.options(Method::Increment, key, options).await?;
        if let Some(answer) = self.count_wrongly(key, delta, options).await {
            return answer;
        }
        let result = act!(self, Increment, key, |store| store
            .increment(key, delta, options));
        match result {
            Err(_) if self.defect == Defect::ErrorShowsValue => {
                let value = self.inner.get(key).await?.unwrap_or_default();
                let detail = format!("{value:?} is no number");
                Err(CachingError::new(ErrorCode::WrongKind, detail))
            }
            result => result,
        }
    }

    async fn time_to_live(&self, key: &CacheKey) -> Result<Option<Duration>> {
        let left = act!(self, TimeToLive, key, |store| store.time_to_live(key))?;
        Ok(match self.defect {
            Defect::TimeToLiveOfAbsentIsZero => left.or(Some(Duration::ZERO)),
            Defect::TimeToLiveStandsStill => {
                let mut first = self.shared.numbers.lock();
                left.map(|left| {
                    let nanos = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
                    let first = first.entry(key.clone()).or_insert((nanos, 0));
                    Duration::from_nanos(first.0)
                })
            }
            _ => left,
        })
    }

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        match self.list_wrongly(prefix) {
            Err(error) => stream::iter([Err(error)]).boxed(),
            Ok(listed) if self.defect == Defect::KeysTakesKeysAway => {
                let (store, first) = (self.inner.clone(), listed.first().cloned());
                let broken_off = Dropped(Some(move || {
                    if let Some(first) = &first {
                        let _ = store.remove(first).now_or_never();
                    }
                }));
                let listing = (listed.into_iter(), Some(broken_off));
                stream::unfold(listing, |(mut rest, mut broken_off)| async move {
                    let next = rest.next();
                    if next.is_none() {
                        broken_off.take().into_iter().for_each(Dropped::forget);
                    }
                    next.map(|key| (Ok(key), (rest, broken_off)))
                })
                .boxed()
            }
            Ok(listed) => stream::iter(listed.into_iter().map(Ok)).boxed(),
        }
    }

    async fn ping(&self) -> Result<()> {
        self.arrive().await?;
        if self.defect == Defect::PingRemoves {
            let first = self.inner.keys("").next().await;
            if let Some(first) = first {
                self.inner.remove(&first?).await?;
            }
        }
        self.inner.ping().await
    }
}
