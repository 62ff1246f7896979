//! A store with one defect, around the reference store.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheKey, CacheStore, CachingError, Clock, Expiration, KeyPrefix,
    LeaseToken, ManualClock, Result, TimeToLive, days, hours,
};
use conformance::ReferenceStore;
use futures_util::FutureExt;
use parking_lot::Mutex;

use crate::defect::{Defect, Method};
use crate::watchers::Watchers;

/// A client of a broken store.
pub struct Broken {
    pub inner: ReferenceStore,
    /// The same store without a prefix.
    pub everything: ReferenceStore,
    pub prefix: Option<KeyPrefix>,
    pub clock: ManualClock,
    pub shared: Arc<Shared>,
    /// What this client alone remembers.
    pub own: Shared,
    pub defect: Defect,
    pub client: usize,
}

/// What a broken store remembers beside its entries.
#[derive(Default)]
pub struct Shared {
    pub values: Mutex<HashMap<CacheKey, Bytes>>,
    pub periods: Mutex<HashMap<CacheKey, TimeToLive>>,
    pub deadlines: Mutex<Vec<(CacheKey, Duration)>>,
    pub late: Mutex<Vec<(CacheKey, Outcome)>>,
    pub unsent: Mutex<Vec<(CacheKey, Bytes)>>,
    pub numbers: Mutex<HashMap<CacheKey, (u64, u64)>>,
    pub writers: Mutex<HashMap<CacheKey, usize>>,
    pub listed: Mutex<HashMap<String, Vec<CacheKey>>>,
    pub answer: Arc<Mutex<Option<Option<Bytes>>>>,
    pub counter: AtomicUsize,
    pub was_away: AtomicBool,
    pub watchers: Arc<Watchers>,
}

/// What a call leaves under a key.
pub type Outcome = Option<(Bytes, TimeToLive)>;

/// Runs `$call` on a store, with the defects that any method can have.
macro_rules! act {
    ($self:ident, $method:ident, $key:ident, |$store:ident| $call:expr) => {{
        let method = Method::$method;
        let $key = &$self.enter(method, $key).await?;
        let answer = match $self.defect {
            Defect::NoEffect(m) if m == method => {
                let $store = &$self.inner.fork();
                $call.await
            }
            Defect::NotAtomic(m) if m == method => {
                let fork = $self.inner.fork();
                let $store = &fork;
                let decided = $call.await;
                pause().await;
                let $store = &$self.inner;
                let _ = $call.await;
                decided
            }
            Defect::Late(m) if m == method => {
                let fork = $self.inner.fork();
                let $store = &fork;
                let _ = $call.await;
                let late = $self.late($key, &fork);
                tokio::task::yield_now().await;
                late.forget();
                let $store = &$self.inner;
                $call.await
            }
            _ => {
                let $store = &$self.target(method, $key);
                $call.await
            }
        };
        $self.leave(method, $key).await;
        answer
    }};
}
pub(crate) use act;

/// Lets other tasks run for a while.
pub async fn pause() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

impl Broken {
    /// What comes before every call on one key; gives the key that is used.
    pub async fn enter(&self, method: Method, key: &CacheKey) -> Result<CacheKey> {
        self.arrive().await?;
        let key = self.name(key);
        if self.defect == Defect::Prolongs(method) {
            let _ = self.inner.get(&key).await;
        }
        if self.defect == Defect::Revives(method) {
            let remembered = self.shared.values.lock().get(&key).cloned();
            if let (None, Some(value)) = (self.inner.time_to_live(&key).await?, remembered) {
                let life = TimeToLive::new(hours(1))?;
                self.inner.set(&key, value, life.into()).await?;
            }
        }
        if self.defect == Defect::LateCleaner {
            self.clean_late(&key).await?;
        }
        Ok(key)
    }

    /// What comes before every call.
    pub async fn arrive(&self) -> Result<()> {
        let away = self.inner.ping().await.is_err();
        if away {
            self.shared.was_away.store(true, Ordering::SeqCst);
        }
        if self.defect == Defect::NeverComesBack && self.shared.was_away.load(Ordering::SeqCst) {
            return Err(CachingError::unavailable("it never comes back"));
        }
        if !away {
            let unsent = std::mem::take(&mut *self.shared.unsent.lock());
            for (key, value) in unsent {
                self.inner
                    .set(&key, value, CacheEntryOptions::default())
                    .await?;
            }
        }
        Ok(())
    }

