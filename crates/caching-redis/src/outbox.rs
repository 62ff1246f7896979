//! Lets tasks that send at the same time share a write.
//!
//! The client's task writes what it finds as soon as it runs, and a scheduler runs it right after
//! the first task that gave it something: one write for each command. So a command that is not
//! alone waits here until the tasks that are ready by now have had their turn, and all that came
//! together go to the client at once. No time passes in this: where nothing else is ready to run,
//! a command goes on at once.

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::client::BUFFER;
use crate::connection::Life;
use crate::error::{Attempt, Cause, Fault};
use crate::reply::Reply;

/// A command and the client that executes it.
pub(crate) trait Order: Send + 'static {
    /// Gives the command to the client, at the first poll, and waits for the answer.
    fn execute(self) -> impl Future<Output = Attempt<Reply>> + Send;
}

/// The commands on their way through one connection.
#[derive(Debug)]
pub(crate) struct Outbox<O> {
    life: Arc<Life>,
    waiting: Mutex<Vec<Arc<Parcel<O>>>>,
    /// Something waits.
    filled: Notify,
    /// How many calls have begun and are not over.
    under_way: AtomicUsize,
    spare: Mutex<Vec<Flight<O>>>,
}

/// How many futures are kept for later.
const SPARE: usize = 128;

impl<O: Order> Outbox<O> {
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
    pub(crate) fn begin(&self, order: O) -> Call<'_, O> {
        let spare = self.spare.lock().pop();
        let flight = spare.unwrap_or_else(Flight::new);
        *flight.desk.lock() = Desk::Order(order);
        Call {
            outbox: self,
            is_alone: self.under_way.fetch_add(1, Ordering::Relaxed) == 0,
            stage: Some(Stage::Own(flight)),
        }
    }

    fn keep(&self, flight: Flight<O>) {
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

/// A future that executes one order after another. The client's futures are large: this way their
/// memory is used again, and they are made where they stay.
struct Flight<O> {
    desk: Arc<Mutex<Desk<O>>>,
    /// It never ends.
    worker: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// What lies between a flight's worker and whoever polls it.
enum Desk<O> {
    Empty,
    Order(O),
    Answer(Attempt<Reply>),
}

impl<O: Order> Flight<O> {
    fn new() -> Self {
        let desk = Arc::new(Mutex::new(Desk::Empty));
        Self {
            worker: Box::pin(work(Arc::clone(&desk))),
            desk,
        }
    }
}

impl<O> Flight<O> {
    /// The first poll after an order gives it to the client, the others wait for the answer.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Attempt<Reply>> {
        let _ = self.worker.as_mut().poll(context);
        self.desk.lock().answer().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<O> Desk<O> {
    fn order(&mut self) -> Option<O> {
        match mem::replace(self, Self::Empty) {
            Self::Order(order) => Some(order),
            other => {
                *self = other;
                None
            }
        }
    }

    fn answer(&mut self) -> Option<Attempt<Reply>> {
        match mem::replace(self, Self::Empty) {
            Self::Answer(answer) => Some(answer),
            other => {
                *self = other;
                None
            }
        }
    }
}

async fn work<O: Order>(desk: Arc<Mutex<Desk<O>>>) {
    loop {
        // Whoever brings the next order polls then; nobody has to be woken for it.
        let order = poll_fn(|_| desk.lock().order().map_or(Poll::Pending, Poll::Ready));
        let answer = order.await.execute().await;
        *desk.lock() = Desk::Answer(answer);
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
pub(crate) struct Call<'a, O: Order> {
    outbox: &'a Outbox<O>,
    is_alone: bool,
    /// None when it is over.
    stage: Option<Stage<O>>,
}

#[derive(Debug)]
enum Stage<O> {
    Own(Flight<O>),
    Waiting(Arc<Parcel<O>>),
}

impl<O: Order> Call<'_, O> {
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

impl<O: Order> Drop for Call<'_, O> {
    fn drop(&mut self) {
        self.outbox.under_way.fetch_sub(1, Ordering::Relaxed);
        if let Some(Stage::Waiting(parcel)) = self.stage.take() {
            parcel.withdraw();
        }
    }
}

/// A command that waits, shared by its caller and the task that hands it over.
struct Parcel<O>(Mutex<Content<O>>);

enum Content<O> {
    /// Nothing of it has left.
    Waiting(Flight<O>, Waker),
    /// The client has it, and wakes whoever it was given for.
    HandedOver(Flight<O>),
    /// Nobody has to wait any longer.
    Over(Attempt<Reply>),
    /// Its caller has taken it, or has gone away.
    Gone,
}

/// What a caller finds.
enum Progress<O> {
    Waiting,
    HandedOver(Flight<O>),
    Over(Attempt<Reply>),
}

impl<O> Parcel<O> {
    fn new(flight: Flight<O>, waker: Waker) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Content::Waiting(flight, waker))))
    }

    /// Takes it out, if the client does not have it yet.
    fn withdraw(&self) {
        let content = mem::replace(&mut *self.0.lock(), Content::Gone);
        drop(content);
    }

    fn look(&self, context: &Context<'_>) -> Progress<O> {
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

impl<O> fmt::Debug for Parcel<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parcel")
    }
}

impl<O> fmt::Debug for Flight<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flight")
    }
}

/// The connection broke while the client had the command.
pub(crate) fn connection_broke() -> Fault {
    Fault::Unknown(Cause::new("the connection broke"))
}

#[cfg(test)]
mod tests;
