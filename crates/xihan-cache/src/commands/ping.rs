//! `xihan-cache ping`

use clap::Args;
use serde_json::json;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::run::Session;
use crate::status::Status;

/// Ask whether the store answers
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  xihan-cache ping                   the store answered after 0.412 ms
  xihan-cache ping --json            {\"answered\":true,\"milliseconds\":0.412}

Exit status: 0 it answers, 64 wrong usage, 69 it does not")]
pub(crate) struct Ping {}

impl Ping {
    pub(crate) async fn run(self, session: Session<'_>) -> Result<Status, Failure> {
        let (store, console) = session.open().await?;
        let begun = Instant::now();
        store.ping().await?;
        // Whole microseconds: more digits say nothing.
        let milliseconds = (begun.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        console.result(
            || json!({ "answered": true, "milliseconds": milliseconds }),
            |output| writeln!(output, "the store answered after {milliseconds:.3} ms"),
        )?;
        Ok(Status::DONE)
    }
}
