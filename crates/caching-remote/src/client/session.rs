//! Many operations over one stream: who calls, and what the connection's task asks of them.
//!
//! A call is encoded into the next message at once and waits there. If its future is dropped
//! before the message is sent, it is not sent (S5). Answers find their call by its number.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::client::error::{Attempt, Cause, Fault};
use crate::client::queue::Queue;
use crate::client::reply::Answer;
use crate::client::request::Request;

/// How many calls may be on their way. Their places are the low bits of their numbers.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 16;
/// How many bytes may wait to be sent, besides one message of any length.
const WAITING: usize = 64 * 1024 * 1024;

/// The calls of one stream.
pub(crate) struct Session {
    state: Mutex<State>,
    limit: Duration,
}

#[derive(Default)]
struct State {
    places: Vec<Place>,
    free: Vec<usize>,
    /// How many calls there were.
    count: u64,
    queue: Queue,
    /// Wakes the connection's task, if it sleeps.
    task: Option<Waker>,
    /// Whether the task wants to know of every call, or only of one that ends before `alarm`.
    wants_calls: bool,
    /// When the task wakes by itself.
    alarm: Option<Instant>,
    /// Why there is no stream any more.
    over: Option<Cause>,
}

/// What the connection's task finds when it is about to sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parked {
    /// Whether calls wait already.
    pub(crate) has_calls: bool,
    /// When the first call ends.
    pub(crate) alarm: Instant,
}

/// Where a call stands.
struct Place {
    /// The call's number; another one is told apart by it.
    id: u64,
    stage: Stage,
    deadline: Instant,
    waker: Option<Waker>,
}

enum Stage {
    Free,
    /// In a message that is not sent yet, with so many bytes.
    Queued(usize),
    Sent,
    Done(Attempt<Answer>),
}

impl Session {
    /// Calls end after `limit` at the latest, and messages have at most `longest` bytes.
    pub(crate) fn new(limit: Duration, longest: usize) -> Self {
        let state = State {
            queue: Queue::new(longest),
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            limit,
        }
    }

