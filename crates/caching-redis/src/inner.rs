//! The parts of the store's operations that are more than one command.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use caching_abstractions::{
    CacheEntryOptions, CacheKey, Expiration, Result, TimeToLive, WakeHints,
};
use futures_util::future::join_all;
use tokio::sync::OnceCell;

use crate::error::{Attempt, Fault, Place, RefusalKind};
use crate::keyspace::Keyspace;
use crate::reply::Reply;
use crate::request::{Repeat, Request, Write};
use crate::script::Script;
use crate::value;
use crate::wake::Watchers;
use crate::wire::Wire;

/// What the clones of a store share.
pub(crate) struct Inner {
    pub(crate) wire: Arc<Wire>,
    pub(crate) keyspace: Keyspace,
    default_time_to_live: TimeToLive,
    watchers: OnceCell<Watchers>,
}

/// How many keys of one batch are on their way at once.
const BATCH: usize = 1000;

/// Something to write: its bytes as they are stored, and its life in milliseconds.
pub(crate) struct Entry {
    pub(crate) stored: Bytes,
    pub(crate) life: u64,
}

impl Inner {
    pub(crate) fn new(wire: Wire, keyspace: Keyspace, default_time_to_live: TimeToLive) -> Self {
        Self {
            wire: Arc::new(wire),
            keyspace,
            default_time_to_live,
            watchers: OnceCell::new(),
        }
    }

    pub(crate) fn entry(&self, value: Bytes, options: CacheEntryOptions) -> Entry {
        let fixed = |value, life: TimeToLive| Entry {
            stored: value::plain(value),
            life: life.as_millis(),
        };
        match options.expiration() {
            Expiration::StoreDefault => fixed(value, self.default_time_to_live),
            Expiration::TimeToLive(life) => fixed(value, life),
            Expiration::Sliding(period) => Entry {
                stored: value::sliding(&value, period),
                life: period.as_millis(),
            },
        }
    }

    pub(crate) async fn call(
        &self,
        make: impl Fn() -> Request + Sync,
        repeat: Repeat,
    ) -> Attempt<Reply> {
        self.wire.call(make, repeat).await
    }

    /// Calls a request that may need more room than there is.
    ///
    /// A full server refuses before it looks, also where the room is taken by an expired entry of
    /// the same key, which is invisible (E4). Looking at the key frees that room.
    pub(crate) async fn write(
        &self,
        make: impl Fn() -> Request + Sync,
        repeat: Repeat,
    ) -> Attempt<Reply> {
        match self.call(&make, repeat).await {
            Err(fault) if is_full(&fault) => Box::pin(self.write_again(fault, &make, repeat)).await,
            other => other,
        }
    }

    async fn write_again(
        &self,
        fault: Fault,
        make: &(dyn Fn() -> Request + Sync),
        repeat: Repeat,
    ) -> Attempt<Reply> {
        let look = || {
            let key = Bytes::copy_from_slice(make().slot_key());
            Request::command("EXISTS", key)
        };
        if self.call(look, Repeat::Safely).await?.into_flag()? {
            return Err(fault);
        }
        self.call(make, repeat).await
    }

    /// Calls one request per key, all at once, and gives the answers in their order.
    pub(crate) async fn call_all(
        &self,
        operation: &'static str,
        requests: Vec<(&CacheKey, Request)>,
        repeat: Repeat,
    ) -> Result<Vec<Reply>> {
        let mut replies = Vec::with_capacity(requests.len());
        for some in requests.chunks(BATCH) {
            let calls = some
                .iter()
                .map(|(_, request)| self.write(|| request.clone(), repeat));
            for (reply, (key, _)) in join_all(calls).await.into_iter().zip(some) {
                replies.push(reply.map_err(|fault| fault.at(place(operation, key)))?);
            }
        }
        Ok(replies)
    }

    pub(crate) fn set_request(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
        write: Write,
    ) -> Request {
        let entry = self.entry(value, options);
        Request::set(self.keyspace.stored(key), entry.stored, entry.life, write)
    }