    /// What comes after every call on one key.
    pub async fn leave(&self, method: Method, key: &CacheKey) {
        if self.defect == Defect::Unprotected(method)
            && let Some((value, left)) = self.standing(&self.inner, key).await
        {
            let _ = self.inner.remove(key).await;
            let _ = self.inner.set(key, value, left.into()).await;
        }
        if matches!(self.defect, Defect::Revives(_))
            && let Some((value, _)) = self.standing(&self.inner, key).await
        {
            self.shared.values.lock().insert(key.clone(), value);
        }
        if matches!(method, Method::Set | Method::SetMany | Method::Remove) {
            self.execute_late().await;
        }
    }

    async fn standing(&self, store: &ReferenceStore, key: &CacheKey) -> Outcome {
        let value = store.fork().get(key).await.ok()??;
        let left = store.time_to_live(key).await.ok()??;
        Some((value, TimeToLive::new(left).ok()?))
    }

    async fn clean_late(&self, key: &CacheKey) -> Result<()> {
        let now = self.clock.monotonic();
        let due = {
            let mut deadlines = self.shared.deadlines.lock();
            let before = deadlines.len();
            deadlines.retain(|(of, end)| of != key || *end + Duration::from_millis(200) > now);
            deadlines.len() < before
        };
        if due {
            self.inner.remove(key).await?;
        }
        Ok(())
    }

    async fn execute_late(&self) {
        let late = std::mem::take(&mut *self.shared.late.lock());
        for (key, outcome) in late {
            let _ = match outcome {
                Some((value, left)) => self.inner.set(&key, value, left.into()).await,
                None => self.inner.remove(&key).await.map(drop),
            };
        }
    }

    /// Remembers what `fork` holds under `key` if the call is dropped.
    pub fn late(&self, key: &CacheKey, fork: &ReferenceStore) -> Dropped<impl FnMut()> {
        let outcome = self.standing(fork, key).now_or_never().flatten();
        let (shared, key) = (self.shared.clone(), key.clone());
        Dropped(Some(move || {
            shared.late.lock().push((key.clone(), outcome.clone()));
        }))
    }

    /// The store that `method` works on.
    pub fn target(&self, method: Method, key: &CacheKey) -> ReferenceStore {
        let kind = self.inner.time_to_live(key).now_or_never();
        let code = kind.and_then(|left| left.err()).map(|error| error.code());
        let blind = match code {
            Some(caching_abstractions::ErrorCode::WrongKind) => Defect::ForeignIsAbsent(method),
            Some(_) => Defect::AbsentWhenAway(method),
            None => return self.inner.clone(),
        };
        if self.defect == blind {
            ReferenceStore::new()
        } else {
            self.inner.clone()
        }
    }

    /// The key that is used for `key`.
    pub fn name(&self, key: &CacheKey) -> CacheKey {
        let text = key.as_str();
        let text = match (self.defect, &self.prefix) {
            (Defect::CutsKeys, _) => text.chars().take(255).collect(),
            (Defect::FoldsCase, _) => text.to_lowercase(),
            (Defect::DropsBraces, _) => {
                let rest = text.replace(['{', '}'], "");
                if rest.is_empty() { "-".into() } else { rest }
            }
            (Defect::JoinsPrefixWithoutColon, Some(prefix)) => format!("{prefix}{text}"),
            _ => return key.clone(),
        };
        CacheKey::new(text).unwrap()
    }

    /// The value that is written for `value`.
    pub fn value(&self, value: Bytes) -> Bytes {
        match self.defect {
            Defect::TextOnly => String::from_utf8_lossy(&value).into_owned().into(),
            Defect::CutsValues => value.slice(..value.len().min(65_536)),
            _ => value,
        }
    }

