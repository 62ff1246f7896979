//! Where the time comes from, so that expiry can be tested without waiting.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The two clocks that decide about expiry.
///
/// - [`monotonic`](Self::monotonic) never steps; it measures lifetimes.
/// - [`unix_time`](Self::unix_time) survives restarts and moves while the machine sleeps; fencing
///   numbers start from it (S6), and a lease is trusted only while neither clock says it is over.
///
/// [`SystemClock`] follows tokio's paused test clock by itself; [`ManualClock`] is moved by hand.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time since some fixed moment; never less than it was.
    fn monotonic(&self) -> Duration;

    /// The time since the Unix epoch by the machine's wall clock; may step either way.
    fn unix_time(&self) -> Duration;
}

/// The machine's clocks.
///
/// Monotonic time is tokio's, so a test with `#[tokio::test(start_paused = true)]` moves it with
/// `tokio::time::advance`.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock that starts at zero now.
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }

    fn unix_time(&self) -> Duration {
        // A clock before 1970 counts as 1970: nothing here needs negative times.
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    }
}

/// A clock that stands still until it is moved; clones share one time.
///
/// ```
/// use caching_abstractions::{Clock, ManualClock, seconds};
///
/// let clock = ManualClock::new();
/// let before = clock.monotonic();
/// clock.advance(seconds(5));
/// assert_eq!(clock.monotonic() - before, seconds(5));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<Times>>);

#[derive(Debug)]
struct Times {
    monotonic: Duration,
    unix_time: Duration,
}

impl ManualClock {
    /// A clock whose wall time is now and whose monotonic time is zero.
    pub fn new() -> Self {
        let unix_time = SystemClock::new().unix_time();
        Self(Arc::new(Mutex::new(Times {
            monotonic: Duration::ZERO,
            unix_time,
        })))
    }

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        let mut times = self.0.lock();
        times.monotonic += by;
        times.unix_time += by;
    }

    /// Sets the wall clock alone, as an administrator or a time server may.
    pub fn set_unix_time(&self, unix_time: Duration) {
        self.0.lock().unix_time = unix_time;
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn monotonic(&self) -> Duration {
        self.0.lock().monotonic
    }

    fn unix_time(&self) -> Duration {
        self.0.lock().unix_time
    }
}