    /// Takes a stored value apart, and restarts the clock of a sliding one without waiting for it.
    pub(crate) fn read(&self, key: &CacheKey, stored: Bytes) -> Bytes {
        let found = value::read(stored);
        if let Some((header, period)) = found.slides {
            let touch = Request::script(Script::Touch, [self.keyspace.stored(key)])
                .with(header)
                .with_millis(period);
            self.wire.send_and_forget(touch);
        }
        found.value
    }

    /// What a full server holds under a key: a write that would not have changed anything is
    /// answered all the same.
    pub(crate) async fn standing(&self, key: &CacheKey) -> Attempt<Option<Bytes>> {
        let request = || Request::get(self.keyspace.stored(key));
        let stored = self.call(request, Repeat::Safely).await?.value()?;
        Ok(stored.map(|stored| value::read(stored).value))
    }

    pub(crate) async fn get_or_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Attempt<Option<Bytes>> {
        let entry = self.entry(value, options);
        let request = || {
            let stored = self.keyspace.stored(key);
            Request::set(stored, entry.stored.clone(), entry.life, Write::AbsentOrGet)
        };
        match self.write(request, Repeat::Never).await {
            Ok(reply) => Ok(reply.value()?.map(|stored| value::read(stored).value)),
            Err(fault) if is_full(&fault) => match Box::pin(self.standing(key)).await? {
                Some(stands) => Ok(Some(stands)),
                None => Err(fault),
            },
            Err(fault) => Err(fault),
        }
    }

    pub(crate) async fn try_add(
        &self,
        key: &CacheKey,
        value: Bytes,
        options: CacheEntryOptions,
    ) -> Attempt<bool> {
        let request = || self.set_request(key, value.clone(), options, Write::Absent);
        match self.write(request, Repeat::Never).await {
            Ok(reply) => Ok(reply != Reply::Nil),
            Err(fault) if is_full(&fault) => {
                let exists = || Request::command("EXISTS", self.keyspace.stored(key));
                let look = Box::pin(self.call(exists, Repeat::Safely));
                if look.await?.into_flag()? {
                    Ok(false)
                } else {
                    Err(fault)
                }
            }
            Err(fault) => Err(fault),
        }
    }

    pub(crate) async fn watch(&self, key: &CacheKey) -> Attempt<WakeHints> {
        let channel = self.keyspace.channel(&self.keyspace.stored(key));
        let new = || async { Watchers::new(self.wire.message_link()) };
        let watchers = self.watchers.get_or_init(new).await;
        let limit = self.wire.limit();
        let watch = tokio::time::timeout(limit, watchers.watch(channel));
        watch
            .await
            .unwrap_or_else(|_| Err(Fault::not_answered(limit)))
    }

    pub(crate) async fn time_to_live(&self, key: &CacheKey) -> Attempt<Option<Duration>> {
        let request = || Request::command("PTTL", self.keyspace.stored(key));
        let left = self.call(request, Repeat::Safely).await?.number()?;
        Ok(match left {
            -2 => None,
            // Another program wrote it without an expiration.
            -1 => Some(TimeToLive::MAX.as_duration()),
            left => Some(Duration::from_millis(u64::try_from(left).unwrap_or(0))),
        })
    }

    pub(crate) async fn ping(&self) -> Attempt<()> {
        let links = self.wire.primaries().await?;
        let pings = links
            .iter()
            .map(|link| self.wire.call_on(link, "PING", Vec::new()));
        for answer in join_all(pings).await {
            answer?;
        }
        Ok(())
    }
}

fn is_full(fault: &Fault) -> bool {
    matches!(fault, Fault::Refused(refusal) if refusal.kind == RefusalKind::Full)
}

/// Names an operation and its key.
pub(crate) fn place<'a>(operation: &'static str, key: &'a CacheKey) -> Place<'a> {
    Place {
        operation,
        key: Some(key.as_str()),
    }
}
