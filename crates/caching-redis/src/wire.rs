//! How a command finds its server, and what happens when something goes wrong on the way.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::{ConnectionSettings, Purpose};
use crate::cluster::Cluster;
use crate::connection::Connection;
use crate::error::{Attempt, Fault, RefusalKind};
use crate::keyspace::slot;
use crate::link::{InFlight, Link, State};
use crate::locator::Locator;
use crate::reply::Reply;
use crate::request::{Repeat, Request};
use crate::server::Expectations;
use crate::url::{Target, Topology};

/// The way to the server or servers.
#[derive(Debug)]
pub(crate) struct Wire {
    route: Route,
    settings: ConnectionSettings,
}

#[derive(Debug)]
enum Route {
    One(Arc<Link>, Locator),
    Many(Cluster),
}

/// Which attempts of a call may have reached the server.
#[derive(Debug, Default)]
struct Sent {
    /// The one that is under way.
    now: bool,
    /// One before it, whose answer is lost. Nothing that happens later can undo this (S4).
    earlier: bool,
}

/// An attempt that failed: where, and how.
type Failed = (Arc<Link>, Arc<Connection>, Fault);

/// No command is redirected more often than this; a Cluster that sends in circles is not ready.
const REDIRECTIONS: u32 = 16;

impl Wire {
    /// Begins to connect, in tasks of the current runtime.
    pub(crate) fn new(target: &Target, settings: ConnectionSettings, no_eviction: bool) -> Self {
        let expected = Expectations {
            cluster: matches!(target.topology, Topology::Cluster(_)),
            primary: !matches!(target.topology, Topology::Cluster(_)),
            no_eviction,
        };
        let one = |locator: Locator| {
            let link = Link::new(
                locator.clone(),
                settings.clone(),
                Purpose::Commands,
                expected,
            );
            Route::One(Arc::new(link), locator)
        };
        let route = match &target.topology {
            Topology::Single(address) => one(Locator::Fixed(address.clone())),
            Topology::Sentinel {
                sentinels,
                service,
                login,
            } => one(Locator::Sentinels {
                sentinels: sentinels.clone(),
                service: service.clone(),
                login: login.clone(),
                next: 0,
            }),
            Topology::Cluster(seeds) => {
                Route::Many(Cluster::new(seeds.clone(), settings.clone(), expected))
            }
        };
        Self { route, settings }
    }

    /// How it stands when the first attempts to connect are over.
    pub(crate) async fn settled(&self) -> State {
        match &self.route {
            Route::One(link, _) => link.settled().await,
            Route::Many(cluster) => cluster.settled().await,
        }
    }

    /// The time limit of one operation.
    pub(crate) fn limit(&self) -> Duration {
        self.settings.limit
    }

