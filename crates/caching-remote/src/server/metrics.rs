//! What the server counts, through the `metrics` facade (part 10). No label holds a key, a token or
//! a value.
//!
//! - `xihan_caching_server_requests_total` and `xihan_caching_server_request_seconds`, with the
//!   labels `rpc` and `code` (the gRPC status; `CANCELLED` where the client left). A stream is
//!   timed to its first answer.
//! - `xihan_caching_server_session_operations_total`: operations that came through sessions.
//! - `xihan_caching_server_connections`, `xihan_caching_server_sessions`: how many there are.
//! - `xihan_caching_server_refusals_total`, with the label `reason`.

use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use metrics::{
    Counter, Histogram, IntoF64, Key, Label, Level, Metadata, Unit, counter, describe_counter,
    describe_gauge, describe_histogram, gauge, with_recorder,
};
use tokio::time::Instant;
use tonic::Code;

const REQUESTS_TOTAL: &str = "xihan_caching_server_requests_total";
const REQUEST_SECONDS: &str = "xihan_caching_server_request_seconds";
const SESSION_OPERATIONS_TOTAL: &str = "xihan_caching_server_session_operations_total";
const CONNECTIONS: &str = "xihan_caching_server_connections";
const SESSIONS: &str = "xihan_caching_server_sessions";
const REFUSALS_TOTAL: &str = "xihan_caching_server_refusals_total";

const METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// What the label `rpc` says; the last one stands for a method that does not exist.
const RPCS: [&str; 22] = [
    "Get",
    "GetMany",
    "Set",
    "SetMany",
    "TryAdd",
    "GetOrAdd",
    "TryReplace",
    "TryRemove",
    "TryExtend",
    "TryLease",
    "WaitForLease",
    "TryRelay",
    "Release",
    "Watch",
    "Remove",
    "RemoveMany",
    "Increment",
    "TimeToLive",
    "Keys",
    "Ping",
    "Session",
    "unknown",
];

/// What the label `code` says, by number.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// One method of the service, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rpc(usize);

impl Rpc {
    pub(super) fn of(method: &str) -> Self {
        let known = RPCS.iter().position(|rpc| *rpc == method);
        Self(known.unwrap_or(RPCS.len() - 1))
    }

    pub(super) fn name(self) -> &'static str {
        RPCS[self.0]
    }
}

/// The counter and the histogram of each method and status, resolved when they are first needed
/// and then kept. Without a recorder nothing is measured; one that comes later is found.
pub(super) struct Instruments {
    requests: Box<[OnceLock<(Counter, Histogram)>]>,
    operations: OnceLock<Counter>,
    is_recording: AtomicBool,
    probe: Key,
}

impl fmt::Debug for Instruments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instruments").finish_non_exhaustive()
    }
}

impl Instruments {
    pub(super) fn new() -> Self {
        let count = RPCS.len() * CODES.len();
        Self {
            requests: (0..count).map(|_| OnceLock::new()).collect(),
            operations: OnceLock::new(),
            is_recording: AtomicBool::new(false),
            probe: key(REQUEST_SECONDS, Rpc(0), 0),
        }
    }

    /// When a request began; none where nobody records it.
    pub(super) fn start(&self) -> Option<Instant> {
        self.is_recording().then(Instant::now)
    }

    fn is_recording(&self) -> bool {
        self.is_recording.load(Ordering::Relaxed) || self.look_for_recorder()
    }

    fn look_for_recorder(&self) -> bool {
        let histogram =
            with_recorder(|recorder| recorder.register_histogram(&self.probe, &METADATA));
        let is_real = Cell::new(false);
        // No sample is recorded, and a histogram that leads nowhere does not look at the value.
        histogram.record_many(Probe(&is_real), 0);
        if is_real.get() && !self.is_recording.swap(true, Ordering::Relaxed) {
            describe();
        }
        is_real.get()
    }

    pub(super) fn request(&self, rpc: Rpc, code: Code, started: Instant) {
        let code = code as usize;
        let (counter, histogram) = self.requests[rpc.0 * CODES.len() + code].get_or_init(|| {
            let total = key(REQUESTS_TOTAL, rpc, code);
            let seconds = key(REQUEST_SECONDS, rpc, code);
            with_recorder(|recorder| {
                (
                    recorder.register_counter(&total, &METADATA),
                    recorder.register_histogram(&seconds, &METADATA),
                )
            })
        });
        counter.increment(1);
        histogram.record(started.elapsed());
    }

    pub(super) fn session_operations(&self, count: usize) {
        if self.is_recording() {
            let counter = self
                .operations
                .get_or_init(|| counter!(SESSION_OPERATIONS_TOTAL));
            counter.increment(count as u64);
        }
    }
}

fn key(name: &'static str, rpc: Rpc, code: usize) -> Key {
    let labels = vec![
        Label::new("rpc", rpc.name()),
        Label::new("code", CODES[code]),
    ];
    Key::from_parts(name, labels)
}

fn describe() {
    describe_counter!(REQUESTS_TOTAL, "Calls of the store's service");
    describe_histogram!(
        REQUEST_SECONDS,
        Unit::Seconds,
        "How long calls of the store's service took"
    );
    describe_counter!(
        SESSION_OPERATIONS_TOTAL,
        "Operations that came through sessions"
    );
    describe_gauge!(CONNECTIONS, "Connections of the server");
    describe_gauge!(SESSIONS, "Sessions of the server");
    describe_counter!(REFUSALS_TOTAL, "Connections and calls that were refused");
}

struct Probe<'a>(&'a Cell<bool>);

impl IntoF64 for Probe<'_> {
    fn into_f64(self) -> f64 {
        self.0.set(true);
        0.0
    }
}

/// Why something was refused, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    TooManyConnections,
    Handshake,
    Protocol,
    Unauthenticated,
    Forbidden,
    TooLarge,
}

impl Refusal {
    pub(super) fn count(self) {
        let reason = match self {
            Self::TooManyConnections => "too_many_connections",
            Self::Handshake => "handshake",
            Self::Protocol => "protocol",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::TooLarge => "too_large",
        };
        counter!(REFUSALS_TOTAL, "reason" => reason).increment(1);
    }
}

/// Counts among the connections or sessions there are, until it is dropped.
#[derive(Debug)]
pub(super) struct Present(&'static str);

impl Present {
    pub(super) fn connection() -> Self {
        Self::one_more(CONNECTIONS)
    }

    pub(super) fn session() -> Self {
        Self::one_more(SESSIONS)
    }

    fn one_more(name: &'static str) -> Self {
        gauge!(name).increment(1.0);
        Self(name)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        gauge!(self.0).decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part10_every_method_and_status_has_its_label() {
        for (position, name) in RPCS.into_iter().enumerate() {
            assert_eq!(Rpc::of(name), Rpc(position));
        }
        assert_eq!(Rpc::of("Drop").name(), "unknown");
        assert_eq!(CODES[Code::Unauthenticated as usize], "UNAUTHENTICATED");
        assert_eq!(
            CODES[Code::ResourceExhausted as usize],
            "RESOURCE_EXHAUSTED"
        );
    }
}
