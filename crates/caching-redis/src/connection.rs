//! One connection to one server, shared by everybody and pipelined.
//!
//! It never reconnects and never sends anything twice: when it breaks, everything that waits in it
//! fails, and nothing of it is sent later. Who wants another one opens it: see `link`.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::Poll;

use fred::clients::Client;
use fred::interfaces::{ClientLike, EventInterface, PubsubInterface};
use fred::types::{ConnectHandle, Message, Value};
use futures_util::future::try_join_all;
use futures_util::{FutureExt, poll};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use crate::client::{ConnectionSettings, Purpose, client, fault, not_sent};
use crate::error::{Attempt, Cause, Fault};
use crate::outbox::{Outbox, connection_broke};
use crate::reply::Reply;
use crate::request::{ForClient, NamedScript, OnTheWire, Request, command};
use crate::script::{Dialect, Script};
use crate::server::ServerInfo;
use crate::url::Address;

/// Whether a connection is over.
#[derive(Debug)]
pub(crate) struct Life {
    router: AbortHandle,
    broken: AtomicBool,
}

impl Life {
    /// Of the connection that the task `router` keeps.
    pub(crate) fn new(router: AbortHandle) -> Arc<Self> {
        let broken = AtomicBool::new(false);
        Arc::new(Self { router, broken })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.broken.load(Ordering::Acquire) || self.router.is_finished()
    }

    /// Ends it at once.
    pub(crate) fn end(&self) {
        self.broken.store(true, Ordering::Release);
        self.router.abort();
    }
}

/// An open connection.
pub(crate) struct Connection {
    client: Client,
    life: Arc<Life>,
    outbox: Arc<Outbox<ForClient>>,
    /// The task that empties the outbox.
    sender: AbortHandle,
    hashes: Vec<Value>,
    pub(crate) info: ServerInfo,
    pub(crate) address: Address,
    probe: AtomicU8,
}

impl Connection {
    /// Opens a connection, and loads the scripts if it is for commands.
    ///
    /// # Errors
    /// What the network or the server says; nothing is left behind.
    pub(crate) async fn open(
        address: &Address,
        settings: &ConnectionSettings,
        purpose: Purpose,
    ) -> Attempt<(Self, End)> {
        let (mut connection, end) = Self::open_bare(address, settings, purpose).await?;
        let info = connection.execute("INFO", Vec::new()).await?.text()?;
        connection.info = ServerInfo::read(&info);
        if purpose == Purpose::Commands {
            connection.hashes = connection.load_scripts().await?;
        }
        Ok((connection, end))
    }

    /// Opens a connection and asks nothing; also for sentinels.
    pub(crate) async fn open_bare(
        address: &Address,
        settings: &ConnectionSettings,
        purpose: Purpose,
    ) -> Attempt<(Self, End)> {
        let client = client(address, settings, purpose).map_err(|error| not_sent(&error))?;
        let mut opened = client.reconnect_rx();
        let router = client.connect();
        let mut end = End(router);
        let life = Life::new(end.0.abort_handle());
        let outbox = Arc::new(Outbox::new(Arc::clone(&life)));
        let connection = Self {
            client,
            life,
            sender: tokio::spawn(Arc::clone(&outbox).run()).abort_handle(),
            outbox,
            hashes: Vec::new(),
            info: ServerInfo::default(),
            address: address.clone(),
            probe: AtomicU8::new(probe::NONE),
        };
        // The client does not try twice: where it fails, its task ends with the reason.
        tokio::select! {
            biased;
            _ = opened.recv() => Ok((connection, end)),
            result = &mut end.0 => Err(match result {
                Ok(Err(error)) => not_sent(&error),
                _ => Fault::NotSent(Cause::new("the connection did not open")),
            }),
        }
    }

    async fn load_scripts(&self) -> Attempt<Vec<Value>> {
        let dialect = self.info.dialect();
        let load = |script: &Script| {
            let arguments = vec!["LOAD".into(), script.text(dialect).into()];
            self.execute("SCRIPT", arguments)
        };
        let replies = try_join_all(Script::ALL.iter().map(load)).await?;
        replies
            .into_iter()
            .map(|reply| Ok(reply.text()?.into()))
            .collect()
    }

