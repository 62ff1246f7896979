//! `xihan-cache lock`

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};
use xihan_caching::{CacheKey, TimeToLive};

use crate::duration;
use crate::failure::Failure;
use crate::open::Kind;
use crate::run::Session;
use crate::status::Status;

/// Run a command while holding a lock, so that it runs on one machine only
///
/// The lock is a lease of --ttl in the store. Nobody else who asks the same store for the same
/// RESOURCE gets it while it lasts. It is given back when the command ends.
///
/// The command runs without a shell, in a process group of its own. Signals (TERM, INT, HUP,
/// QUIT, USR1, USR2) are passed on to that group. When the command ends, what is left of its group
/// is ended as well, and only then is the lock given back: start a daemon with setsid.
///
/// A command that runs longer than the lease is a lost lock: it gets TERM --grace before the lease
/// ends, and KILL shortly before the end if it is still there. --keep-alive renews the lease at a
/// third of its time as long as the command runs; then the lock is lost only if the store stays
/// away for the rest of the lease, or if somebody takes the lock away.
///
/// If xihan-cache itself is killed, the command's process group is killed with it, and the lease
/// runs out by itself: choose --ttl as long as you can wait after a crash, and not longer.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Lock {
    /// What is locked: any name of up to 507 characters without white space
    resource: String,
    /// How long the lease lasts, such as 30s or 4m; at least the longest time that the command
    /// takes, unless --keep-alive is given
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_lifetime)]
    ttl: TimeToLive,
    /// How long to wait for a lock that is held [default: not at all]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    wait: Option<Duration>,
    /// Renew the lease while the command runs
    #[arg(long)]
    keep_alive: bool,
    /// How long --keep-alive renews at most; a command that hangs ends then
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration::parse_lifetime,
        default_value = "24h",
        requires = "keep_alive"
    )]
    max_hold: TimeToLive,
    /// What to do with the command when the lock is lost
    #[arg(long, value_enum, value_name = "ACTION", default_value_t = OnLost::Stop)]
    on_lost: OnLost,
    /// How long before the end of the lease the command gets TERM [default: a fifth of --ttl, at
    /// most 10s]
    ///
    /// KILL follows a tenth of --ttl, at most 1s, before the end.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    grace: Option<Duration>,
    /// Keep the lock for at least this long, also when the command ends sooner
    ///
    /// For cron lines on several machines: a machine whose clock is behind by less than this finds
    /// the lock held, and does not run a short command a second time. The lease is left to run
    /// out; this program ends with the command.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    min_hold: Option<Duration>,
    /// The command and its arguments; everything after -- as it is
    #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What to do with the command when the lock is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// Stop it before anybody else can get the lock, and end with status 76
    Stop,
    /// Say so, let it run to its end, and end with its status
    Warn,
}

const AFTER_HELP: &str = "\
Environment of the command:
  XIHAN_LOCK_RESOURCE  the resource
  XIHAN_LOCK_TOKEN     the token of this grant, which stands in the store under lock:RESOURCE
  XIHAN_LOCK_FENCING   a number that is larger for every later holder: hand it to what the command
                       writes to, and let that refuse a smaller one than it has seen

Examples:
  A cron line on five machines, one run:
    */5 * * * *  xihan-cache lock invoices:send --ttl 4m --keep-alive -- /usr/local/bin/send-invoices
  A short command, and clocks that differ by up to half a minute:
    0 3 * * *    xihan-cache lock backup --ttl 10m --min-hold 30s -- /usr/local/bin/backup
  One deployment after the other:
    xihan-cache lock deploy --ttl 1m --keep-alive --wait 10m -- ./deploy.sh production

Exit status:
  that of the command; 128 + n if signal n ended it (or ended the wait for the lock)
   64  the command line is wrong
   69  the store cannot be used; the command has not run
   75  somebody else holds the lock; the command has not run
   76  the lock was lost while the command ran; unless --on-lost warn, it was stopped
  126  the command cannot be run
  127  the command was not found";

/// What was asked for, checked.
#[cfg_attr(
    not(unix),
    allow(dead_code, reason = "locks need process groups, which only Unix has")
)]
pub(crate) struct Request {
    pub(crate) resource: String,
    pub(crate) time_to_live: TimeToLive,
    pub(crate) wait: Option<Duration>,
    /// How long to renew, if at all.
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) on_lost: OnLost,
    pub(crate) grace: Option<Duration>,
    pub(crate) min_hold: Duration,
    pub(crate) command: Vec<OsString>,
}

impl Lock {
    pub(crate) async fn run(self, session: Session<'_>) -> Result<Status, Failure> {
        let request = self.check(session.named.kind)?;
        run(request, session).await
    }

    fn check(self, kind: Kind) -> Result<Request, Failure> {
        let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
        if kind == Kind::Memory {
            return usage(
                "a lock in --store memory would exclude nobody: the store ends with this process; \
                 use redis://… or grpc://…",
            );
        }
        CacheKey::new(format!("lock:{}", self.resource))?;
        let half = self.ttl.as_duration() / 2;
        if self.grace.is_some_and(|grace| grace > half) {
            return usage("--grace is more than half of --ttl; give a longer --ttl");
        }
        Ok(Request {
            resource: self.resource,
            time_to_live: self.ttl,
            wait: self.wait,
            keep_alive: self.keep_alive.then(|| self.max_hold.as_duration()),
            on_lost: self.on_lost,
            grace: self.grace,
            min_hold: self.min_hold.unwrap_or_default(),
            command: self.command,
        })
    }
}

#[cfg(unix)]
use crate::lock::run;

#[cfg(not(unix))]
async fn run(_: Request, _: Session<'_>) -> Result<Status, Failure> {
    let text = "lock needs process groups and signals, which this system has not";
    Err(Failure::Usage(text.to_owned()))
}
