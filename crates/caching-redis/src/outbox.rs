//! Lets tasks that send at the same time share a write.
//!
//! The client's task writes what it finds as soon as it runs, and a scheduler runs it right after
//! the first task that gave it something: one write for each command. So a command that is not
//! alone waits here until the tasks that are ready by now have had their turn, and all that came
//! together go to the client at once. No time passes in this: where nothing else is ready to run,
//! a command goes on at once.

use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::ReusableBoxFuture;

use crate::client::BUFFER;
use crate::connection::Life;
use crate::error::{Attempt, Cause, Fault};
use crate::reply::Reply;

/// A command for the client. Its first poll gives it to the client, the others wait for the answer.
type Flight = ReusableBoxFuture<'static, Attempt<Reply>>;

/// The commands on their way through one connection.
#[derive(Debug)]
pub(crate) struct Outbox {
    life: Arc<Life>,
    waiting: Mutex<Vec<Arc<Parcel>>>,
    /// Something waits.
    filled: Notify,
    /// How many calls have begun and are not over.
    under_way: AtomicUsize,
    /// The client's futures are large: their memory is used again.
    spare: Mutex<Vec<Flight>>,
}

/// How many futures are kept for later.
const SPARE: usize = 128;

impl Outbox {
    pub(crate) fn new(life: Arc<Life>) -> Self {
        Self {
            life,
            waiting: Mutex::new(Vec::new()),
            filled: Notify::new(),
            under_way: AtomicUsize::new(0),
            spare: Mutex::new(Vec::new()),
        }
    }

    /// Begins a call, and sends nothing yet.
    pub(crate) fn begin(
        &self,
        call: impl Future<Output = Attempt<Reply>> + Send + 'static,
    ) -> Call<'_> {
        let spare = self.spare.lock().pop();
        let flight = match spare {
            Some(mut flight) => {
                flight.set(call);
                flight
            }
            None => ReusableBoxFuture::new(call),
        };
        Call {
            outbox: self,
            is_alone: self.under_way.fetch_add(1, Ordering::Relaxed) == 0,
            stage: Some(Stage::Own(flight)),
        }
    }

    fn keep(&self, flight: Flight) {
        let mut spare = self.spare.lock();
        if spare.len() < SPARE {
            spare.push(flight);
        }
    }

    /// Gives to the client what waits, for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        // What is ready is handed over whole, however much it is.
        tokio::task::unconstrained(async {
            let mut batch = Vec::new();
            loop {
                self.filled.notified().await;
                behind_the_others().await;
                mem::swap(&mut batch, &mut *self.waiting.lock());
                for parcel in batch.drain(..) {
                    parcel.hand_over(&self.life);
                }
            }
        })
        .await;
    }
}

/// Lets every task run that is ready by now.
///
/// A task that wakes itself goes to the end of the run queue.
async fn behind_the_others() {
    let mut is_first = true;
    poll_fn(|context| {
        if !mem::take(&mut is_first) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A command, from its caller's side.
///
/// Dropped before it was given to the client, it never is.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    outbox: &'a Outbox,
    is_alone: bool,
    /// None when it is over.
    stage: Option<Stage>,
}

#[derive(Debug)]
enum Stage {
    Own(Flight),
    Waiting(Arc<Parcel>),
}

impl Call<'_> {
    /// Whether it was the only one when it began, so that waiting for others is of no use.
    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Gives it to the client now, and waits for the answer.
    pub(crate) async fn at_once(mut self) -> Attempt<Reply> {
        let mut is_sent = false;
        poll_fn(|context| {
            let answer = self.poll(context);
            // The client keeps a queue that nobody reads when its connection broke just before.
            if answer.is_pending()
                && !mem::replace(&mut is_sent, true)
                && self.outbox.life.is_over()
            {
                return Poll::Ready(Err(connection_broke()));
            }
            answer
        })
        .await
    }

    /// Gives it to the client with what others send now, and waits for the answer.
    pub(crate) async fn together(mut self) -> Attempt<Reply> {
        let mut is_posted = false;
        poll_fn(|context| {
            if !mem::replace(&mut is_posted, true) {
                return self.post(context);
            }
            self.poll(context)
        })
        .await
    }

    fn post(&mut self, context: &Context<'_>) -> Poll<Attempt<Reply>> {
        let Some(Stage::Own(flight)) = self.stage.take() else {
            return Poll::Pending;
        };
        let mut waiting = self.outbox.waiting.lock();
        if waiting.len() >= BUFFER {
            return Poll::Ready(Err(Fault::NotSent(Cause::new("too many commands wait"))));
        }
        let parcel = Parcel::new(flight, context.waker().clone());
        waiting.push(Arc::clone(&parcel));
        let is_first = waiting.len() == 1;
        drop(waiting);
        self.stage = Some(Stage::Waiting(parcel));
        if is_first {
            self.outbox.filled.notify_one();
        }
        Poll::Pending
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Attempt<Reply>> {
        if let Some(Stage::Waiting(parcel)) = &self.stage {
            match parcel.look(context) {
                Progress::Waiting => return Poll::Pending,
                Progress::HandedOver(flight) => self.stage = Some(Stage::Own(flight)),
                Progress::Over(result) => {
                    self.stage = None;
                    return Poll::Ready(result);
                }
            }
        }
        let Some(Stage::Own(flight)) = &mut self.stage else {
            return Poll::Pending;
        };
        let answer = flight.poll(context);
        if answer.is_ready()
            && let Some(Stage::Own(flight)) = self.stage.take()
        {
            self.outbox.keep(flight);
        }
        answer
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.outbox.under_way.fetch_sub(1, Ordering::Relaxed);
        if let Some(Stage::Waiting(parcel)) = self.stage.take() {
            parcel.withdraw();
        }
    }
}

/// A command that waits, shared by its caller and the task that hands it over.
struct Parcel(Mutex<Content>);

enum Content {
    /// Nothing of it has left.
    Waiting(Flight, Waker),
    /// The client has it, and wakes whoever it was given for.
    HandedOver(Flight),
    /// Nobody has to wait any longer.
    Over(Attempt<Reply>),
    /// Its caller has taken it, or has gone away.
    Gone,
}

/// What a caller finds.
enum Progress {
    Waiting,
    HandedOver(Flight),
    Over(Attempt<Reply>),
}

impl Parcel {
    fn new(flight: Flight, waker: Waker) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Content::Waiting(flight, waker))))
    }

    /// Takes it out, if the client does not have it yet.
    fn withdraw(&self) {
        let content = mem::replace(&mut *self.0.lock(), Content::Gone);
        drop(content);
    }

    fn look(&self, context: &Context<'_>) -> Progress {
        let mut content = self.0.lock();
        match mem::replace(&mut *content, Content::Gone) {
            Content::Waiting(flight, waker) => {
                *content = Content::Waiting(flight, context.waker().clone());
                // Forgetting a task may run code of its executor.
                drop(content);
                drop(waker);
                Progress::Waiting
            }
            Content::HandedOver(flight) => Progress::HandedOver(flight),
            Content::Over(result) => Progress::Over(result),
            Content::Gone => Progress::Waiting,
        }
    }

    /// Gives it to the client, in the name of its caller.
    fn hand_over(&self, life: &Life) {
        let mut content = self.0.lock();
        let (mut flight, waker) = match mem::replace(&mut *content, Content::Gone) {
            Content::Waiting(flight, waker) => (flight, waker),
            other => {
                *content = other;
                return;
            }
        };
        let over = if life.is_over() {
            Some(Err(Fault::NotSent(Cause::new("the connection broke"))))
        } else {
            match flight.poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => Some(result),
                // The client keeps a queue that nobody reads when its connection broke just before.
                Poll::Pending if life.is_over() => Some(Err(connection_broke())),
                Poll::Pending => None,
            }
        };
        let is_over = over.is_some();
        *content = match over {
            Some(result) => Content::Over(result),
            None => Content::HandedOver(flight),
        };
        drop(content);
        if is_over {
            waker.wake();
        }
    }
}