    /// Whether it is over.
    pub(crate) fn is_closed(&self) -> bool {
        self.life.is_over()
    }

    /// Ends it at once. What waits in it fails and is never sent.
    pub(crate) fn close(&self) {
        self.life.end();
    }

    /// Has `request` executed; a script by its hash, which the server may have lost.
    pub(crate) async fn send(&self, request: Request) -> Attempt<Reply> {
        let request = self.understood(request);
        let named = request.script_called().map(|script| self.name(script));
        self.run(request.on_the_wire(named)).await
    }

    /// Has `request` executed; a script by its text.
    pub(crate) async fn send_text(&self, request: Request) -> Attempt<Reply> {
        let (name, arguments) = self.in_full(request);
        self.execute(name, arguments).await
    }

    /// What the server understands.
    fn understood(&self, request: Request) -> Request {
        match self.info.dialect() {
            Dialect::Six => request.below_seven(),
            Dialect::Seven => request,
        }
    }

    /// The words of `request`; a script by its text.
    fn in_full(&self, request: Request) -> (&'static str, Vec<Value>) {
        let request = self.understood(request);
        let named = request.script_called().map(|script| self.text(script));
        request.on_the_wire(named).into_words()
    }

    fn name(&self, script: Script) -> NamedScript {
        let hash = self.hashes.get(script as usize).cloned();
        hash.map_or_else(|| self.text(script), NamedScript::Hash)
    }

    fn text(&self, script: Script) -> NamedScript {
        NamedScript::Text(script.text(self.info.dialect()).into())
    }

    /// Puts `request` into the queue, and waits for nothing.
    ///
    /// For what may just as well not happen; a script goes by its text, so that it never misses.
    pub(crate) fn send_and_forget(&self, request: Request) {
        let (name, arguments) = self.in_full(request);
        // The first poll queues it.
        let _ = self
            .client
            .custom_raw(command(name), arguments)
            .now_or_never();
    }

    /// Has `request` executed on a node that is about to get its slot.
    pub(crate) async fn send_asking(&self, request: Request) -> Attempt<Reply> {
        let (name, arguments) = self.in_full(request);
        let pair = self.client.pipeline();
        let queued = async {
            let _: Value = pair.custom(command("ASKING"), Vec::<Value>::new()).await?;
            let _: Value = pair.custom(command(name), arguments).await?;
            Ok(())
        };
        queued
            .await
            .map_err(|error: fred::error::Error| not_sent(&error))?;
        let value = self.watched(pin!(pair.last::<Value>())).await?;
        Reply::from_value(value)
    }

    /// Has a command executed.
    pub(crate) async fn execute(
        &self,
        name: &'static str,
        arguments: Vec<Value>,
    ) -> Attempt<Reply> {
        self.run(OnTheWire::Other(name, arguments)).await
    }

    async fn run(&self, command: OnTheWire) -> Attempt<Reply> {
        let call = self.outbox.begin(ForClient(self.client.clone(), command));
        if call.is_alone() {
            call.at_once().await
        } else {
            call.together().await
        }
    }

    /// Waits for an answer, but not for one that cannot come: the client keeps a queue that nobody
    /// reads when its connection broke just before a command was put into it.
    async fn watched<T>(
        &self,
        mut call: Pin<&mut (impl Future<Output = Result<T, fred::error::Error>> + ?Sized)>,
    ) -> Attempt<T> {
        let answer = match poll!(&mut call) {
            Poll::Ready(answer) => answer,
            Poll::Pending if self.is_closed() => return Err(connection_broke()),
            Poll::Pending => call.await,
        };
        answer.map_err(|error| fault(&error))
    }

    /// Asks for a probe, and says whether the caller has to start it.
    pub(crate) fn begin_probe(&self) -> bool {
        self.probe.swap(probe::WANTED, Ordering::AcqRel) == probe::NONE
    }

