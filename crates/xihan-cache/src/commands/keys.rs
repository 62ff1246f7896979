//! `xihan-cache keys`

use std::io::{self, Write};

use clap::Args;
use futures_util::TryStreamExt;
use serde_json::json;
use xihan_caching::CacheKey;

use crate::failure::Failure;
use crate::run::Session;
use crate::status::Status;

/// List the keys that begin with a prefix
///
/// The prefix is literal: * and ? have no meaning. The keys come in no order, one a line, as the
/// store finds them; with --json all together.
///
/// The store is read from end to end, so do not ask a large one often.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  xihan-cache keys lock:             who holds what
  xihan-cache keys '' | wc -l        how many keys there are
  xihan-cache keys report: --json    {\"keys\":[\"report:daily\",\"report:monthly\"]}

Exit status: 0 listed (also if there is none), 64 wrong usage, 69 store unavailable")]
pub(crate) struct Keys {
    /// What the keys begin with; '' lists every key
    prefix: String,
}

impl Keys {
    pub(crate) async fn run(self, session: Session<'_>) -> Result<Status, Failure> {
        let (store, console) = session.open().await?;
        let mut keys = store.keys(&self.prefix);
        if console.is_json() {
            let keys: Vec<CacheKey> = keys.try_collect().await?;
            let keys: Vec<&str> = keys.iter().map(CacheKey::as_str).collect();
            console.result(|| json!({ "keys": keys }), |_| Ok(()))?;
            return Ok(Status::DONE);
        }
        let mut output = io::BufWriter::new(io::stdout());
        while let Some(key) = keys.try_next().await? {
            writeln!(output, "{key}")?;
        }
        output.flush()?;
        Ok(Status::DONE)
    }
}
