//! `xihan-cache remove`

use clap::Args;
use serde_json::json;
use xihan_caching::CacheKey;

use crate::failure::Failure;
use crate::run::Session;
use crate::status::Status;

/// Remove a key
///
/// A lock can be taken away from its holder by removing the key lock:RESOURCE. The holder learns
/// of it at its next renewal and stops its command; until then two may run.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  xihan-cache remove greeting

Exit status: 0 removed, 1 not there, 64 wrong usage, 69 store unavailable")]
pub(crate) struct Remove {
    /// The key: 1 to 512 characters without white space
    key: String,
}

impl Remove {
    pub(crate) async fn run(self, session: Session<'_>) -> Result<Status, Failure> {
        let key = CacheKey::new(self.key)?;
        let (store, console) = session.open().await?;
        let removed = store.remove(&key).await?;
        let object = json!({ "key": key.as_str(), "removed": removed });
        if removed {
            console.outcome(object, &format!("`{key}` is removed"))?;
            return Ok(Status::DONE);
        }
        console.outcome(object, &format!("`{key}` is not there"))?;
        Ok(Status::NOT)
    }
}