    /// Whether a probe is to be sent (again): somebody asked since the last one began.
    pub(crate) fn wants_probe(&self) -> bool {
        let take = |state| match state {
            probe::WANTED => Some(probe::RUNNING),
            _ => Some(probe::NONE),
        };
        let before = self
            .probe
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        before == Ok(probe::WANTED) && !self.is_closed()
    }

    /// Asks for the messages of `channel`. The subscription stands when this is answered.
    pub(crate) async fn subscribe(&self, channel: &str) -> Attempt<()> {
        self.watched(pin!(self.client.subscribe(channel))).await?;
        // The client does not wait for the confirmation; whatever is answered next comes after it.
        self.execute("PING", Vec::new()).await.map(drop)
    }

    /// Asks for no more messages of `channel`, and waits for nothing.
    pub(crate) fn unsubscribe(&self, channel: &str) {
        // The first poll queues it.
        let _ = self.client.unsubscribe(channel).now_or_never();
    }

    /// The messages from now on.
    pub(crate) fn messages(&self) -> broadcast::Receiver<Message> {
        self.client.message_rx()
    }
}

/// The states of a probe.
mod probe {
    pub(super) const NONE: u8 = 0;
    pub(super) const WANTED: u8 = 1;
    pub(super) const RUNNING: u8 = 2;
}

/// The end of a connection.
#[derive(Debug)]
pub(crate) struct End(ConnectHandle);

impl End {
    /// Completes when the connection is over, and says why.
    pub(crate) async fn reached(self) -> Cause {
        match self.0.await {
            Ok(Err(error)) => error.into(),
            _ => Cause::new("the connection was closed"),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The client's task would keep the connection open for ever.
        self.close();
        self.sender.abort();
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.address)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Write;

    #[test]
    fn every_script_has_its_place() {
        for (index, script) in Script::ALL.into_iter().enumerate() {
            assert_eq!(script as usize, index);
            for dialect in [Dialect::Six, Dialect::Seven] {
                assert!(script.text(dialect).contains("redis."));
            }
        }
    }

    /// A connection to `server` that takes it for version 6.2.
    async fn below_seven(server: &redis_support::Server) -> Connection {
        let settings = ConnectionSettings {
            login: crate::url::Login::default(),
            database: 0,
            tls: None,
            limit: std::time::Duration::from_secs(2),
        };
        let address = Address {
            host: "127.0.0.1".to_owned(),
            port: server.port(),
        };
        let opened = Connection::open(&address, &settings, Purpose::Commands).await;
        let (mut connection, _end) = opened.unwrap();
        connection.info = ServerInfo::read("redis_version:6.2.14");
        connection.hashes = connection.load_scripts().await.unwrap();
        connection
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn below_7_a_script_takes_the_place_of_set_or_get() {
        let server = redis_support::Server::start();
        let connection = below_seven(&server).await;
        let set = |value: &'static str| {
            let request = Request::set("k".into(), value.into(), 60_000, Write::AbsentOrGet);
            let connection = &connection;
            async move { connection.send(request).await.unwrap() }
        };
        assert_eq!(set("1").await, Reply::Nil);
        assert_eq!(set("2").await, Reply::Bytes("1".into()));
        assert_eq!(server.calls("eval") + server.calls("evalsha"), 2);

        let lease = |token: &'static str| {
            let keys = ["l".into(), "{l} F".into()];
            let request = Request::script(Script::Lease, keys)
                .with(token)
                .with_millis(60_000)
                .with_millis(120_000);
            let connection = &connection;
            async move { connection.send(request).await.unwrap() }
        };
        let number = lease("a").await;
        assert!(matches!(number, Reply::Bytes(_)));
        assert_eq!(lease("b").await, Reply::Nil);
        assert_eq!(lease("a").await, number);

        server.raw().command(&["RPUSH", "list", "a"]);
        let request = Request::set("list".into(), "v".into(), 60_000, Write::AbsentOrGet);
        let error = connection.send(request).await.unwrap_err();
        assert!(
            matches!(error, Fault::Refused(refusal) if refusal.to_string().contains("WRONGTYPE"))
        );
    }
}