    /// Whether there are several primaries.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.route, Route::Many(_))
    }

    /// A link for messages.
    pub(crate) fn message_link(&self) -> Link {
        let locator = match &self.route {
            Route::One(_, locator) => locator.clone(),
            Route::Many(cluster) => Locator::AnyOf {
                addresses: cluster.any_node(),
                next: 0,
            },
        };
        let expected = Expectations {
            cluster: matches!(self.route, Route::Many(_)),
            primary: matches!(self.route, Route::One(..)),
            no_eviction: false,
        };
        Link::new(locator, self.settings.clone(), Purpose::Messages, expected)
    }

    /// The links to every primary.
    pub(crate) async fn primaries(&self) -> Attempt<Vec<Arc<Link>>> {
        match &self.route {
            Route::One(link, _) => Ok(vec![Arc::clone(link)]),
            Route::Many(cluster) => {
                let table = cluster.table().await?;
                let table = cluster.refresh(&table).await?;
                Ok(table.links().cloned().collect())
            }
        }
    }

    /// Has a request executed within the time limit; `make` makes it for each attempt.
    ///
    /// # Cancellation safety
    /// When the future is dropped, or the limit is over, nothing of the request stays in a queue
    /// of this process for longer than the time limit.
    pub(crate) async fn call(
        &self,
        make: impl Fn() -> Request + Sync,
        repeat: Repeat,
    ) -> Attempt<Reply> {
        let limit = self.settings.limit;
        let begun = Instant::now();
        // Nearly every call ends here, so this way is short and everything else lies apart.
        let request = make();
        let Some((link, connection)) = self.standing(&request) else {
            return Box::pin(self.go_on(begun, None, &make, repeat)).await;
        };
        let in_flight = InFlight::new(&connection, begun, limit);
        let answer = pin!(connection.send(request));
        let Ok(result) = timeout_at(begun + limit, answer).await else {
            return Err(Fault::not_answered(limit));
        };
        in_flight.answered();
        match result {
            Ok(reply) => Ok(reply),
            Err(fault) => {
                let failed = Some((link, Arc::clone(&connection), fault));
                Box::pin(self.go_on(begun, failed, &make, repeat)).await
            }
        }
    }

    /// Goes on with a call until its time is over, after a first attempt that failed or without.
    async fn go_on(
        &self,
        begun: Instant,
        failed: Option<Failed>,
        make: &(dyn Fn() -> Request + Sync),
        repeat: Repeat,
    ) -> Attempt<Reply> {
        let limit = self.settings.limit;
        let mut sent = Sent::default();
        let call = self.attempts(failed, make, repeat, &mut sent);
        match timeout_at(begun + limit, call).await {
            Ok(Err(fault)) if sent.earlier => Err(fault.after_a_lost_answer()),
            Ok(result) => result,
            Err(_) if sent.now || sent.earlier => Err(Fault::not_answered(limit)),
            Err(_) => Err(match Fault::not_answered(limit) {
                Fault::Unknown(cause) => Fault::NotSent(cause),
                other => other,
            }),
        }
    }

    async fn attempts(
        &self,
        mut failed: Option<Failed>,
        make: &(dyn Fn() -> Request + Sync),
        repeat: Repeat,
        sent: &mut Sent,
    ) -> Attempt<Reply> {
        let slot = match self.route {
            Route::One(..) => 0,
            Route::Many(_) => slot(make().slot_key()),
        };
        let mut redirections = 0;
        let mut asked = None;
        let mut is_text = false;
        loop {
            let (link, connection, fault) = if let Some(failed) = failed.take() {
                failed
            } else {
                let is_asking = asked.is_some();
                let link = match asked.take() {
                    Some(link) => link,
                    None => self.link(slot).await?,
                };
                let connection = match link.connection().await {
                    Ok(connection) => connection,
                    Err(fault) => match &self.route {
                        // The slot may be another node's by now.
                        Route::Many(cluster) if redirections == 0 => {
                            redirections += 1;
                            let table = cluster.table().await?;
                            cluster.refresh(&table).await?;
                            continue;
                        }
                        _ => return Err(fault),
                    },
                };
                let in_flight = link.in_flight(&connection);
                sent.now = true;
                let result = match (is_asking, is_text) {
                    (true, _) => connection.send_asking(make()).await,
                    (false, true) => connection.send_text(make()).await,
                    (false, false) => connection.send(make()).await,
                };
                in_flight.answered();
                match result {
                    Ok(reply) => return Ok(reply),
                    Err(fault) => (link, connection, fault),
                }
            };
            match fault {
                Fault::Refused(refusal) if refusal.is_of_a_lost_script() && !is_text => {
                    sent.now = false;
                    is_text = true;
                }
                Fault::Refused(refusal) => {
                    sent.now = false;
                    if refusal.kind == RefusalKind::ReadOnly {
                        // Another server is, or soon will be, the primary.
                        connection.close();
                    }
                    redirections += 1;
                    let Route::Many(cluster) = &self.route else {
                        return Err(Fault::Refused(refusal));
                    };
                    let is_passing = refusal.kind == RefusalKind::TryAgain;
                    if redirections > REDIRECTIONS && !is_passing {
                        return Err(Fault::Refused(refusal));
                    }
                    match refusal.kind {
                        RefusalKind::Moved => {
                            let table = cluster.table().await?;
                            cluster.refresh(&table).await?;
                            asked = None;
                        }
                        RefusalKind::Ask => {
                            asked = cluster.target(&refusal, &connection.address);
                        }
                        RefusalKind::TryAgain => pause().await,
                        _ => return Err(Fault::Refused(refusal)),
                    }
                }
                // Too many wait to be sent.
                fault @ Fault::NotSent(_) if !connection.is_closed() => return Err(fault),
                Fault::NotSent(_) => sent.now = false,
                fault @ Fault::Unknown(_) => {
                    sent.earlier = true;
                    connection.close();
                    if repeat == Repeat::Never {
                        return Err(fault);
                    }
                }
            }
            if connection.is_closed() {
                // The time limit of the call ends this.
                self.recovered(&link).await;
            }
        }
    }

    /// Waits until there may be a connection again.
    async fn recovered(&self, link: &Link) {
        match &self.route {
            Route::One(..) => link.works().await,
            // The slots of the lost node may come to another one.
            Route::Many(_) => {
                let _ = tokio::time::timeout(Duration::from_millis(100), link.works()).await;
            }
        }
    }

    /// Where `request` goes, if that is known and works.
    fn standing(&self, request: &Request) -> Option<(Arc<Link>, Arc<Connection>)> {
        let link = match &self.route {
            Route::One(link, _) => Arc::clone(link),
            Route::Many(cluster) => cluster.known_owner(slot(request.slot_key()))?,
        };
        let connection = link.standing()?;
        (!connection.is_closed()).then_some((link, connection))
    }

    async fn link(&self, slot: u16) -> Attempt<Arc<Link>> {
        match &self.route {
            Route::One(link, _) => Ok(Arc::clone(link)),
            Route::Many(cluster) => cluster.owner(slot).await,
        }
    }

    /// Queues `request` where its key is, if there is a connection; waits for nothing.
    pub(crate) fn send_and_forget(&self, request: Request) {
        if let Some((_, connection)) = self.standing(&request) {
            connection.send_and_forget(request);
        }
    }

    /// Has a command without a key executed on one server within the time limit.
    pub(crate) async fn call_on(
        &self,
        link: &Link,
        name: &'static str,
        arguments: Vec<fred::types::Value>,
    ) -> Attempt<(Reply, Arc<Connection>)> {
        let limit = self.settings.limit;
        let call = async {
            loop {
                let connection = link.connection().await?;
                let in_flight = link.in_flight(&connection);
                let result = connection.execute(name, arguments.clone()).await;
                in_flight.answered();
                match result {
                    Ok(reply) => return Ok((reply, connection)),
                    Err(fault @ Fault::Refused(_)) => return Err(fault),
                    Err(fault @ Fault::NotSent(_)) if !connection.is_closed() => return Err(fault),
                    Err(_) => {
                        connection.close();
                        link.works().await;
                    }
                }
            }
        };
        let result = tokio::time::timeout(limit, call).await;
        result.unwrap_or_else(|_| Err(Fault::not_answered(limit)))
    }
}

/// Long enough for a key to move, short enough not to be felt.
async fn pause() {
    let milliseconds = rand::rng().random_range(5..20);
    sleep(Duration::from_millis(milliseconds)).await;
}