    /// Puts a call into the next message. Its answer, or its end by `deadline`, is what the future
    /// gives.
    ///
    /// # Errors
    /// [`Fault::NotSent`] if the stream is over, or too much waits already.
    pub(crate) fn call(
        &self,
        request: &Request<'_>,
        now: Instant,
        deadline: Instant,
    ) -> Attempt<Waiting<'_>> {
        let mut state = self.state.lock();
        if let Some(cause) = &state.over {
            return Err(Fault::NotSent(cause.clone()));
        }
        if state.queue.bytes() > WAITING {
            return Err(Fault::NotSent(Cause::new("too much waits to be sent")));
        }
        let Some(place) = state.take_place() else {
            return Err(Fault::NotSent(Cause::new(
                "too many calls are on their way",
            )));
        };
        state.count += 1;
        let id = state.count << PLACE_BITS | place as u64;
        let timeout = milliseconds(deadline - now);
        let measured = request.measure(id, timeout);
        state.queue.push(id, measured.whole, |buffer| {
            request.encode_call(id, timeout, measured, buffer);
        });
        state.places[place] = Place {
            id,
            stage: Stage::Queued(measured.whole),
            deadline,
            waker: None,
        };
        let is_early = state.alarm.is_none_or(|alarm| deadline < alarm);
        if is_early {
            state.alarm = Some(deadline);
        }
        let task = if state.wants_calls || is_early {
            state.task.take()
        } else {
            None
        };
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
        Ok(Waiting {
            session: self,
            id,
            is_over: false,
        })
    }

    /// Whether calls wait for a message.
    pub(crate) fn has_calls(&self) -> bool {
        !self.state.lock().queue.is_empty()
    }

    /// The next message; its calls count as sent from now on.
    pub(crate) fn next_message(&self) -> Option<Bytes> {
        let state = &mut *self.state.lock();
        let places = &mut state.places;
        state.queue.pop(|id| match find(places, id) {
            Some(place) if matches!(place.stage, Stage::Queued(_)) => {
                place.stage = Stage::Sent;
                true
            }
            _ => false,
        })
    }

    /// Hands answers to their calls. Those whose call was given up are of no use to anybody.
    pub(crate) fn deliver(
        &self,
        answers: impl Iterator<Item = (u64, Answer)>,
        wakers: &mut Vec<Waker>,
    ) {
        let mut state = self.state.lock();
        for (id, answer) in answers {
            if let Some(place) = find(&mut state.places, id)
                && matches!(place.stage, Stage::Sent)
            {
                place.stage = Stage::Done(Ok(answer));
                wakers.extend(place.waker.take());
            }
        }
    }

    /// Ends the calls whose time is over, and says when the next one's is.
    pub(crate) fn expire(&self, now: Instant, wakers: &mut Vec<Waker>) -> Option<Instant> {
        let state = &mut *self.state.lock();
        let mut next: Option<Instant> = None;
        for place in &mut state.places {
            let fault = match place.stage {
                Stage::Queued(bytes) if place.deadline <= now => {
                    state.queue.bury(bytes);
                    let text = "it took nothing for the whole time limit";
                    Fault::NotSent(Cause::new(text))
                }
                Stage::Sent if place.deadline <= now => Fault::not_answered(self.limit),
                Stage::Queued(_) | Stage::Sent => {
                    next = Some(next.map_or(place.deadline, |next| next.min(place.deadline)));
                    continue;
                }
                Stage::Free | Stage::Done(_) => continue,
            };
            place.stage = Stage::Done(Err(fault));
            wakers.extend(place.waker.take());
        }
        next
    }

    /// Asks to be woken for a call: for any, or only for one that ends before `alarm`.
    pub(crate) fn park(&self, waker: &Waker, wants_calls: bool, alarm: Instant) -> Parked {
        let mut state = self.state.lock();
        state.wants_calls = wants_calls;
        if !state
            .task
            .as_ref()
            .is_some_and(|task| task.will_wake(waker))
        {
            state.task = Some(waker.clone());
        }
        Parked {
            has_calls: wants_calls && !state.queue.is_empty(),
            alarm: *state.alarm.get_or_insert(alarm),
        }
    }

    /// Takes note of when the task wakes by itself.
    pub(crate) fn rearm(&self, alarm: Instant) {
        self.state.lock().alarm = Some(alarm);
    }

    /// Ends everything: what was not sent yet never is, and what was is of unknown outcome, unless
    /// the server `looked_at` nothing of it.
    pub(crate) fn end(&self, cause: &Cause, looked_at: bool) {
        let mut wakers = Vec::new();
        let mut state = self.state.lock();
        state.over = Some(cause.clone());
        state.queue.clear();
        for place in &mut state.places {
            let fault = match place.stage {
                Stage::Sent if looked_at => Fault::Unknown(cause.clone()),
                Stage::Queued(_) | Stage::Sent => Fault::NotSent(cause.clone()),
                Stage::Free | Stage::Done(_) => continue,
            };
            place.stage = Stage::Done(Err(fault));
            wakers.extend(place.waker.take());
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes back what is not sent yet, so that it goes over another stream; nothing new is taken.
    pub(crate) fn retire(&self, cause: &Cause) {
        let mut wakers = Vec::new();
        let mut state = self.state.lock();
        if state.over.is_some() {
            return;
        }
        state.over = Some(cause.clone());
        state.queue.clear();
        for place in &mut state.places {
            if matches!(place.stage, Stage::Queued(_)) {
                place.stage = Stage::Done(Err(Fault::NotSent(cause.clone())));
                wakers.extend(place.waker.take());
            }
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn take_place(&mut self) -> Option<usize> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        if self.places.len() == PLACES {
            return None;
        }
        self.places.push(Place {
            id: 0,
            stage: Stage::Free,
            deadline: Instant::now(),
            waker: None,
        });
        Some(self.places.len() - 1)
    }

    /// Gives a place back, and what stood there.
    fn leave(&mut self, id: u64) -> Stage {
        let Some(place) = find(&mut self.places, id) else {
            return Stage::Free;
        };
        let stage = std::mem::replace(&mut place.stage, Stage::Free);
        place.id = 0;
        place.waker = None;
        self.free.push(index(id));
        stage
    }
}

fn index(id: u64) -> usize {
    // It is cut to the bits of a place.
    usize::try_from(id % PLACES as u64).unwrap_or(PLACES)
}

fn find(places: &mut [Place], id: u64) -> Option<&mut Place> {
    places.get_mut(index(id)).filter(|place| place.id == id)
}

/// A whole number of milliseconds, never none.
fn milliseconds(left: Duration) -> u32 {
    let whole = left.as_micros().div_ceil(1000).max(1);
    u32::try_from(whole).unwrap_or(u32::MAX)
}

/// A call whose answer is awaited. Dropping it takes the call back, or gives the answer up.
pub(crate) struct Waiting<'a> {
    session: &'a Session,
    id: u64,
    is_over: bool,
}

impl Future for Waiting<'_> {
    type Output = Attempt<Answer>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut state = this.session.state.lock();
        // The place is this call's until it leaves.
        let Some(place) = find(&mut state.places, this.id) else {
            return Poll::Pending;
        };
        if !matches!(place.stage, Stage::Done(_)) {
            let waker = context.waker();
            if !place
                .waker
                .as_ref()
                .is_some_and(|known| known.will_wake(waker))
            {
                place.waker = Some(waker.clone());
            }
            return Poll::Pending;
        }
        this.is_over = true;
        match state.leave(this.id) {
            Stage::Done(result) => Poll::Ready(result),
            _ => Poll::Pending,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let state = &mut *self.session.state.lock();
        if let Stage::Queued(bytes) = state.leave(self.id)
            && state.queue.bury(bytes)
        {
            let places = &mut state.places;
            state.queue.forget(|id| {
                find(places, id).is_some_and(|place| matches!(place.stage, Stage::Queued(_)))
            });
        }
    }
}

#[cfg(test)]
mod tests;
