//! `xihan-cache get`

use std::io::{self, IsTerminal};

use clap::Args;
use serde_json::json;
use xihan_caching::CacheKey;

use crate::console::{with_value, write_readable};
use crate::failure::Failure;
use crate::run::Session;
use crate::status::Status;

/// Print the value of a key
///
/// The bytes are written as they are, without a line end after them. On a terminal the value
/// stands on lines of its own, and what is no plain text is escaped.
///
/// Reading an entry that was written with --sliding restarts its time.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  xihan-cache get greeting
  xihan-cache get logo > logo.png
  xihan-cache get greeting --json    {\"encoding\":\"utf-8\",\"found\":true,\"key\":\"greeting\",\"value\":\"hello\"}
  (bytes that are no UTF-8 text: \"encoding\":\"base64\")

Exit status: 0 printed, 1 not there, 64 wrong usage, 65 no such kind of value, 69 store unavailable")]
pub(crate) struct Get {
    /// The key: 1 to 512 characters without white space
    key: String,
}

impl Get {
    pub(crate) async fn run(self, session: Session<'_>) -> Result<Status, Failure> {
        let key = CacheKey::new(self.key)?;
        let (store, console) = session.open().await?;
        let Some(value) = store.get(&key).await? else {
            let object = json!({ "key": key.as_str(), "found": false });
            console.outcome(object, &format!("`{key}` is not there"))?;
            return Ok(Status::NOT);
        };
        // A sliding entry's clock may be restarted by a second request that nobody waits for. What
        // is asked of the same key after that is answered after that, and not before this process
        // has ended.
        let _ = store.time_to_live(&key).await;
        console.result(
            || with_value(json!({ "key": key.as_str(), "found": true }), &value),
            |output| {
                if io::stdout().is_terminal() {
                    write_readable(output, &value)
                } else {
                    output.write_all(&value)
                }
            },
        )?;
        Ok(Status::DONE)
    }
}
