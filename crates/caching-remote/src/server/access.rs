//! Who is let in, and to which keys.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use caching_abstractions::{CacheStore, CachingError, ErrorCode, KeyPrefix, PrefixedStore, Result};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use parking_lot::Mutex;
use subtle::{ConditionallySelectable, ConstantTimeEq};

use super::metrics::Refusal;
use super::service::{Served, Service};
use super::shared::Shared;
use super::token::{AccessToken, digest};
use crate::wire::KEY_PREFIX;

/// How many prefixes that clients asked for are kept ready.
const READY_PREFIXES: usize = 1024;

/// Metadata may be padded or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decides about each call by its metadata, before anything else of it is read.
pub(super) struct Gate {
    pub(super) shared: Arc<Shared>,
    pub(super) store: Arc<dyn CacheStore>,
    tokens: Vec<Known>,
    whole: Served,
    asked: Mutex<HashMap<KeyPrefix, Served>>,
}

/// A token, and what it opens.
pub(super) struct Known {
    digest: [u8; 32],
    prefix: Option<KeyPrefix>,
    served: Served,
}

impl Gate {
    pub(super) fn new(
        store: Arc<dyn CacheStore>,
        tokens: Vec<AccessToken>,
        shared: Arc<Shared>,
    ) -> Self {
        let known = |token: AccessToken| Known {
            digest: *token.digest(),
            prefix: token.prefix().cloned(),
            served: served(&store, token.prefix(), &shared),
        };
        Self {
            tokens: tokens.into_iter().map(known).collect(),
            whole: served(&store, None, &shared),
            asked: Mutex::default(),
            store,
            shared,
        }
    }

    /// Whether a token is needed at all.
    pub(super) fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// The service for the keys that a call may touch.
    ///
    /// # Errors
    /// - `CACHING_UNAUTHENTICATED_001`: the token is missing or wrong.
    /// - `CACHING_FORBIDDEN_001`: the token is bound to another prefix than the one asked for.
    /// - `CACHING_VALIDATION_001`: what was asked for is no prefix.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<Served> {
        let token = self.authenticate(headers)?;
        let asked = asked_prefix(headers)?;
        match (token.and_then(|token| token.prefix.as_ref()), asked) {
            (Some(own), Some(asked)) if *own != asked => {
                Refusal::Forbidden.count();
                Err(CachingError::new(
                    ErrorCode::Forbidden,
                    format!(
                        "the token may not touch the key prefix `{asked}`; ask for the prefix it \
                         is bound to, or for none"
                    ),
                ))
            }
            (None, Some(asked)) => Ok(self.below(asked)),
            _ => Ok(token.map_or(&self.whole, |token| &token.served).clone()),
        }
    }

    /// Whether the call's token is one of ours, where there are any.
    ///
    /// Every known token is compared, and all in the same time, so that how long it takes says
    /// nothing about any of them.
    pub(super) fn authenticate(&self, headers: &HeaderMap) -> Result<Option<&Known>> {
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let shown = digest(bearer(headers)?);
        let mut found = u32::MAX;
        for (position, token) in (0..).zip(&self.tokens) {
            found.conditional_assign(&position, shown.ct_eq(&token.digest));
        }
        let found = usize::try_from(found).ok();
        let token = found.and_then(|found| self.tokens.get(found));
        token
            .map(Some)
            .ok_or_else(|| unauthenticated("the server does not know the token of the call"))
    }

    /// The service for the keys below a prefix that a client asked for.
    fn below(&self, prefix: KeyPrefix) -> Served {
        let mut asked = self.asked.lock();
        if let Some(ready) = asked.get(&prefix) {
            return ready.clone();
        }
        // Clients name prefixes as they like; what they name must not add up.
        if asked.len() >= READY_PREFIXES {
            asked.clear();
        }
        let served = served(&self.store, Some(&prefix), &self.shared);
        asked.insert(prefix, served.clone());
        served
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("store", &self.store)
            .field("tokens", &self.tokens.len())
            .finish_non_exhaustive()
    }
}

fn served(store: &Arc<dyn CacheStore>, prefix: Option<&KeyPrefix>, shared: &Arc<Shared>) -> Served {
    let view = match prefix {
        None => Arc::clone(store),
        Some(prefix) => Arc::new(PrefixedStore::new(Arc::clone(store), prefix.clone())),
    };
    Service::new(view, prefix.cloned(), Arc::clone(shared)).served()
}

/// The secret in `authorization: Bearer <secret>`.
fn bearer(headers: &HeaderMap) -> Result<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Err(unauthenticated(
            "the call has no token; send `authorization: Bearer <token>` in its metadata",
        ));
    };
    let secret = value
        .as_bytes()
        .split_at_checked(b"Bearer ".len())
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
    match secret {
        Some((_, secret)) if values.next().is_none() => Ok(secret),
        _ => Err(unauthenticated(
            "the metadata `authorization` is not one `Bearer <token>`",
        )),
    }
}

fn unauthenticated(detail: &'static str) -> CachingError {
    Refusal::Unauthenticated.count();
    CachingError::new(ErrorCode::Unauthenticated, detail)
}

fn asked_prefix(headers: &HeaderMap) -> Result<Option<KeyPrefix>> {
    let wrong =
        |reason: &str| CachingError::invalid_key(format!("the metadata `{KEY_PREFIX}` {reason}"));
    let mut values = headers.get_all(KEY_PREFIX).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(wrong("comes twice"));
    }
    let bytes = BASE64
        .decode(value.as_bytes())
        .map_err(|_| wrong("is not base64"))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8"))?;
    KeyPrefix::new(text).map(Some)
}
