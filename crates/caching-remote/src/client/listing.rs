//! Listing keys: one stream of the server's, and another one where it breaks.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use caching_abstractions::{CacheKey, Result};
use futures_util::stream::{self, BoxStream, StreamExt};
use prost::Message;
use tokio::time::{Instant, timeout_at};

use crate::client::calls::Calls;
use crate::client::connection::Connection;
use crate::client::error::{Attempt, Fault};
use crate::client::reply::unexpected;
use crate::client::stream::{Incoming, message};
use crate::proto;
use crate::wire;

const PATH: &str = "/xihan.caching.v1.Store/Keys";

/// Every key that begins with `prefix`.
pub(crate) fn keys(calls: Arc<Calls>, prefix: &str) -> BoxStream<'static, Result<CacheKey>> {
    let listing = Listing {
        calls,
        prefix: prefix.to_owned(),
        source: None,
        found: VecDeque::new(),
        seen: HashSet::new(),
        is_over: false,
    };
    stream::unfold(listing, |mut listing| async move {
        let next = listing.next().await?;
        Some((next, listing))
    })
    .boxed()
}

struct Listing {
    calls: Arc<Calls>,
    prefix: String,
    source: Option<(Arc<Connection>, Incoming)>,
    found: VecDeque<CacheKey>,
    /// What was given already, for a listing that has to begin again.
    seen: HashSet<CacheKey>,
    is_over: bool,
}

impl Listing {
    async fn next(&mut self) -> Option<Result<CacheKey>> {
        loop {
            if let Some(key) = self.found.pop_front() {
                return Some(Ok(key));
            }
            if self.is_over {
                return None;
            }
            if let Err(fault) = self.more().await {
                self.is_over = true;
                return Some(Err(fault.at("keys")));
            }
        }
    }

    /// Waits for the next message within the time limit.
    async fn more(&mut self) -> Attempt<()> {
        let deadline = Instant::now() + self.calls.limit();
        loop {
            let (connection, mut incoming) = match self.source.take() {
                Some(source) => source,
                None => self.begin(deadline).await?,
            };
            let fault = match timeout_at(deadline, incoming.next()).await {
                Ok(Ok(Some(page))) => {
                    self.source = Some((connection, incoming));
                    return self.take(&page);
                }
                Ok(Ok(None)) => {
                    self.is_over = true;
                    return Ok(());
                }
                Ok(Err(fault @ Fault::Refused(_))) => return Err(fault),
                Ok(Err(fault)) => fault,
                Err(_) => return Err(Fault::not_answered(self.calls.limit())),
            };
            if !self.calls.recovered(&connection, deadline).await {
                return Err(fault);
            }
        }
    }

    /// Asks for the whole list.
    async fn begin(&self, deadline: Instant) -> Attempt<(Arc<Connection>, Incoming)> {
        let request = proto::KeysRequest {
            prefix: self.prefix.clone(),
        };
        let length = request.encoded_len();
        loop {
            let connection = self.calls.connection(deadline).await?;
            let message = message(length, |buffer| request.encode_raw(buffer));
            let opening = connection.open_stream(PATH, message, None);
            let fault = match timeout_at(deadline, opening).await {
                Ok(Ok(incoming)) => return Ok((connection, incoming)),
                Ok(Err(fault @ Fault::Refused(_))) => return Err(fault),
                Ok(Err(fault)) => fault,
                Err(_) => return Err(Fault::not_answered(self.calls.limit())),
            };
            if !self.calls.recovered(&connection, deadline).await {
                return Err(fault);
            }
        }
    }

    fn take(&mut self, page: &[u8]) -> Attempt<()> {
        let page = proto::KeysResponse::decode(page).map_err(|_| unexpected())?;
        for key in wire::keys(page.keys).map_err(Fault::Refused)? {
            if self.seen.insert(key.clone()) {
                self.found.push_back(key);
            }
        }
        Ok(())
    }
}
