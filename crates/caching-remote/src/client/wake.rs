//! Hints that a key may have become free: one stream of the server's for each watcher, followed
//! from connection to connection.

use std::sync::Arc;
use std::time::Duration;

use caching_abstractions::{CacheKey, WakeHints};
use futures_util::StreamExt;
use prost::Message;
use rand::RngExt;
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::calls::Calls;
use crate::client::connection::LastingPlace;
use crate::client::error::{Attempt, Cause, Fault};
use crate::client::phase::Phase;
use crate::client::stream::{Incoming, message};
use crate::proto;

const PATH: &str = "/xihan.caching.v1.Store/Watch";

/// Registers a watcher of `key`; the registration stands when this is answered.
///
/// # Errors
/// If there is no connection, the server refuses, or there are too many watchers already: then
/// whoever waits has to poll.
pub(crate) async fn watch(calls: Arc<Calls>, key: &CacheKey) -> Attempt<WakeHints> {
    let watch = Watch {
        key: key.clone(),
        source: None,
        calls,
    };
    let deadline = Instant::now() + watch.calls.limit();
    let registered = watch.register(deadline).await?;
    let watch = Watch {
        source: Some(registered),
        ..watch
    };
    let hints = futures_util::stream::unfold(watch, |mut watch| async move {
        watch.hint().await;
        Some(((), watch))
    });
    Ok(hints.boxed())
}

struct Watch {
    calls: Arc<Calls>,
    key: CacheKey,
    source: Option<(LastingPlace, Incoming)>,
}

impl Watch {
    async fn register(&self, deadline: Instant) -> Attempt<(LastingPlace, Incoming)> {
        let request = proto::WatchRequest {
            key: self.key.as_str().to_owned(),
        };
        let length = request.encoded_len();
        loop {
            let connection = self.calls.connection(deadline).await?;
            let Some(place) = connection.lasting_place() else {
                let text = "as many watches as one connection bears are on it already";
                return Err(Fault::NotSent(Cause::new(text)));
            };
            let message = message(length, |buffer| request.encode_raw(buffer));
            let registering = async {
                let mut incoming = connection.open_stream(PATH, message, None).await?;
                match incoming.next().await? {
                    Some(_) => Ok(incoming),
                    None => Err(Fault::Unknown(Cause::new("it does not watch"))),
                }
            };
            let fault = match timeout_at(deadline, registering).await {
                Ok(Ok(incoming)) => return Ok((place, incoming)),
                Ok(Err(fault @ Fault::Refused(_))) => return Err(fault),
                Ok(Err(fault)) => fault,
                Err(_) => return Err(Fault::not_answered(self.calls.limit())),
            };
            if !self.calls.recovered(&connection, deadline).await {
                return Err(fault);
            }
        }
    }

    /// Waits for the next hint. What was told between two connections was missed, which is a hint
    /// as well.
    async fn hint(&mut self) {
        if let Some((place, incoming)) = &mut self.source {
            let mut phase = place.connection().phase();
            let is_over = |phase: &Phase| matches!(phase, Phase::Draining(_) | Phase::Over(_));
            tokio::select! {
                next = incoming.next() => if let Ok(Some(_)) = next {
                    return;
                },
                // Another connection takes its place, and this one is not to be held up.
                _ = phase.wait_for(is_over) => {}
            }
            self.source = None;
        }
        loop {
            self.calls.works().await;
            let deadline = Instant::now() + self.calls.limit();
            if let Ok(registered) = self.register(deadline).await {
                self.source = Some(registered);
                return;
            }
            let milliseconds = rand::rng().random_range(100..1000);
            sleep(Duration::from_millis(milliseconds)).await;
        }
    }
}
