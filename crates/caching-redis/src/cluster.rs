//! A Cluster: a link to each primary, and the table of who has which slot.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

use crate::client::{ConnectionSettings, Purpose};
use crate::connection::Connection;
use crate::error::{Attempt, Cause, Fault, Refusal};
use crate::keyspace::SLOTS;
use crate::link::{Link, State};
use crate::locator::Locator;
use crate::reply::Reply;
use crate::server::Expectations;
use crate::url::Address;

/// The table is not asked for more often than this.
const REFRESH_PAUSE: Duration = Duration::from_millis(100);

/// The nodes of a Cluster as far as they are known.
#[derive(Debug)]
pub(crate) struct Cluster {
    seeds: Vec<Address>,
    settings: ConnectionSettings,
    expected: Expectations,
    links: Mutex<HashMap<Address, Arc<Link>>>,
    table: RwLock<Arc<Table>>,
    refreshed: tokio::sync::Mutex<Option<Instant>>,
}

/// Who has which slot.
#[derive(Debug, Default)]
pub(crate) struct Table {
    primaries: Vec<(Address, Arc<Link>)>,
    /// For each slot the index of its primary; empty while nothing is known.
    owners: Vec<Option<u16>>,
}

/// The slots `first` to `last` are at `primary`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    first: usize,
    last: usize,
    primary: Address,
}

impl Table {
    fn owner(&self, slot: u16) -> Option<&Arc<Link>> {
        let index = (*self.owners.get(usize::from(slot))?)?;
        self.primaries
            .get(usize::from(index))
            .map(|primary| &primary.1)
    }

    /// Every primary.
    pub(crate) fn links(&self) -> impl ExactSizeIterator<Item = &Arc<Link>> {
        self.primaries.iter().map(|primary| &primary.1)
    }

    fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.primaries.iter().map(|primary| &primary.0)
    }
}

impl Cluster {
    pub(crate) fn new(
        seeds: Vec<Address>,
        settings: ConnectionSettings,
        expected: Expectations,
    ) -> Self {
        Self {
            seeds,
            settings,
            expected,
            links: Mutex::default(),
            table: RwLock::default(),
            refreshed: tokio::sync::Mutex::new(None),
        }
    }

    /// The table as it is known; asks for it where nothing is known yet.
    ///
    /// # Errors
    /// If no node tells it.
    pub(crate) async fn table(&self) -> Attempt<Arc<Table>> {
        let table = Arc::clone(&self.table.read());
        if !table.owners.is_empty() {
            return Ok(table);
        }
        self.refresh(&table).await
    }

    /// The link to the primary of `slot`.
    ///
    /// # Errors
    /// If it is not known, or nobody has the slot.
    pub(crate) async fn owner(&self, slot: u16) -> Attempt<Arc<Link>> {
        let table = self.table().await?;
        if let Some(link) = table.owner(slot)
            && !link.is_down()
        {
            return Ok(Arc::clone(link));
        }
        // It may be another one's by now.
        let table = self.refresh(&table).await?;
        let link = table.owner(slot).cloned();
        link.ok_or_else(|| Fault::NotSent(Cause::new(format!("no node has slot {slot}"))))
    }

    /// The link to the primary of `slot`, as far as it is known.
    pub(crate) fn known_owner(&self, slot: u16) -> Option<Arc<Link>> {
        self.table.read().owner(slot).cloned()
    }

    /// The link to the node that `refusal`, an answer of `from`, points to.
    pub(crate) fn target(&self, refusal: &Refusal, from: &Address) -> Option<Arc<Link>> {
        let (host, port) = refusal.target()?;
        let host = if host.is_empty() { &from.host } else { host };
        let address = Address {
            host: host.to_owned(),
            port,
        };
        Some(self.link(&address))
    }

    fn link(&self, address: &Address) -> Arc<Link> {
        let mut links = self.links.lock();
        let link = links.entry(address.clone()).or_insert_with(|| {
            let locator = Locator::Fixed(address.clone());
            let settings = self.settings.clone();
            Arc::new(Link::new(
                locator,
                settings,
                Purpose::Commands,
                self.expected,
            ))
        });
        Arc::clone(link)
    }

    /// Asks the nodes for the table, unless somebody has got a newer one than `known` meanwhile.
    ///
    /// # Errors
    /// If no node tells it.
    pub(crate) async fn refresh(&self, known: &Arc<Table>) -> Attempt<Arc<Table>> {
        let mut refreshed = self.refreshed.lock().await;
        let table = Arc::clone(&self.table.read());
        if !Arc::ptr_eq(&table, known) {
            return Ok(table);
        }
        if refreshed.is_some_and(|last| last.elapsed() < REFRESH_PAUSE) && !table.owners.is_empty()
        {
            return Ok(table);
        }
        let result = self.ask_all(&table).await;
        *refreshed = Some(Instant::now());
        let ranges = result?;
        let table = Arc::new(self.build(&ranges));
        *self.table.write() = Arc::clone(&table);
        self.forget_others(&table);
        Ok(table)
    }

