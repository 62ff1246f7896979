//! Where the server to connect to is at present.

use fred::types::Value;

use crate::client::{ConnectionSettings, Purpose};
use crate::connection::Connection;
use crate::error::{Attempt, Cause, Fault};
use crate::url::{Address, Login};

/// A way to find the server.
#[derive(Clone, Debug)]
pub(crate) enum Locator {
    /// It is always there; a name is resolved anew each time.
    Fixed(Address),
    /// Any of these will do; each is tried in turn.
    AnyOf {
        addresses: Vec<Address>,
        next: usize,
    },
    /// Sentinels know. The one that answered last is asked first the next time, unless what it
    /// said was of no use.
    Sentinels {
        sentinels: Vec<Address>,
        service: String,
        login: Login,
        next: usize,
    },
}

impl Locator {
    /// The address to try now.
    ///
    /// # Errors
    /// If no sentinel knows it.
    pub(crate) async fn locate(&mut self, settings: &ConnectionSettings) -> Attempt<Address> {
        match self {
            Self::Fixed(address) => Ok(address.clone()),
            Self::AnyOf { addresses, next } => {
                let address = &addresses[*next % addresses.len()];
                *next += 1;
                Ok(address.clone())
            }
            Self::Sentinels {
                sentinels,
                service,
                login,
                next,
            } => {
                let settings = ConnectionSettings {
                    login: login.clone(),
                    database: 0,
                    ..settings.clone()
                };
                let mut last = Fault::NotSent(Cause::new("no sentinel is named"));
                for _ in 0..sentinels.len() {
                    let sentinel = &sentinels[*next % sentinels.len()];
                    // Another one next time: this one may be cut off and know an old primary only.
                    *next += 1;
                    match ask(sentinel, service, &settings).await {
                        Ok(address) => return Ok(address),
                        Err(fault) => last = fault,
                    }
                }
                Err(last)
            }
        }
    }
}

/// What `sentinel` says is the address of the primary.
async fn ask(sentinel: &Address, service: &str, settings: &ConnectionSettings) -> Attempt<Address> {
    let limit = settings.limit;
    let answer = async {
        let (connection, _end) =
            Connection::open_bare(sentinel, settings, Purpose::Commands).await?;
        let arguments: Vec<Value> = vec!["GET-MASTER-ADDR-BY-NAME".into(), service.into()];
        connection.execute("SENTINEL", arguments).await
    };
    let answer = tokio::time::timeout(limit, answer).await;
    let reply = answer.map_err(|_| Fault::not_answered(limit))??;
    let unknown = || {
        let text = format!("the sentinel at {sentinel} knows no service of that name");
        Fault::NotSent(Cause::new(text))
    };
    let mut parts = reply.list().map_err(|_| unknown())?.into_iter();
    let (Some(host), Some(port)) = (parts.next(), parts.next()) else {
        return Err(unknown());
    };
    let port = u16::try_from(port.number()?).map_err(|_| unknown())?;
    Ok(Address {
        host: host.text()?,
        port,
    })
}
