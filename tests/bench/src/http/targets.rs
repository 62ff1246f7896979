//! The servers that are measured.

use std::path::{Path, PathBuf};

use super::load::Mode;
use crate::Result;

/// Large enough for every record of one measurement, so that no store is full.
pub(crate) const STORE_BYTES: &str = "4294967296";

/// One server and how a client gives it a key.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<&'static str>,
    pub(crate) port_option: &'static str,
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    /// The variable that gets the URL of a Redis of its own, which is empty at the start.
    pub(crate) redis_url: Option<&'static str>,
    pub(crate) headers: Vec<String>,
    pub(crate) keyed_headers: Vec<String>,
    /// The header that is `true` on a replayed response.
    pub(crate) replay_mark: &'static str,
    /// What its requests per second have to keep of those without a key: fresh, replayed.
    pub(crate) bars: Option<(f64, f64)>,
}

impl Target {
    /// The plain handler without any layer: what a server can do at most.
    pub(crate) fn raw() -> Result<Self> {
        Ok(Self {
            name: "plain axum handler",
            program: std::env::current_exe()?,
            arguments: vec!["raw-server"],
            port_option: "--port",
            environment: Vec::new(),
            redis_url: None,
            headers: Vec::new(),
            keyed_headers: Vec::new(),
            replay_mark: "",
            bars: None,
        })
    }

    /// The sample service with everything it does for an order.
    pub(crate) fn orders_sample(program: &Path) -> Self {
        Self {
            name: "orders-sample",
            program: program.to_owned(),
            arguments: Vec::new(),
            port_option: "--http-port",
            environment: vec![
                ("XIHAN__CACHING__INMEMORY__MAXCAPACITYBYTES", STORE_BYTES),
                ("XIHAN__CACHING__INMEMORY__MAXPROTECTEDBYTES", STORE_BYTES),
                ("RUST_LOG", "warn"),
            ],
            redis_url: None,
            headers: vec!["authorization: ApiKey dev-alice-key".to_owned()],
            keyed_headers: vec!["baggage: xihan.idempotency-key={key}".to_owned()],
            replay_mark: "idempotency-replayed",
            bars: Some((0.70, 0.90)),
        }
    }

    /// The sample service with its records and locks on Redis.
    pub(crate) fn orders_sample_on_redis(program: &Path) -> Self {
        Self {
            name: "orders-sample on Redis",
            environment: vec![("XIHAN__CACHING__PROVIDER", "redis"), ("RUST_LOG", "error")],
            redis_url: Some("XIHAN__CACHING__REDIS__URL"),
            bars: Some((0.40, 0.60)),
            ..Self::orders_sample(program)
        }
    }

    /// The layer of `axum-idempotent` on the plain handler.
    ///
    /// It keeps its records in the caller's session and looks through the whole session on each
    /// write, so a session gets a few keys only, as a real caller's would.
    pub(crate) fn axum_idempotent(program: &Path) -> Self {
        Self {
            name: "axum-idempotent",
            arguments: vec!["axum-idempotent"],
            headers: vec!["cookie: session={session}AA".to_owned()],
            replay_mark: "idempotency-replayed",
            ..Self::peer(program)
        }
    }

    /// The layer of `idempotent` on the plain handler.
    pub(crate) fn idempotent(program: &Path) -> Self {
        Self {
            name: "idempotent",
            arguments: vec!["idempotent"],
            replay_mark: "idempotent-replayed",
            ..Self::peer(program)
        }
    }

    fn peer(program: &Path) -> Self {
        Self {
            name: "",
            program: program.to_owned(),
            arguments: Vec::new(),
            port_option: "--port",
            environment: Vec::new(),
            redis_url: None,
            headers: Vec::new(),
            keyed_headers: vec!["idempotency-key: {key}".to_owned()],
            replay_mark: "",
            bars: None,
        }
    }

    pub(crate) fn modes(&self) -> &'static [Mode] {
        if self.keyed_headers.is_empty() {
            &[Mode::None]
        } else {
            &[Mode::None, Mode::Fresh, Mode::Replay]
        }
    }
}