    /// Asks one node after the other, those that work first.
    async fn ask_all(&self, table: &Table) -> Attempt<Vec<Range>> {
        let mut addresses: Vec<Address> = table.addresses().cloned().collect();
        for seed in &self.seeds {
            if !addresses.contains(seed) {
                addresses.push(seed.clone());
            }
        }
        addresses.sort_by_key(|address| {
            let links = self.links.lock();
            links.get(address).is_some_and(|link| link.is_down())
        });
        let mut last = Fault::NotSent(Cause::new("no node is named"));
        for address in addresses {
            match self.ask(&address).await {
                Ok(ranges) => return Ok(ranges),
                Err(fault) => last = fault,
            }
        }
        Err(match last {
            Fault::NotSent(cause) | Fault::Unknown(cause) => Fault::NotSent(cause),
            Fault::Refused(refusal) => Fault::NotSent(Cause::new(refusal.to_string())),
        })
    }

    async fn ask(&self, address: &Address) -> Attempt<Vec<Range>> {
        let connection = self.link(address).connection().await?;
        let answer = connection.execute("CLUSTER", vec!["SLOTS".into()]);
        let limit = self.settings.limit / 2;
        let answer = tokio::time::timeout(limit, answer).await;
        let reply = answer.map_err(|_| Fault::not_answered(limit))??;
        let ranges = ranges(reply, &connection)?;
        if ranges.is_empty() {
            return Err(Fault::NotSent(Cause::new("its nodes have no slots yet")));
        }
        Ok(ranges)
    }

    fn build(&self, ranges: &[Range]) -> Table {
        let mut table = Table {
            primaries: Vec::new(),
            owners: vec![None; SLOTS],
        };
        for range in ranges {
            let at = |primary: &(Address, Arc<Link>)| primary.0 == range.primary;
            let index = table.primaries.iter().position(at).unwrap_or_else(|| {
                let primary = (range.primary.clone(), self.link(&range.primary));
                table.primaries.push(primary);
                table.primaries.len() - 1
            });
            for owner in &mut table.owners[range.first..=range.last] {
                *owner = u16::try_from(index).ok();
            }
        }
        table
    }

    /// Ends the links to nodes that are neither primaries nor seeds.
    fn forget_others(&self, table: &Table) {
        self.links.lock().retain(|address, _| {
            self.seeds.contains(address) || table.addresses().any(|primary| primary == address)
        });
    }

    /// How the links to the seeds stand when the attempts that are under way are over: the best
    /// of them.
    pub(crate) async fn settled(&self) -> State {
        let mut best = State::Opening;
        for seed in &self.seeds {
            let state = self.link(seed).settled().await;
            match (&best, &state) {
                (_, State::Up(_)) => return state,
                (State::Opening, _) => best = state,
                _ => {}
            }
        }
        best
    }

    /// Addresses of nodes, any of which tells the messages of all.
    pub(crate) fn any_node(&self) -> Vec<Address> {
        let mut addresses: Vec<Address> = self.table.read().addresses().cloned().collect();
        addresses.extend(self.seeds.iter().cloned());
        addresses
    }
}

/// Reads the answer to `CLUSTER SLOTS`.
fn ranges(reply: Reply, from: &Connection) -> Attempt<Vec<Range>> {
    let index = |reply: Reply| {
        Ok(usize::try_from(reply.number()?)
            .unwrap_or(SLOTS)
            .min(SLOTS - 1))
    };
    let mut ranges = Vec::new();
    for range in reply.list()? {
        let mut parts = range.list()?.into_iter();
        let (Some(first), Some(last), Some(primary)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let mut node = primary.list()?.into_iter();
        let (Some(host), Some(port)) = (node.next(), node.next()) else {
            continue;
        };
        // A node that does not know its own name leaves it out: it is the one that was asked.
        let host = match host.value()? {
            Some(host) if !host.is_empty() && host != "?" => {
                String::from_utf8_lossy(&host).into_owned()
            }
            _ => from.address.host.clone(),
        };
        let (first, last) = (index(first)?, index(last)?);
        if first > last {
            continue;
        }
        let port = u16::try_from(port.number()?).unwrap_or(0);
        ranges.push(Range {
            first,
            last,
            primary: Address { host, port },
        });
    }
    Ok(ranges)
}
