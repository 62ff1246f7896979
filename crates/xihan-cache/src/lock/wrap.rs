//! `xihan-cache lock`, from the acquisition to the exit status.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use xihan_caching::{CacheStore, CachingError, DistributedLock, LockHandle, TimeToLive};

use super::end::{Given, give_back, give_up, leave};
use super::lease::{Plan, Step};
use super::running::{Ended, Watch};
use super::signals::Signals;
use super::start::start;
use super::terminal;
use crate::commands::lock::{OnLost, Request};
use crate::console::Console;
use crate::failure::Failure;
use crate::run::Session;
use crate::status::Status;

/// How long to clean up behind an acquisition that failed or was cancelled.
const CLEANING: Duration = Duration::from_secs(3);

/// Runs the command of `request` under its lock.
pub(crate) async fn run(request: Request, session: Session<'_>) -> Result<Status, Failure> {
    let system = |error| Failure::System(format!("cannot catch signals: {error}"));
    let mut signals = Signals::catch().map_err(system)?;
    terminal::block_output_stop().map_err(|error| system(error.into()))?;
    let opened = tokio::select! {
        biased;
        signal = signals.next_to_end() => return Ok(Status::of_signal(signal as i32)),
        opened = session.open() => opened,
    };
    let (store, console) = opened?;
    let locks = DistributedLock::new(Arc::clone(&store));
    let acquired = tokio::select! {
        biased;
        signal = signals.next_to_end() => Err(Ok(Status::of_signal(signal as i32))),
        acquired = acquire(&locks, &request) => acquired.map_err(|error| Err(error.into())),
    };
    let handle = match acquired {
        Ok(handle) => handle,
        Err(answer) => {
            // A request may have reached the store although nobody learned its answer.
            let _ = timeout(CLEANING, locks.settled()).await;
            return answer;
        }
    };
    let wrapper = Wrapper {
        request,
        store,
        console,
        acquired: Instant::now(),
    };
    wrapper.hold(handle, &mut signals).await
}

async fn acquire(locks: &DistributedLock, request: &Request) -> Result<LockHandle, CachingError> {
    let (resource, time_to_live) = (&request.resource, request.time_to_live);
    match request.wait {
        None => locks.acquire(resource, time_to_live).await,
        Some(wait) => locks.acquire_within(resource, time_to_live, wait).await,
    }
}

/// What is known once the lock is held.
struct Wrapper {
    request: Request,
    store: Arc<dyn CacheStore>,
    console: Console,
    /// After the acquisition, so that the lock is held rather longer than shorter.
    acquired: Instant,
}

impl Wrapper {
    async fn hold(self, handle: LockHandle, signals: &mut Signals) -> Result<Status, Failure> {
        let plan = Plan::new(self.request.time_to_live, self.request.grace);
        if plan.due(handle.remaining()) != Step::Run {
            give_up(handle).await;
            let text = "the store granted the lock so late that the command would have to stop at \
                        once; use a longer --ttl";
            return Err(CachingError::unavailable(text).into());
        }
        if let Some(most) = self.request.keep_alive {
            handle.keep_alive_up_to(most);
        }
        let in_foreground = terminal::is_ours();
        let watch = Watch {
            handle: &handle,
            plan,
            on_lost: self.request.on_lost,
            signals,
            console: self.console,
            in_foreground,
        };
        let ended = match start(&self.request.command, &handle, in_foreground).await {
            Ok(started) => watch.over(started).await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(ended) => Ok(self.give_back(handle, ended).await),
            Err(error) => {
                give_up(handle).await;
                let text = format!("cannot run the command: {error}");
                Err(Failure::System(text))
            }
        }
    }

    /// Gives the lock back and finds the exit status.
    async fn give_back(&self, handle: LockHandle, ended: Ended) -> Status {
        if !ended.is_gone {
            // Whoever got the lock now would run beside it.
            let resource = handle.resource();
            self.console.warn(&format!(
                "processes of the command cannot be killed; the lock on `{resource}` is left to \
                 run out"
            ));
            leave(handle, ());
            return self.status(ended.status, ended.lost.is_some());
        }
        if let Some(step) = ended.lost {
            self.tell_loss(handle.resource(), step);
            give_up(handle).await;
            return self.status(ended.status, true);
        }
        let resource = handle.resource().to_owned();
        let hold = self
            .request
            .min_hold
            .saturating_sub(self.acquired.elapsed());
        let hold = TimeToLive::new(hold).ok();
        match give_back(handle, &*self.store, hold).await {
            Given::Back => self.status(ended.status, false),
            Given::Missing => {
                self.console.warn(&format!(
                    "the lock on `{resource}` was taken away before the command ended"
                ));
                self.status(ended.status, true)
            }
            Given::Unknown(error) => {
                self.console.warn(&format!(
                    "the lock on `{resource}` could not be given back and runs out by itself: \
                     {error}"
                ));
                self.status(ended.status, false)
            }
        }
    }

    fn tell_loss(&self, resource: &str, step: Step) {
        match (self.request.on_lost, step) {
            (OnLost::Stop, Step::Ask | Step::Kill) => self.console.warn(&format!(
                "the lock on `{resource}` was lost; the command was stopped"
            )),
            (OnLost::Stop, Step::Run) => self.console.warn(&format!(
                "the lock on `{resource}` was over before the command ended"
            )),
            // It was told when it happened.
            (OnLost::Warn, _) => {}
        }
    }

    fn status(&self, of_command: Status, is_lost: bool) -> Status {
        if is_lost && self.request.on_lost == OnLost::Stop {
            Status::LOST
        } else {
            of_command
        }
    }
}
