use std::sync::Arc;

use async_trait::async_trait;
use caching_abstractions::{
    AssemblyProblem, CacheStore, CachingCapabilities, CachingError, CachingProvider,
    CachingSettings, ErrorCode, KeyPrefix, ProviderManifest, RemoteSettings, Result,
};

use crate::client::calls::Calls;
use crate::client::connection::{ConnectionSettings, Transport};
use crate::client::endpoint::Endpoint;
use crate::client::head::Head;
use crate::client::link::State;
use crate::client::store::RemoteStore;
use crate::client::tls;

const ENDPOINT: &str = "XiHan:Caching:Remote:Endpoint";
const TOKEN: &str = "XiHan:Caching:Remote:Token";

/// The provider `remote`: a store behind a gRPC server that all instances share.
///
/// It reads `KeyPrefix` and the section `Remote`; `Remote:Endpoint` is required. An entry without
/// an expiration takes the default of the server's store (E1).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RemoteProvider;

impl RemoteProvider {
    /// The provider's name in configuration.
    pub const NAME: &'static str = "remote";

    /// The provider.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

#[async_trait]
impl CachingProvider for RemoteProvider {
    fn manifest(&self) -> ProviderManifest {
        ProviderManifest::new(Self::NAME)
            .supplies(CachingCapabilities::DISTRIBUTED)
            .networked()
    }

    fn check(&self, settings: &CachingSettings) -> Vec<AssemblyProblem> {
        let read = read(&settings.remote, settings.key_prefix.as_ref());
        read.err().unwrap_or_default()
    }

    async fn start(&self, settings: &CachingSettings) -> Result<Arc<dyn CacheStore>> {
        Ok(Arc::new(RemoteStore::connect(settings).await?))
    }
}

impl RemoteStore {
    /// Connects to the server of `settings`, as an assembly with
    /// [`RemoteProvider`](crate::RemoteProvider) does.
    ///
    /// - Waits for the first attempt to connect and no longer. A server that is away is no error:
    ///   the store answers `CACHING_UNAVAILABLE_001` until it is there (S3).
    /// - Has to be called in a tokio runtime, and the store lives as long as that.
    ///
    /// # Errors
    /// What cannot heal by waiting: settings that are wrong, and a server that answers that it does
    /// not know the token (`CACHING_UNAUTHENTICATED_001`) or does not let it into the key prefix
    /// (`CACHING_FORBIDDEN_001`).
    pub async fn connect(settings: &CachingSettings) -> Result<Self> {
        Self::connect_over(settings, Transport::Session).await
    }

    /// As [`connect`](Self::connect), with the operations sent as `transport` says.
    ///
    /// For whatever stands between here and the server and does not bear long streams.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_over(settings: &CachingSettings, transport: Transport) -> Result<Self> {
        let read = read(&settings.remote, settings.key_prefix.as_ref());
        let connection = read.map_err(|problems| {
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            CachingError::new(ErrorCode::Internal, texts.join("; "))
        })?;
        if settings.remote.token.is_some() && bares_its_token(&connection) {
            tracing::warn!(
                endpoint = %connection.endpoint,
                "the token of the remote store goes over the network in plain text: whoever reads \
                 it can read and change the store; use a grpcs:// endpoint"
            );
        }
        let calls = Calls::new(connection, transport);
        if let State::Down(trouble) = calls.settled().await
            && let Some(error) = trouble.refusal
        {
            return Err(refused(&error, settings));
        }
        Ok(Self::new(calls))
    }
}

/// Whether the token can be read on its way.
fn bares_its_token(settings: &ConnectionSettings) -> bool {
    !settings.endpoint.is_tls && !settings.endpoint.is_loopback()
}

/// What the server has against the caller, and which setting to change.
fn refused(error: &CachingError, settings: &CachingSettings) -> CachingError {
    let said = error.detail();
    let detail = match (error.code(), &settings.remote.token) {
        (ErrorCode::Unauthenticated, None) => {
            format!("the server asks for a token: set {TOKEN} or TokenFile ({said})")
        }
        (ErrorCode::Unauthenticated, Some(_)) => {
            format!("the server does not know the token: correct {TOKEN} or TokenFile ({said})")
        }
        _ => format!(
            "the server does not let the token in: correct XiHan:Caching:KeyPrefix, or {TOKEN} or \
             TokenFile ({said})"
        ),
    };
    CachingError::new(error.code(), detail).with_source(error.clone())
}

/// Reads the section `Remote`.
///
/// # Errors
/// Everything that is wrong with it.
fn read(
    settings: &RemoteSettings,
    prefix: Option<&KeyPrefix>,
) -> Result<ConnectionSettings, Vec<AssemblyProblem>> {
    let Some(endpoint) = &settings.endpoint else {
        return Err(vec![AssemblyProblem::new(
            ENDPOINT,
            "it is not set",
            "set it to an address such as grpcs://cache.internal:50051",
        )]);
    };
    let mut problems = positive(settings);
    let endpoint = match Endpoint::parse(endpoint) {
        Ok(endpoint) => endpoint,
        Err(found) => {
            problems.push(AssemblyProblem::new(ENDPOINT, found.rule, found.remedy));
            return Err(problems);
        }
    };
    let mut connector = None;
    if endpoint.is_tls {
        match tls::connector(settings) {
            Ok(made) => connector = Some(made),
            Err(found) => problems.extend(found),
        }
    } else {
        problems.extend(tls::ignored(settings));
    }
    let head = Head::new(&endpoint, settings.token.as_ref(), prefix);
    if head.is_err() {
        problems.push(AssemblyProblem::new(
            TOKEN,
            "it has characters that no header can carry",
            "use a token of visible ASCII characters",
        ));
    }
    let (Ok(head), true) = (head, problems.is_empty()) else {
        return Err(problems);
    };
    Ok(ConnectionSettings {
        endpoint,
        head,
        tls: connector,
        limit: settings.operation_timeout,
        longest: usize::try_from(settings.max_message_bytes).unwrap_or(usize::MAX),
    })
}

fn positive(settings: &RemoteSettings) -> Vec<AssemblyProblem> {
    let mut problems = Vec::new();
    if settings.operation_timeout.is_zero() {
        problems.push(AssemblyProblem::new(
            "XiHan:Caching:Remote:OperationTimeoutMilliseconds",
            "`0` is not positive",
            "give an operation time, or leave the key out for its default",
        ));
    }
    let longest = settings.max_message_bytes;
    if !(LEAST_MESSAGE..=u64::from(u32::MAX)).contains(&longest) {
        problems.push(AssemblyProblem::new(
            "XiHan:Caching:Remote:MaxMessageBytes",
            format!(
                "`{longest}` is not between {LEAST_MESSAGE} and {}",
                u32::MAX
            ),
            "give a message room for a key and a value, or leave the key out for its default",
        ));
    }
    problems
}

/// A message that holds any key and any token.
const LEAST_MESSAGE: u64 = 8 * 1024;
