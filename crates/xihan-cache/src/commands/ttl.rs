//! `xihan-cache ttl`

use clap::Args;
use serde_json::json;
use xihan_caching::{CacheKey, TimeToLive};

use crate::duration;
use crate::failure::Failure;
use crate::run::Session;
use crate::status::Status;

/// Print how much longer an entry lives
///
/// The time is printed as --ttl takes it. Asking restarts no sliding entry.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  xihan-cache ttl greeting           9m58s123ms
  xihan-cache ttl lock:invoices:send --json
                                     {\"found\":true,\"key\":\"lock:invoices:send\",\"timeToLiveMilliseconds\":211480}

Exit status: 0 printed, 1 not there, 64 wrong usage, 69 store unavailable")]
pub(crate) struct Ttl {
    /// The key: 1 to 512 characters without white space
    key: String,
}

impl Ttl {
    pub(crate) async fn run(self, session: Session<'_>) -> Result<Status, Failure> {
        let key = CacheKey::new(self.key)?;
        let (store, console) = session.open().await?;
        let Some(left) = store.time_to_live(&key).await? else {
            let object = json!({ "key": key.as_str(), "found": false });
            console.outcome(object, &format!("`{key}` is not there"))?;
            return Ok(Status::NOT);
        };
        // What is about to end lives a millisecond more, not none.
        let left = TimeToLive::new(left).unwrap_or(TimeToLive::MIN);
        let milliseconds = left.as_millis();
        console.result(
            || json!({ "key": key.as_str(), "found": true, "timeToLiveMilliseconds": milliseconds }),
            |output| writeln!(output, "{}", duration::format(left.as_duration())),
        )?;
        Ok(Status::DONE)
    }
}
