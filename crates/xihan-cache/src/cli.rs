//! The command line.

use clap::{Args, Parser, Subcommand};
use xihan_caching::TimeToLive;

use crate::commands::{add, completions, get, keys, lock, man, ping, remove, serve, set, ttl};
use crate::duration;

/// Read and write a shared cache, run a command on one machine only, and serve a store.
///
/// Every command but `serve`, `completions` and `man` needs a store, named by --store or
/// XIHAN_CACHE_STORE.
#[derive(Debug, Parser)]
#[command(
    name = "xihan-cache",
    version,
    subcommand_value_name = "COMMAND",
    subcommand_help_heading = "Commands",
    after_long_help = AFTER_HELP
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes, before or after its name.
#[derive(Args, Debug)]
pub(crate) struct Global {
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// Print results as JSON on standard output, and failures as JSON on standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log to standard error what is going on; twice for more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// Which store, and how to reach it.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Store options")]
pub(crate) struct StoreOptions {
    /// The store: memory, redis://…, or grpc(s)://…
    ///
    /// - `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, rediss:// for TLS; redis-cluster:// and
    ///   redis-sentinel:// with their own forms; valkey for redis likewise
    ///
    /// - grpc://HOST:PORT or grpcs://HOST:PORT (the same as http:// and https://): what `xihan-cache
    ///   serve` serves
    ///
    /// - memory: an empty store inside this process, to try commands out
    ///
    /// Other users of this machine can read a command line: put a URL that holds a password into
    /// the environment variable or a file.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "XIHAN_CACHE_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<String>,
    /// A file that holds the URL of the store
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) store_file: Option<String>,
    /// Keep apart from other users of the store: every key is stored as PREFIX:KEY
    #[arg(
        long,
        global = true,
        value_name = "PREFIX",
        env = "XIHAN_CACHE_KEY_PREFIX",
        hide_env_values = true
    )]
    pub(crate) key_prefix: Option<String>,
    /// How long one operation may take [default: 2s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration::parse_lifetime)]
    pub(crate) timeout: Option<TimeToLive>,
    /// The authorities (PEM) to trust instead of the system's, for TLS
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_file: Option<String>,
    /// The certificate (PEM) to show to the store
    #[arg(long, global = true, value_name = "FILE", requires = "client_key")]
    pub(crate) client_cert: Option<String>,
    /// The private key (PEM) of --client-cert
    #[arg(long, global = true, value_name = "FILE", requires = "client_cert")]
    pub(crate) client_key: Option<String>,
    /// A file that holds the bearer token for a grpc(s):// store
    ///
    /// Without it the token is read from the environment variable XIHAN_CACHE_TOKEN, if that is
    /// set.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Get(get::Get),
    Set(set::Set),
    Add(add::Add),
    Remove(remove::Remove),
    Ttl(ttl::Ttl),
    Keys(keys::Keys),
    Ping(ping::Ping),
    Lock(lock::Lock),
    Serve(serve::Serve),
    Completions(completions::Completions),
    Man(man::Man),
}

const AFTER_HELP: &str = "\
Examples:
  export XIHAN_CACHE_STORE=redis://localhost:6379
  xihan-cache set greeting hello --ttl 10m
  xihan-cache get greeting
  xihan-cache keys report: --json
  xihan-cache lock invoices:send --ttl 4m --keep-alive -- /usr/local/bin/send-invoices
  xihan-cache serve --listen 127.0.0.1:50051

Exit status:
    0  done
    1  the key is not there, or was not added or removed
   64  the command line is wrong; bad keys and durations included
   65  the key holds a value of another kind
   69  the store cannot be used: it is away, full, or refuses this client
   70  a fault of the program or of the operating system
   74  standard input or output failed
   75  lock: somebody else holds it
   76  lock: it was lost while the command ran
  `lock` ends with the status of its command (128 + n if signal n ended it); 126 if the command
  cannot be run, 127 if it is not found.

Environment:
  XIHAN_CACHE_STORE       the store, where --store and --store-file are not given
  XIHAN_CACHE_KEY_PREFIX  the prefix, where --key-prefix is not given
  XIHAN_CACHE_TOKEN       the bearer token, where --token-file is not given
  RUST_LOG                what to log, such as caching_redis=debug; -v wins";
