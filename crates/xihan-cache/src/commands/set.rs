//! `xihan-cache set`

use std::ffi::OsString;

use clap::Args;
use serde_json::json;
use xihan_caching::{CacheEntryOptions, CacheKey, Expiration, TimeToLive};

use super::value;
use crate::duration;
use crate::failure::Failure;
use crate::run::Session;
use crate::status::Status;

/// Write a value, whatever was there
///
/// Every entry expires: after --ttl, or --sliding after it was read last, or else after the
/// store's default (5 minutes for Redis). A full store may drop what `set` wrote; what `add` wrote
/// it keeps.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  xihan-cache set greeting hello --ttl 10m
  xihan-cache set session:42 alice --sliding 20m
  xihan-cache set logo - --ttl 1h < logo.png
  xihan-cache set offset --ttl 1h -- -5

Exit status: 0 written, 64 wrong usage, 69 store unavailable or full")]
pub(crate) struct Set {
    /// The key: 1 to 512 characters without white space
    key: String,
    /// The value; `-` reads standard input to its end
    #[arg(allow_negative_numbers = true)]
    value: OsString,
    /// How long the entry lives, such as 500ms, 10s, 4m or 1h30m
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_lifetime)]
    ttl: Option<TimeToLive>,
    /// How long the entry lives after it was written or read last
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration::parse_lifetime,
        conflicts_with = "ttl"
    )]
    sliding: Option<TimeToLive>,
}

impl Set {
    pub(crate) async fn run(self, session: Session<'_>) -> Result<Status, Failure> {
        let key = CacheKey::new(self.key)?;
        let expiration = match (self.ttl, self.sliding) {
            (Some(time_to_live), _) => Expiration::TimeToLive(time_to_live),
            (None, Some(period)) => Expiration::Sliding(period),
            (None, None) => Expiration::StoreDefault,
        };
        let value = value::read(self.value)?;
        let (store, console) = session.open().await?;
        store
            .set(&key, value, CacheEntryOptions::from(expiration))
            .await?;
        let object = json!({ "key": key.as_str(), "written": true });
        console.outcome(object, &format!("`{key}` is written"))?;
        Ok(Status::DONE)
    }
}
