//! The calls that many answers follow.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;

use caching_abstractions::{CacheKey, Result};
use futures_util::stream::{self, Stream, StreamExt};
use tonic::Status;

use super::service::Service;
use super::work::panicked;
use crate::proto::{KeysRequest, KeysResponse, WatchRequest, WatchResponse};
use crate::wire;
use crate::wire::error::to_status;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// How many keys one message has at most.
const KEYS_PER_MESSAGE: usize = 256;
/// More than any key takes in a message.
const LARGEST_KEY_BYTES: usize = 4 * CacheKey::MAX_CHARACTERS + 8;

/// Lists keys, many to a message.
pub(super) fn keys(service: &Service, request: &KeysRequest) -> Answers<KeysResponse> {
    let keys = service.store.keys(&request.prefix);
    let most = service.shared.limits.max_message_bytes / LARGEST_KEY_BYTES;
    let chunks = guarded(keys)
        .filter(|key| std::future::ready(key.as_ref().is_ok_and(is_key) || key.is_err()))
        .ready_chunks(most.clamp(1, KEYS_PER_MESSAGE));
    chunks
        .flat_map(|chunk| stream::iter(messages(chunk)))
        .boxed()
}

/// Whether the client can name what was listed: what is stored below a prefix may be longer than a
/// key of the whole store.
fn is_key(key: &CacheKey) -> bool {
    let text = key.as_str();
    text.len() <= CacheKey::MAX_CHARACTERS || text.chars().count() <= CacheKey::MAX_CHARACTERS
}

/// The keys before an error, then the error.
fn messages(chunk: Vec<Result<CacheKey>>) -> Vec<Result<KeysResponse, Status>> {
    let (mut keys, mut messages) = (Vec::with_capacity(chunk.len()), Vec::with_capacity(1));
    let mut failed = None;
    for key in chunk {
        match key {
            Ok(key) => keys.push(key.as_str().to_owned()),
            Err(error) => failed = Some(to_status(&error)),
        }
    }
    if !keys.is_empty() {
        messages.push(Ok(KeysResponse { keys }));
    }
    messages.extend(failed.map(Err));
    messages
}

/// Says that the watch is registered, then hands its hints on until the server shuts down.
pub(super) async fn watch(
    service: &Service,
    request: WatchRequest,
) -> Result<Answers<WatchResponse>> {
    let key = wire::key(request.key)?;
    let hints = service.store.watch(&key).await?;
    let closing = service.shared.closing.clone().cancelled_owned();
    let hints = guarded(hints.map(Ok)).map(|hint| match hint {
        Ok(()) => Ok(WatchResponse {}),
        Err(error) => Err(to_status(&error)),
    });
    let registered = stream::once(std::future::ready(Ok(WatchResponse {})));
    Ok(registered.chain(hints.take_until(closing)).boxed())
}

/// The same stream, and a panic of the store ends it with an error.
fn guarded<T>(stream: impl Stream<Item = Result<T>>) -> impl Stream<Item = Result<T>> {
    AssertUnwindSafe(stream)
        .catch_unwind()
        .map(|item| item.unwrap_or_else(|panic| Err(panicked(&*panic))))
}