    /// The life that is written for `life`.
    pub fn life(&self, life: TimeToLive) -> Result<TimeToLive> {
        let long = life.as_duration() > days(50 * 365);
        match self.defect {
            Defect::CenturyFails if long => Err(CachingError::internal("out of range")),
            Defect::MillisecondIsForEver if life == TimeToLive::MIN => Ok(TimeToLive::MAX),
            Defect::SecondsOnly => TimeToLive::from_millis((life.as_millis() / 1000 * 1000).max(1)),
            _ => Ok(life),
        }
    }

    /// The options that `method` writes `key` with, where it was given `options`.
    pub async fn options(
        &self,
        method: Method,
        key: &CacheKey,
        options: CacheEntryOptions,
    ) -> Result<CacheEntryOptions> {
        if self.defect == Defect::IgnoresOptions(method) {
            return CacheEntryOptions::time_to_live(hours(1));
        }
        let expiration = match options.expiration() {
            Expiration::TimeToLive(life) => {
                let life = self.life(life)?;
                let old = self
                    .inner
                    .time_to_live(&self.name(key))
                    .await
                    .unwrap_or(None);
                let old = old.and_then(|left| TimeToLive::new(left).ok());
                Expiration::TimeToLive(match (self.defect, old) {
                    (Defect::KeepsShorterLife, Some(old)) => life.min(old),
                    (Defect::KeepsLongerLife, Some(old)) => life.max(old),
                    _ => life,
                })
            }
            Expiration::Sliding(period) => self.sliding(method, key, self.life(period)?)?,
            Expiration::StoreDefault => Expiration::StoreDefault,
        };
        if let Expiration::TimeToLive(life) = expiration {
            let end = self.clock.monotonic() + life.as_duration();
            self.shared.deadlines.lock().push((key.clone(), end));
        }
        self.shared.writers.lock().insert(key.clone(), self.client);
        let written = CacheEntryOptions::from(expiration);
        let essential = options.is_essential() && self.defect != Defect::NoReserve;
        Ok(if essential {
            written.essential()
        } else {
            written
        })
    }

    fn sliding(&self, method: Method, key: &CacheKey, period: TimeToLive) -> Result<Expiration> {
        let mut periods = self.shared.periods.lock();
        periods.entry(key.clone()).or_insert(period);
        Ok(match self.defect {
            Defect::NeverSlides => Expiration::TimeToLive(period),
            Defect::SlidesAfterSetOnly if method != Method::Set => Expiration::TimeToLive(period),
            Defect::SlidingNeverEnds => {
                Expiration::Sliding(TimeToLive::from_millis(period.as_millis() * 100)?)
            }
            _ => Expiration::Sliding(period),
        })
    }

    /// What `expected` is taken for, where `key` holds something that looks alike.
    pub async fn expected(&self, method: Method, key: &CacheKey, expected: &[u8]) -> Bytes {
        let own = Bytes::copy_from_slice(expected);
        let Some((found, _)) = self.standing(&self.inner, &self.name(key)).await else {
            return own;
        };
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let alike = match self.defect {
            Defect::Unconditional(m) => m == method,
            Defect::ComparesBeginnings => found.starts_with(expected),
            Defect::ComparesWithoutCase => found.eq_ignore_ascii_case(expected),
            Defect::ComparesText => text(&found) == text(expected),
            _ => false,
        };
        if alike { found } else { own }
    }

    /// As [`expected`](Self::expected), for the token of a lease.
    pub async fn token(&self, method: Method, key: &CacheKey, token: &LeaseToken) -> LeaseToken {
        let expected = self.expected(method, key, token.as_bytes()).await;
        let text = String::from_utf8_lossy(&expected).into_owned();
        let text = match self.defect {
            Defect::WrapsToken if text == token.as_str() => format!("lease:{text}"),
            _ => text,
        };
        LeaseToken::new(text).unwrap_or_else(|_| token.clone())
    }
}

/// Does something if it is dropped before it is told to forget it.
pub struct Dropped<F: FnMut()>(pub Option<F>);

impl<F: FnMut()> Dropped<F> {
    pub fn forget(mut self) {
        self.0 = None;
    }
}

impl<F: FnMut()> Drop for Dropped<F> {
    fn drop(&mut self) {
        if let Some(act) = &mut self.0 {
            act();
        }
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broken({:?})", self.defect)
    }
}