impl std::fmt::Debug for Parcel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Parcel")
    }
}

/// The connection broke while the client had the command.
pub(crate) fn connection_broke() -> Fault {
    Fault::Unknown(Cause::new("the connection broke"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    use tokio::task::yield_now;

    /// An outbox of a connection that stands until the last handle is used.
    fn outbox() -> (Arc<Outbox>, Arc<Life>) {
        let life = Life::new(tokio::spawn(pending::<()>()).abort_handle());
        let outbox = Arc::new(Outbox::new(Arc::clone(&life)));
        tokio::spawn(Arc::clone(&outbox).run());
        (outbox, life)
    }

    type Log = Arc<Mutex<Vec<&'static str>>>;

    /// A command that notes when the client gets it, and is answered soon.
    async fn command(log: Log) -> Attempt<Reply> {
        log.lock().push("handed over");
        yield_now().await;
        Ok(Reply::Nil)
    }

    #[tokio::test]
    async fn what_tasks_send_at_the_same_time_goes_to_the_client_at_once() {
        let (outbox, _life) = outbox();
        let log = Log::default();
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let (outbox, log) = (Arc::clone(&outbox), Arc::clone(&log));
                tokio::spawn(async move {
                    log.lock().push("asked");
                    outbox.begin(command(Arc::clone(&log))).together().await
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap().unwrap(), Reply::Nil);
        }
        let (asked, handed_over) = (["asked"; 3], ["handed over"; 3]);
        assert_eq!(*log.lock(), [asked, handed_over].concat());
    }

    #[tokio::test]
    async fn s5_what_is_dropped_before_it_was_handed_over_never_is() {
        let (outbox, _life) = outbox();
        let log = Log::default();
        let mut dropped = Box::pin(outbox.begin(command(Arc::clone(&log))).together());
        assert!(futures_util::poll!(&mut dropped).is_pending());
        drop(dropped);
        let after = outbox.begin(command(Arc::clone(&log))).together().await;
        assert_eq!(after.unwrap(), Reply::Nil);
        assert_eq!(*log.lock(), ["handed over"], "only the second one");
        assert!(
            outbox.begin(pending()).is_alone(),
            "the first one counts no longer"
        );
    }

    #[tokio::test]
    async fn s4_what_waits_when_the_connection_ends_was_certainly_not_sent() {
        let (outbox, life) = outbox();
        let log = Log::default();
        let mut call = Box::pin(outbox.begin(command(Arc::clone(&log))).together());
        assert!(futures_util::poll!(&mut call).is_pending());
        life.end();
        assert!(matches!(call.await, Err(Fault::NotSent(_))));
        assert!(log.lock().is_empty());
    }

    #[tokio::test]
    async fn s3_nobody_waits_for_a_client_that_lost_its_connection() {
        let (outbox, life) = outbox();
        // It breaks while the client is given the command, which therefore never answers.
        let breaks = |life: Arc<Life>| async move {
            life.end();
            pending().await
        };
        let call = outbox.begin(breaks(Arc::clone(&life))).together();
        assert!(matches!(call.await, Err(Fault::Unknown(_))));
        let call = outbox.begin(pending()).at_once();
        assert!(matches!(call.await, Err(Fault::Unknown(_))));
    }
}
