//! Listing keys.
//!
//! `SCAN` gives a key that stays where it is at least once. Two things can make a key be missed:
//! the server changes, which makes its cursors worthless, or the key moves from a node that was
//! not read yet to one that was. After either, everything is read once more, see `layout`; what was
//! given once is not given again.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use caching_abstractions::{CacheKey, Result};
use fred::types::Value;
use futures_util::stream::{self, BoxStream, StreamExt};

use crate::error::{Attempt, Cause, Fault, Place};
use crate::keyspace::Keyspace;
use crate::layout::{Layout, Rounds};
use crate::link::Link;
use crate::wire::Wire;

/// How many keys one command is to look at.
const PAGE: i64 = 1000;
/// A Cluster that moves keys for longer than so many rounds cannot be listed.
const MOST_ROUNDS: u32 = 50;

/// Every key that begins with `prefix`.
pub(crate) fn keys(
    wire: Arc<Wire>,
    keyspace: Keyspace,
    prefix: &str,
) -> BoxStream<'static, Result<CacheKey>> {
    let listing = Listing {
        wire,
        pattern: keyspace.pattern(prefix),
        prefix: prefix.to_owned(),
        keyspace,
        found: VecDeque::new(),
        seen: HashSet::new(),
        round: None,
        rounds: Rounds::default(),
        is_over: false,
    };
    stream::unfold(listing, |mut listing| async move {
        let next = listing.next().await?;
        Some((next, listing))
    })
    .boxed()
}

struct Listing {
    wire: Arc<Wire>,
    keyspace: Keyspace,
    prefix: String,
    pattern: String,
    found: VecDeque<CacheKey>,
    seen: HashSet<CacheKey>,
    round: Option<Round>,
    rounds: Rounds,
    is_over: bool,
}

/// One reading of all nodes.
struct Round {
    nodes: VecDeque<Arc<Link>>,
    cursor: Vec<u8>,
    /// The process that the cursor belongs to.
    run_id: Option<String>,
    /// What the nodes said of their slots when the round began.
    layout: Layout,
    is_disturbed: bool,
}

impl Listing {
    async fn next(&mut self) -> Option<Result<CacheKey>> {
        loop {
            if let Some(key) = self.found.pop_front() {
                return Some(Ok(key));
            }
            if self.is_over {
                return None;
            }
            if let Err(fault) = self.step().await {
                self.is_over = true;
                let place = Place {
                    operation: "keys",
                    key: None,
                };
                return Some(Err(fault.at(place)));
            }
        }
    }

    /// Reads one page more, or begins or ends a round.
    async fn step(&mut self) -> Attempt<()> {
        let Some(mut round) = self.round.take() else {
            self.round = Some(self.begin().await?);
            return Ok(());
        };
        let Some(node) = round.nodes.front() else {
            return self.end(round).await;
        };
        let arguments = vec![
            Value::Bytes(round.cursor.clone().into()),
            "MATCH".into(),
            self.pattern.as_str().into(),
            "COUNT".into(),
            PAGE.into(),
        ];
        let (reply, connection) = self.wire.call_on(node, "SCAN", arguments).await?;
        let run_id = connection.info.run_id.clone();
        if round
            .run_id
            .as_ref()
            .is_some_and(|before| *before != run_id)
        {
            round.is_disturbed = true;
        }
        round.run_id = Some(run_id);
        let mut parts = reply.list()?.into_iter();
        let (Some(cursor), Some(page)) = (parts.next(), parts.next()) else {
            return Err(crate::reply::unexpected());
        };
        for stored in page.list()? {
            let Some(stored) = stored.value()? else {
                continue;
            };
            if let Some(key) = self.keyspace.key(&stored)
                && key.as_str().starts_with(&self.prefix)
                && self.seen.insert(key.clone())
            {
                self.found.push_back(key);
            }
        }
        round.cursor = cursor.value()?.unwrap_or_default().to_vec();
        if round.cursor == b"0" {
            round.nodes.pop_front();
            round.run_id = None;
        }
        self.round = Some(round);
        Ok(())
    }

    async fn begin(&mut self) -> Attempt<Round> {
        if self.rounds.finished() >= MOST_ROUNDS {
            let cause = Cause::new("its keys move from node to node all the time");
            return Err(Fault::Unknown(cause));
        }
        let nodes = self.wire.primaries().await?;
        Ok(Round {
            layout: self.layout(&nodes).await?,
            nodes: nodes.into(),
            cursor: b"0".to_vec(),
            run_id: None,
            is_disturbed: false,
        })
    }

    /// Begins another round where keys may have been missed.
    async fn end(&mut self, round: Round) -> Attempt<()> {
        let nodes = self.wire.primaries().await?;
        let layout = self.layout(&nodes).await?;
        self.is_over = self
            .rounds
            .finish(&round.layout, &layout, round.is_disturbed);
        Ok(())
    }

    /// Where the slots of a Cluster are, and nothing for one server.
    async fn layout(&self, nodes: &[Arc<Link>]) -> Attempt<Layout> {
        if !self.wire.is_cluster() {
            return Ok(Layout::default());
        }
        let mut answers = Vec::with_capacity(nodes.len());
        for node in nodes {
            let arguments = vec!["NODES".into()];
            let (reply, _) = self.wire.call_on(node, "CLUSTER", arguments).await?;
            answers.push(reply.text()?);
        }
        Ok(Layout::read(&answers))
    }
}
