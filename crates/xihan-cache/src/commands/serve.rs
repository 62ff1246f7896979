//! `xihan-cache serve`

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use clap::Args;
use xihan_caching::{CachingSettings, TimeToLive};

use crate::duration;
use crate::failure::Failure;
use crate::open::Kind;
use crate::run::Session;
use crate::serve;
use crate::status::Status;

/// Serve a store to other programs and machines
///
/// Whatever speaks the protocol xihan.caching.v1 can use it: this program with --store
/// grpc://HOST:PORT, services with the provider `remote`, other languages by its .proto file or by
/// server reflection. Standard gRPC health checks are answered too.
///
/// Without --store the values live in the memory of this process and end with it; locks as well.
/// With --store redis://… several servers can stand before one Redis.
///
/// Once it listens, it prints one line on standard output, with the port that was taken for port 0:
/// `listening on grpc://127.0.0.1:50051` (grpcs:// with TLS); `metrics on http://…/metrics` comes
/// before that, where metrics are asked for. It logs to standard error.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Serve {
    /// Where to listen; port 0 takes a free one
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_parser = address,
        default_value = "127.0.0.1:50051"
    )]
    pub(crate) listen: String,
    /// A file with the tokens that let clients in, one to a line: `TOKEN`, or `TOKEN PREFIX` for
    /// one that sees nothing but the keys below PREFIX
    ///
    /// Without it the environment variable XIHAN_CACHE_TOKEN has the one token, if it is set, and
    /// everybody who reaches the port is let in otherwise. It is read once, at the start.
    #[arg(long, value_name = "FILE", help_heading = "Who is let in")]
    pub(crate) token_file: Option<String>,
    /// The certificate (PEM) of this server, with those between it and its authority
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        help_heading = "Who is let in"
    )]
    pub(crate) tls_cert: Option<String>,
    /// The private key (PEM) of --tls-cert
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert",
        help_heading = "Who is let in"
    )]
    pub(crate) tls_key: Option<String>,
    /// Turn away clients that show no certificate of an authority in this file (PEM)
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert",
        help_heading = "Who is let in"
    )]
    pub(crate) client_ca: Option<String>,
    /// Listen where other machines reach it without a token or without TLS: whoever does can read
    /// and change everything, or listen in
    #[arg(long, help_heading = "Who is let in")]
    pub(crate) insecure: bool,
    /// Where to serve /metrics (Prometheus), /healthz and /readyz over HTTP [default: nowhere]
    ///
    /// It asks for no token. Metrics hold no key, token or value.
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub(crate) metrics_listen: Option<String>,
    /// How long an entry lives that does not say [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_lifetime)]
    default_ttl: Option<TimeToLive>,
    /// Memory for values that may be evicted, with --store memory [default: 268435456]
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    max_capacity_bytes: Option<NonZeroU64>,
    /// Memory for what is never evicted (locks, and what was written by `add`), with --store memory
    /// [default: 1073741824]
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    max_protected_bytes: Option<NonZeroU64>,
    /// The longest message, and so about the longest value
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "16777216",
        help_heading = "Limits"
    )]
    pub(crate) max_message_bytes: NonZeroUsize,
    /// How many connections there may be; one more is closed at once
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "4096",
        help_heading = "Limits"
    )]
    pub(crate) max_connections: NonZeroUsize,
    /// How long, at a shutdown, calls go on while health says NOT_SERVING already
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration::parse,
        default_value = "0s",
        help_heading = "Limits"
    )]
    pub(crate) drain: Duration,
    /// How long, at a shutdown, running operations may take to end
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration::parse,
        default_value = "30s",
        help_heading = "Limits"
    )]
    pub(crate) shutdown_timeout: Duration,
}

const AFTER_HELP: &str = "\
Examples:
  For the programs of this machine:
    xihan-cache serve
    xihan-cache --store grpc://127.0.0.1:50051 ping
  For other machines, with a token (openssl rand -hex 32 > /etc/xihan/tokens) and TLS:
    xihan-cache serve --listen 0.0.0.0:50051 --token-file /etc/xihan/tokens \\
      --tls-cert server.pem --tls-key server.key --metrics-listen 127.0.0.1:9464
    XIHAN_CACHE_TOKEN=… xihan-cache --store grpcs://cache.internal:50051 ping
  Before a Redis:
    XIHAN_CACHE_STORE=redis://:password@redis.internal xihan-cache serve

The store is away:
  serve starts and goes on; calls are answered with CACHING_UNAVAILABLE_001, and health checks and
  /readyz say so, until the store is back. A Redis that refuses the login ends it, with status 69.

Signals:
  TERM and INT shut down: health says NOT_SERVING (for --drain with everything else as usual), then
  clients are told to go elsewhere, and what runs may end within --shutdown-timeout. The second one
  ends the process at once.

Exit status:
    0  shut down by a signal
   64  the command line is wrong, or a file of it; the address would be open to other machines
   69  the store refuses this server
   70  the address is in use or cannot be had
   74  standard output failed
  128 + n: ended at once by a second signal n

Environment:
  XIHAN_CACHE_STORE  the store, where --store and --store-file are not given; memory without it
  XIHAN_CACHE_TOKEN  the token that lets clients in, where --token-file is not given
  RUST_LOG           what to log [default: info]; -v logs more, and wins";

impl Serve {
    pub(crate) async fn run(self, session: Session<'_>) -> Result<Status, Failure> {
        self.check(session.named.kind)?;
        serve::run(self, session).await
    }

    fn check(&self, kind: Kind) -> Result<(), Failure> {
        let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
        let has_budget = self.max_capacity_bytes.is_some() || self.max_protected_bytes.is_some();
        match kind {
            Kind::Remote => usage(
                "the store is a server already; serve --store memory or redis://…, which also \
                 overrule XIHAN_CACHE_STORE",
            ),
            Kind::Redis if has_budget => usage(
                "--max-capacity-bytes and --max-protected-bytes are for --store memory; Redis has \
                 its own `maxmemory`",
            ),
            Kind::Redis | Kind::Memory => Ok(()),
        }
    }

    /// What the options say about the store.
    pub(crate) fn adjust(&self, settings: &mut CachingSettings) {
        if self.default_ttl.is_some() {
            settings.default_time_to_live = self.default_ttl;
        }
        if let Some(bytes) = self.max_capacity_bytes {
            settings.in_memory.max_capacity_bytes = bytes.get();
        }
        if let Some(bytes) = self.max_protected_bytes {
            settings.in_memory.max_protected_bytes = bytes.get();
        }
    }
}

/// An address with a port, so that a typing error is told from one that cannot be had.
fn address(text: &str) -> Result<String, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or_default();
    let is_bare_ipv6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    if host.is_empty() || is_bare_ipv6 || port.parse::<u16>().is_err() {
        return Err(
            "write HOST:PORT, such as 127.0.0.1:50051, 0.0.0.0:50051 or [::1]:50051".to_owned(),
        );
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn part11_an_address_has_a_host_and_a_port() {
        for right in ["127.0.0.1:0", "localhost:50051", "[::1]:1", "0.0.0.0:65535"] {
            assert_eq!(address(right).as_deref(), Ok(right));
        }
        for wrong in [
            "",
            "50051",
            ":50051",
            "host",
            "host:",
            "host:65536",
            "::1:1",
        ] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
