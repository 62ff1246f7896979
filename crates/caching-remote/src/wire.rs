//! Between the types of the wire contract and those of the workspace.
//!
//! Whatever comes in is checked here, by the constructors of the types that hold the rules.

pub(crate) mod error;

use caching_abstractions::{
    CacheEntryOptions, CacheKey, Expiration, LeaseToken, Result, TimeToLive,
};

use crate::proto;
use crate::proto::expiration::Kind;

/// The metadata entry that names the key prefix of a call.
pub(crate) const KEY_PREFIX: &str = "xihan-key-prefix-bin";

/// How an entry expires, as it is sent; none stands for the default of the server's store (E1).
pub(crate) fn expiration(options: CacheEntryOptions) -> Option<proto::Expiration> {
    let kind = match options.expiration() {
        Expiration::StoreDefault => None,
        Expiration::TimeToLive(life) => Some(Kind::TimeToLiveMilliseconds(life.as_millis())),
        Expiration::Sliding(period) => Some(Kind::SlidingMilliseconds(period.as_millis())),
    };
    let essential = options.is_essential();
    (kind.is_some() || essential).then_some(proto::Expiration { essential, kind })
}

/// How an entry expires, as it arrived.
///
/// # Errors
/// `CACHING_VALIDATION_002` if a duration is out of range (E3).
pub(crate) fn options(expiration: Option<proto::Expiration>) -> Result<CacheEntryOptions> {
    let Some(proto::Expiration { essential, kind }) = expiration else {
        return Ok(CacheEntryOptions::default());
    };
    let options = CacheEntryOptions::from(match kind {
        None => Expiration::StoreDefault,
        Some(Kind::TimeToLiveMilliseconds(life)) => Expiration::TimeToLive(time_to_live(life)?),
        Some(Kind::SlidingMilliseconds(period)) => Expiration::Sliding(time_to_live(period)?),
    });
    Ok(if essential {
        options.essential()
    } else {
        options
    })
}

/// A lifetime as it arrived.
///
/// # Errors
/// `CACHING_VALIDATION_002` if it is out of range (E3).
pub(crate) fn time_to_live(milliseconds: u64) -> Result<TimeToLive> {
    TimeToLive::from_millis(milliseconds)
}

/// A key as it arrived.
///
/// # Errors
/// `CACHING_VALIDATION_001` if it breaks K1.
pub(crate) fn key(text: String) -> Result<CacheKey> {
    CacheKey::new(text)
}

/// Keys as they arrived.
///
/// # Errors
/// `CACHING_VALIDATION_001` if one breaks K1.
pub(crate) fn keys(texts: Vec<String>) -> Result<Vec<CacheKey>> {
    texts.into_iter().map(CacheKey::new).collect()
}

/// A token as it arrived.
///
/// # Errors
/// `CACHING_VALIDATION_001` if it is empty or longer than 512 bytes.
pub(crate) fn token(text: String) -> Result<LeaseToken> {
    LeaseToken::new(text)
}

#[cfg(test)]
mod tests {
    use caching_abstractions::{ErrorCode, seconds};

    use super::*;

    fn there_and_back(sent: CacheEntryOptions) {
        assert_eq!(options(expiration(sent)).unwrap(), sent);
    }

    #[test]
    fn e1_every_kind_of_expiration_comes_through() {
        let fixed = CacheEntryOptions::time_to_live(seconds(5)).unwrap();
        let sliding = CacheEntryOptions::sliding_expiration(seconds(5)).unwrap();
        for options in [CacheEntryOptions::default(), fixed, sliding] {
            there_and_back(options);
            there_and_back(options.essential());
        }
        assert_eq!(expiration(CacheEntryOptions::default()), None);
    }

    #[test]
    fn e3_a_duration_out_of_range_is_refused_on_arrival() {
        for milliseconds in [0, TimeToLive::MAX.as_millis() + 1, u64::MAX] {
            for kind in [
                Kind::TimeToLiveMilliseconds(milliseconds),
                Kind::SlidingMilliseconds(milliseconds),
            ] {
                let arrived = proto::Expiration {
                    essential: false,
                    kind: Some(kind),
                };
                let error = options(Some(arrived)).unwrap_err();
                assert_eq!(error.code(), ErrorCode::InvalidExpiration);
            }
        }
    }
}
