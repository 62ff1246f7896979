//! `xihan-cache add`

use std::ffi::OsString;

use clap::Args;
use serde_json::json;
use xihan_caching::{CacheEntryOptions, CacheKey, TimeToLive};

use super::value;
use crate::duration;
use crate::failure::Failure;
use crate::run::Session;
use crate::status::Status;

/// Write a value if the key is not there yet
///
/// Of all who add the same key at once, exactly one succeeds. What was added is never dropped
/// before it expires, by no full store.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  xihan-cache add migration:42 done --ttl 7d && run-migration-42
  date | xihan-cache add started - --ttl 1h

Exit status: 0 added, 1 the key is there already, 64 wrong usage, 69 store unavailable or full
  After 69 it is unknown whether the value was added.")]
pub(crate) struct Add {
    /// The key: 1 to 512 characters without white space
    key: String,
    /// The value; `-` reads standard input to its end
    #[arg(allow_negative_numbers = true)]
    value: OsString,
    /// How long the entry lives, such as 500ms, 10s, 4m or 1h30m [default: the store's]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_lifetime)]
    ttl: Option<TimeToLive>,
}

impl Add {
    pub(crate) async fn run(self, session: Session<'_>) -> Result<Status, Failure> {
        let key = CacheKey::new(self.key)?;
        let value = value::read(self.value)?;
        let options = self.ttl.map_or_else(CacheEntryOptions::default, Into::into);
        let (store, console) = session.open().await?;
        let added = store.try_add(&key, value, options).await?;
        let object = json!({ "key": key.as_str(), "added": added });
        if added {
            console.outcome(object, &format!("`{key}` is added"))?;
            return Ok(Status::DONE);
        }
        console.outcome(object, &format!("`{key}` is there already"))?;
        Ok(Status::NOT)
    }
}
