mod instruments;

use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};

use super::{CacheItem, CacheStore, LeaseToken, WakeHints};
use crate::error::Result;
use crate::expiration::{CacheEntryOptions, TimeToLive};
use crate::key::CacheKey;
use instruments::{Instruments, Operation, Outcome, Timing};

/// A store that counts and times what is asked of another one, and changes nothing.
///
/// - `xihan_caching_store_operations_total` and `xihan_caching_store_operation_seconds`, both with
///   the labels `provider`, `operation` (the method's name) and `outcome`.
/// - Outcomes: `ok`; `miss` (none or `false`, and the value of somebody else for `get_or_add`);
///   `unavailable`, `full`, `conflict` and `error` for errors; `cancelled` for a dropped future.
/// - No label holds a key, a token or a value.
/// - `keys` is timed to the end of its stream, `watch` to the registration.
/// - Without a metrics recorder it hands the other store's futures on as they are. A recorder that
///   is installed later is found.
#[derive(Clone)]
pub struct MeteredStore {
    inner: Arc<dyn CacheStore>,
    instruments: Arc<Instruments>,
}

impl MeteredStore {
    /// Measures `inner` under the name of its provider.
    pub fn new(inner: Arc<dyn CacheStore>, provider: &'static str) -> Self {
        Self {
            inner,
            instruments: Arc::new(Instruments::new(provider)),
        }
    }

    /// The store that is measured.
    pub fn inner(&self) -> &Arc<dyn CacheStore> {
        &self.inner
    }

    async fn measure<T>(
        &self,
        operation: Operation,
        call: impl Future<Output = Result<T>>,
        is_hit: fn(&T) -> bool,
    ) -> Result<T> {
        let timing = Timing::start(&*self.instruments, operation);
        let result = call.await;
        timing.finish(match &result {
            Ok(answer) if is_hit(answer) => Outcome::Ok,
            Ok(_) => Outcome::Miss,
            Err(error) => Outcome::of(error),
        });
        result
    }
}

impl fmt::Debug for MeteredStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MeteredStore").field(&self.inner).finish()
    }
}

/// An answer that is neither a hit nor a miss.
fn always<T>(_: &T) -> bool {
    true
}

type Call<'f, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'f>>;

/// One method of the store: its name, its lifetimes, its arguments and its answer; the label and
/// what counts as a hit.
///
/// Written as `async_trait` would write it, so that the inner store's future is handed on as it is
/// when nobody measures.
macro_rules! forward {
    (
        $name:ident<$($life:lifetime),*>($($argument:ident: $type:ty),*) -> $answer:ty,
        $operation:ident, $is_hit:expr
    ) => {
        fn $name<'s, $($life,)* 'f>(&'s self, $($argument: $type),*) -> Call<'f, $answer>
        where
            's: 'f,
            $($life: 'f,)*
            Self: 'f,
        {
            let call = self.inner.$name($($argument),*);
            if !self.instruments.is_recording() {
                return call;
            }
            Box::pin(self.measure(Operation::$operation, call, $is_hit))
        }
    };
}

#[rustfmt::skip]
impl CacheStore for MeteredStore {
    forward!(get<'k>(key: &'k CacheKey) -> Option<Bytes>, Get, Option::is_some);
    forward!(get_many<'k>(keys: &'k [CacheKey]) -> Vec<Option<Bytes>>, GetMany, always);
    forward!(
        set<'k>(key: &'k CacheKey, value: Bytes, options: CacheEntryOptions) -> (),
        Set, always
    );
    forward!(set_many<'k>(items: &'k [CacheItem]) -> (), SetMany, always);
    forward!(
        try_add<'k>(key: &'k CacheKey, value: Bytes, options: CacheEntryOptions) -> bool,
        TryAdd, bool::clone
    );
    forward!(
        get_or_add<'k>(key: &'k CacheKey, value: Bytes, options: CacheEntryOptions)
            -> Option<Bytes>,
        GetOrAdd, Option::is_none
    );
    forward!(
        try_replace<'k, 'e>(
            key: &'k CacheKey, expected: &'e [u8], value: Bytes, options: CacheEntryOptions
        ) -> bool,
        TryReplace, bool::clone
    );
    forward!(
        try_remove<'k, 'e>(key: &'k CacheKey, expected: &'e [u8]) -> bool,
        TryRemove, bool::clone
    );
    forward!(
        try_extend<'k, 'e>(key: &'k CacheKey, expected: &'e [u8], time_to_live: TimeToLive)
            -> bool,
        TryExtend, bool::clone
    );
    forward!(
        try_lease<'k, 't>(key: &'k CacheKey, token: &'t LeaseToken, time_to_live: TimeToLive)
            -> Option<u64>,
        TryLease, Option::is_some
    );
    forward!(
        try_relay<'k, 't, 'n>(
            key: &'k CacheKey,
            token: &'t LeaseToken,
            new_token: &'n LeaseToken,
            time_to_live: TimeToLive
        ) -> Option<u64>,
        TryRelay, Option::is_some
    );
    forward!(
        release<'k, 't>(key: &'k CacheKey, token: &'t LeaseToken) -> bool,
        Release, bool::clone
    );
    forward!(watch<'k>(key: &'k CacheKey) -> WakeHints, Watch, always);
    forward!(remove<'k>(key: &'k CacheKey) -> bool, Remove, bool::clone);
    forward!(remove_many<'k>(keys: &'k [CacheKey]) -> Vec<bool>, RemoveMany, always);
    forward!(
        increment<'k>(key: &'k CacheKey, delta: i64, options: CacheEntryOptions) -> i64,
        Increment, always
    );
    forward!(
        time_to_live<'k>(key: &'k CacheKey) -> Option<Duration>,
        TimeToLive, Option::is_some
    );
    forward!(ping<>() -> (), Ping, always);

    fn keys(&self, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
        let keys = self.inner.keys(prefix);
        if !self.instruments.is_recording() {
            return keys;
        }
        let timing = Timing::start(Arc::clone(&self.instruments), Operation::Keys);
        MeteredKeys { inner: keys, timing: Some(timing) }.boxed()
    }
}

/// A listing whose time ends with its last key, or with its first error.
struct MeteredKeys<I: Deref<Target = Instruments>> {
    inner: BoxStream<'static, Result<CacheKey>>,
    timing: Option<Timing<I>>,
}

impl<I: Deref<Target = Instruments> + Unpin> Stream for MeteredKeys<I> {
    type Item = Result<CacheKey>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.inner.poll_next_unpin(context);
        let outcome = match &next {
            Poll::Ready(None) => Outcome::Ok,
            Poll::Ready(Some(Err(error))) => Outcome::of(error),
            Poll::Ready(Some(Ok(_))) | Poll::Pending => return next,
        };
        if let Some(timing) = self.timing.take() {
            timing.finish(outcome);
        }
        next
    }
}

#[cfg(test)]
mod tests;
