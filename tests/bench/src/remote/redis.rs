//! `GET` of a Redis through one client of fred, to see what one connection can carry.

use std::sync::Arc;

use fred::clients::Client;
use fred::interfaces::{ClientLike, KeysInterface};
use fred::types::config::{Config, ConnectionConfig, ServerConfig, TcpConfig};
use fred::types::{Builder, Expiration, Key};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::measure::{ENTRY_MILLISECONDS, KEYS, VALUE, entry};
use crate::Result;

/// How many entries are on their way while all are written.
const AT_A_TIME: usize = 64;

pub(crate) struct Redis {
    client: Client,
    entries: Vec<Key>,
}

impl Redis {
    /// Connects, and writes every entry.
    pub(crate) async fn connect(port: u16) -> Result<Arc<Self>> {
        let mut builder = Builder::from_config(Config {
            server: ServerConfig::new_centralized("127.0.0.1", port),
            ..Config::default()
        });
        builder.set_connection_config(ConnectionConfig {
            tcp: TcpConfig {
                nodelay: Some(true),
                ..TcpConfig::default()
            },
            ..ConnectionConfig::default()
        });
        let client = builder.build()?;
        client.init().await?;
        let entries: Vec<Key> = (0..KEYS).map(|index| entry(index).into()).collect();
        let life = || Some(Expiration::PX(ENTRY_MILLISECONDS.cast_signed()));
        let written = stream::iter(entries.clone())
            .map(|key| client.set::<(), _, _>(key, &VALUE[..], life(), None, false))
            .buffer_unordered(AT_A_TIME);
        written.try_collect::<()>().await?;
        Ok(Arc::new(Self { client, entries }))
    }

    pub(crate) async fn get(&self, index: usize) -> bool {
        let found: fred::prelude::FredResult<Option<bytes::Bytes>> =
            self.client.get(self.entries[index].clone()).await;
        matches!(found, Ok(Some(_)))
    }
}
