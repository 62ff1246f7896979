use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use caching_abstractions::CacheStore;
use rustls::ServerConfig;
use tokio::net::{TcpListener, ToSocketAddrs, lookup_host};
use tonic::service::Routes;

use super::access::Gate;
use super::error::ServerError;
use super::guard::StoreService;
use super::health::HealthService;
use super::limits::Limits;
use super::listen::Server;
use super::reflection::{ReflectionService, V1, V1Alpha};
use super::shared::Shared;
use super::tls::TlsSettings;
use super::token::AccessToken;

/// A [`CacheStore`] as a gRPC server, or as services for somebody else's.
///
/// - [`bind`](Self::bind) gives a server of its own, with every limit in [`Limits`].
/// - [`routes`](Self::routes), or the services one by one, are mounted in a tonic server. What
///   concerns connections (TLS, their number, their handshake) is then that server's business;
///   tokens and the message limit are kept here.
///
/// Clones are one server.
///
/// ```no_run
/// use std::sync::Arc;
/// use caching_abstractions::CacheStore;
/// use caching_remote::server::{AccessToken, StoreServer};
///
/// # async fn serve(store: Arc<dyn CacheStore>) -> Result<(), Box<dyn std::error::Error>> {
/// let server = StoreServer::builder(store)
///     .tokens(AccessToken::from_file("/run/secrets/tokens")?)
///     .build()?
///     .bind("127.0.0.1:6380")
///     .await?;
/// println!("listening on {}", server.local_address());
/// server.run_until(std::future::pending()).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StoreServer {
    gate: Arc<Gate>,
    tls: Option<Arc<ServerConfig>>,
    insecure: bool,
    reflection: (ReflectionService<V1>, ReflectionService<V1Alpha>),
}

/// Settings for a [`StoreServer`].
#[derive(Debug)]
pub struct StoreServerBuilder {
    store: Arc<dyn CacheStore>,
    tokens: Vec<AccessToken>,
    tls: Option<TlsSettings>,
    insecure: bool,
    limits: Limits,
}

impl StoreServerBuilder {
    /// Lets in who shows `token`. Without any token everybody is let in.
    #[must_use]
    pub fn token(mut self, token: AccessToken) -> Self {
        self.tokens.push(token);
        self
    }

    /// Lets in who shows one of `tokens`.
    #[must_use]
    pub fn tokens(mut self, tokens: impl IntoIterator<Item = AccessToken>) -> Self {
        self.tokens.extend(tokens);
        self
    }

    /// Speaks TLS, and nothing else.
    #[must_use]
    pub fn tls(mut self, tls: TlsSettings) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Allows an address that other machines reach without token or without TLS. Everybody who
    /// reaches it can then read or change everything, or listen in.
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// What the server grants at most.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// If a token was given twice, a certificate or key cannot be used, or a limit is zero.
    pub fn build(self) -> Result<StoreServer, ServerError> {
        self.limits.check()?;
        check_tokens(&self.tokens)?;
        let tls = self.tls.as_ref().map(TlsSettings::configuration);
        let shared = Arc::new(Shared::new(self.limits));
        let gate = Arc::new(Gate::new(self.store, self.tokens, shared));
        Ok(StoreServer {
            reflection: (
                ReflectionService::v1(Arc::clone(&gate))?,
                ReflectionService::v1alpha(Arc::clone(&gate))?,
            ),
            gate,
            tls: tls.transpose()?.map(Arc::new),
            insecure: self.insecure,
        })
    }
}

impl StoreServer {
    /// Settings for a server of `store`.
    pub fn builder(store: Arc<dyn CacheStore>) -> StoreServerBuilder {
        StoreServerBuilder {
            store,
            tokens: Vec::new(),
            tls: None,
            insecure: false,
            limits: Limits::default(),
        }
    }

    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// - If other machines reach the address and the server lacks a token or TLS, unless that was
    ///   allowed with [`insecure`](StoreServerBuilder::insecure). Nothing is opened then.
    /// - If the operating system refuses.
    pub async fn bind(
        &self,
        address: impl ToSocketAddrs + fmt::Debug,
    ) -> Result<Server, ServerError> {
        let text = format!("{address:?}");
        let failed = |source| ServerError::Listen {
            address: text.clone(),
            source,
        };
        let addresses: Vec<SocketAddr> = lookup_host(address).await.map_err(failed)?.collect();
        for address in &addresses {
            self.check_exposure(*address)?;
        }
        let listener = TcpListener::bind(&*addresses).await.map_err(failed)?;
        self.listen(listener)
    }

    /// Takes a socket that listens already.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn listen(&self, listener: TcpListener) -> Result<Server, ServerError> {
        let failed = |source| ServerError::Listen {
            address: "the given socket".to_owned(),
            source,
        };
        let address = listener.local_addr().map_err(failed)?;
        self.check_exposure(address)?;
        Ok(Server::new(self.clone(), listener, address))
    }

    /// Serves a socket that listens already, until `shutdown` is done.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServerError> {
        self.listen(listener)?.run_until(shutdown).await;
        Ok(())
    }

    /// The store, health and reflection, for `tonic::transport::Server::add_routes`.
    pub fn routes(&self) -> Routes {
        let (v1, v1alpha) = self.reflection_services();
        Routes::new(self.store_service())
            .add_service(self.health_service())
            .add_service(v1)
            .add_service(v1alpha)
    }

    /// The service `xihan.caching.v1.Store`.
    pub fn store_service(&self) -> StoreService {
        StoreService::new(Arc::clone(&self.gate))
    }

    /// The service `grpc.health.v1.Health`.
    pub fn health_service(&self) -> HealthService {
        HealthService::new(Arc::clone(&self.gate))
    }

    /// Server reflection, in both of its versions.
    pub fn reflection_services(&self) -> (ReflectionService<V1>, ReflectionService<V1Alpha>) {
        self.reflection.clone()
    }

    /// Ends what lasts, for services that are mounted elsewhere; [`Server`] does it by itself.
    ///
    /// - Health says NOT_SERVING, waits for leases and watches end, sessions end once they have
    ///   answered what has begun. Later ones end at once.
    /// - Waits until every operation that has begun has ended, also of clients that have left.
    pub async fn shut_down(&self) {
        let shared = self.shared();
        shared.draining.cancel();
        shared.closing.cancel();
        shared.running.close();
        shared.running.wait().await;
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.gate.shared
    }

    pub(super) fn tls(&self) -> Option<&Arc<ServerConfig>> {
        self.tls.as_ref()
    }

    /// Refuses an address at which everybody on the network would be let in, or could listen in.
    fn check_exposure(&self, address: SocketAddr) -> Result<(), ServerError> {
        if self.insecure || address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        let missing = match (self.gate.has_tokens(), self.tls.is_some()) {
            (true, true) => return Ok(()),
            (false, true) => "token",
            (true, false) => "TLS",
            (false, false) => "token and no TLS",
        };
        Err(ServerError::Exposed { address, missing })
    }
}

/// Refuses a token that would open two things: nobody could tell which.
fn check_tokens(tokens: &[AccessToken]) -> Result<(), ServerError> {
    let mut known = HashSet::new();
    if tokens.iter().all(|token| known.insert(token.digest())) {
        return Ok(());
    }
    Err(ServerError::token(
        "one of them was given twice; bind each to one prefix, or to none",
    ))
}

impl fmt::Debug for StoreServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreServer")
            .field("gate", &self.gate)
            .field("tls", &self.tls.is_some())
            .field("insecure", &self.insecure)
            .finish_non_exhaustive()
    }
}
