//! Hints that a key may have become free: one connection for messages, shared by all watchers.

use std::collections::HashMap;
use std::sync::Arc;

use caching_abstractions::WakeHints;
use fred::types::Message;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::connection::Connection;
use crate::error::{Attempt, Cause, Fault};
use crate::link::{Link, State};

/// How many calls may wait for the task.
const QUEUE: usize = 1024;

/// The watchers of a store. The connection is opened with the first of them.
#[derive(Debug)]
pub(crate) struct Watchers {
    calls: mpsc::Sender<Call>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
enum Call {
    Watch {
        channel: Arc<str>,
        hints: mpsc::Sender<()>,
        answer: oneshot::Sender<Attempt<()>>,
    },
    /// Somebody left; whoever is gone is found by its closed end.
    Left { channel: Arc<str> },
}

impl Watchers {
    /// Begins to serve watchers with the messages of `link`.
    pub(crate) fn new(link: Link) -> Self {
        let (calls, queue) = mpsc::channel(QUEUE);
        let hub = Hub {
            queue,
            link,
            channels: HashMap::new(),
            pending: FuturesUnordered::new(),
        };
        Self {
            calls,
            task: tokio::spawn(hub.run()),
        }
    }

    /// Registers a watcher of `channel`; the registration stands when this is answered.
    ///
    /// # Errors
    /// If there is no connection, or the server refuses.
    pub(crate) async fn watch(&self, channel: String) -> Attempt<WakeHints> {
        let channel: Arc<str> = channel.into();
        // One hint is as good as many: who does not listen holds nobody up.
        let (hints, received) = mpsc::channel(1);
        let (answer, answered) = oneshot::channel();
        let stream = Hints {
            received,
            left: Some(Left {
                calls: self.calls.clone(),
                channel: Arc::clone(&channel),
            }),
        };
        let call = Call::Watch {
            channel,
            hints,
            answer,
        };
        let over = || Fault::NotSent(Cause::new("the store was shut down"));
        self.calls.send(call).await.map_err(|_| over())?;
        answered.await.map_err(|_| over())??;
        Ok(stream.into_stream())
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One watcher's end.
struct Hints {
    received: mpsc::Receiver<()>,
    left: Option<Left>,
}

/// Tells the task that a watcher left, when it is dropped.
struct Left {
    calls: mpsc::Sender<Call>,
    channel: Arc<str>,
}

impl Hints {
    fn into_stream(self) -> WakeHints {
        futures_util::stream::unfold(self, |mut hints| async move {
            hints.received.recv().await.map(|()| ((), hints))
        })
        .boxed()
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        // First the end is closed, then it is told.
        self.received.close();
        drop(self.left.take());
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        // Where the queue is full, the next message finds the closed end.
        let channel = Arc::clone(&self.channel);
        let _ = self.calls.try_send(Call::Left { channel });
    }
}

/// Everything that is known of one channel.
#[derive(Default)]
struct Channel {
    watchers: Vec<mpsc::Sender<()>>,
    waiting: Vec<oneshot::Sender<Attempt<()>>>,
    is_subscribed: bool,
    is_pending: bool,
    /// Whether messages may have been missed since the last one.
    has_missed: bool,
}

type Subscribed = (Arc<str>, Arc<Connection>, Attempt<()>);

/// The task that owns the connection for messages.
struct Hub {
    queue: mpsc::Receiver<Call>,
    link: Link,
    channels: HashMap<Arc<str>, Channel>,
    pending: FuturesUnordered<BoxFuture<'static, Subscribed>>,
}

impl Hub {
    async fn run(mut self) {
        let mut states = self.link.states();
        let mut current: Option<Arc<Connection>> = None;
        let mut messages: Option<broadcast::Receiver<Message>> = None;
        loop {
            tokio::select! {
                call = self.queue.recv() => match call {
                    Some(call) => self.serve(call, current.as_ref()),
                    None => return,
                },
                changed = states.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let state = states.borrow_and_update().clone();
                    messages = self.follow(state, &mut current);
                }
                Some(subscribed) = self.pending.next() => {
                    self.settle(subscribed, current.as_ref());
                }
                message = next(&mut messages) => match message {
                    Ok(message) => self.wake(&message.channel),
                    // Some were missed: everybody looks again.
                    Err(broadcast::error::RecvError::Lagged(_)) => self.wake_all(),
                    Err(broadcast::error::RecvError::Closed) => messages = None,
                },
            }
        }
    }

    fn serve(&mut self, call: Call, current: Option<&Arc<Connection>>) {
        match call {
            Call::Watch {
                channel,
                hints,
                answer,
            } => {
                let entry = self.channels.entry(Arc::clone(&channel)).or_default();
                entry.watchers.push(hints);
                if entry.is_subscribed {
                    let _ = answer.send(Ok(()));
                    return;
                }
                if let (None, State::Down(trouble)) = (current, &*self.link.states().borrow()) {
                    let _ = answer.send(Err(Fault::NotSent(trouble.cause.clone())));
                    self.forget_unwatched(&channel);
                    return;
                }
                entry.waiting.push(answer);
                if !entry.is_pending
                    && let Some(connection) = current
                {
                    entry.is_pending = true;
                    self.subscribe(channel, connection);
                }
            }
            Call::Left { channel } => self.forget_unwatched(&channel),
        }
    }

    fn subscribe(&self, channel: Arc<str>, connection: &Arc<Connection>) {
        let connection = Arc::clone(connection);
        self.pending.push(Box::pin(async move {
            let result = connection.subscribe(&channel).await;
            (channel, connection, result)
        }));
    }

    /// A new connection knows no channel; one that is lost may have missed messages.
    fn follow(
        &mut self,
        state: State,
        current: &mut Option<Arc<Connection>>,
    ) -> Option<broadcast::Receiver<Message>> {
        for entry in self.channels.values_mut() {
            entry.has_missed |= entry.is_subscribed;
            entry.is_subscribed = false;
            entry.is_pending = false;
        }
        *current = match state {
            State::Up(connection) => Some(connection),
            State::Opening => None,
            State::Down(trouble) => {
                for entry in self.channels.values_mut() {
                    for answer in entry.waiting.drain(..) {
                        let _ = answer.send(Err(Fault::NotSent(trouble.cause.clone())));
                    }
                }
                None
            }
        };
        let connection = current.as_ref()?;
        let messages = connection.messages();
        let channels: Vec<_> = self.channels.keys().cloned().collect();
        for channel in channels {
            if let Some(entry) = self.channels.get_mut(&channel) {
                entry.is_pending = true;
            }
            self.subscribe(channel, connection);
        }
        Some(messages)
    }

    fn settle(&mut self, subscribed: Subscribed, current: Option<&Arc<Connection>>) {
        let (channel, connection, result) = subscribed;
        if !current.is_some_and(|current| Arc::ptr_eq(current, &connection)) {
            return;
        }
        let Some(entry) = self.channels.get_mut(&channel) else {
            return;
        };
        entry.is_pending = false;
        entry.is_subscribed = result.is_ok();
        for answer in entry.waiting.drain(..) {
            let _ = answer.send(result.clone());
        }
        // What was told between two connections was missed.
        if result.is_ok() && std::mem::take(&mut entry.has_missed) {
            self.wake(&channel);
        }
        self.forget_unwatched(&channel);
    }

    fn wake(&mut self, channel: &str) {
        let Some(entry) = self.channels.get_mut(channel) else {
            return;
        };
        entry.watchers.retain(|hints| {
            let result = hints.try_send(());
            !matches!(result, Err(mpsc::error::TrySendError::Closed(())))
        });
    }

    fn wake_all(&mut self) {
        for entry in self.channels.values() {
            for hints in &entry.watchers {
                let _ = hints.try_send(());
            }
        }
    }

    /// Ends the subscription if nobody is left.
    fn forget_unwatched(&mut self, channel: &Arc<str>) {
        let Some(entry) = self.channels.get_mut(channel) else {
            return;
        };
        entry.watchers.retain(|hints| !hints.is_closed());
        entry.waiting.retain(|answer| !answer.is_closed());
        if !entry.watchers.is_empty() || entry.is_pending {
            return;
        }
        let was_subscribed = entry.is_subscribed;
        self.channels.remove(channel);
        if let (true, Some(connection)) = (was_subscribed, self.link.standing()) {
            // Queued at once, so that it comes before the next subscription to the same channel.
            connection.unsubscribe(channel);
        }
    }
}

async fn next(
    messages: &mut Option<broadcast::Receiver<Message>>,
) -> Result<Message, broadcast::error::RecvError> {
    match messages {
        Some(messages) => messages.recv().await,
        None => std::future::pending().await,
    }
}
