use std::sync::Arc;

use async_trait::async_trait;
use caching_abstractions::{
    AssemblyProblem, CacheStore, CachingCapabilities, CachingError, CachingProvider,
    CachingSettings, ErrorCode, ProviderManifest, RedisSettings, Result, TimeToLive,
};

use crate::client::ConnectionSettings;
use crate::keyspace::Keyspace;
use crate::link::State;
use crate::store::RedisStore;
use crate::tls;
use crate::url::Target;
use crate::wire::Wire;

const URL: &str = "XiHan:Caching:Redis:Url";

/// The provider `redis`: a store on Redis or Valkey that all instances share.
///
/// It reads `DefaultTimeToLiveSeconds`, `KeyPrefix` and the section `Redis`; `Redis:Url` (or
/// `Redis:UrlFile`) is required.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RedisProvider;

impl RedisProvider {
    /// The provider's name in configuration.
    pub const NAME: &'static str = "redis";

    /// The provider.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

#[async_trait]
impl CachingProvider for RedisProvider {
    fn manifest(&self) -> ProviderManifest {
        ProviderManifest::new(Self::NAME)
            .supplies(CachingCapabilities::DISTRIBUTED)
            .networked()
    }

    fn check(&self, settings: &CachingSettings) -> Vec<AssemblyProblem> {
        read(&settings.redis).err().unwrap_or_default()
    }

    async fn start(&self, settings: &CachingSettings) -> Result<Arc<dyn CacheStore>> {
        Ok(Arc::new(RedisStore::connect(settings).await?))
    }
}

impl RedisStore {
    /// Connects to the Redis of `settings`, as an assembly with
    /// [`RedisProvider`](crate::RedisProvider) does.
    ///
    /// - Waits for the first attempt to connect and no longer. A server that is away is no error:
    ///   the store answers `CACHING_UNAVAILABLE_001` until it is there (S3).
    /// - Has to be called in a tokio runtime, and the store lives as long as that.
    ///
    /// # Errors
    /// What cannot heal by waiting: settings that are wrong, a server older than 6.2, a login that
    /// the server refuses, a Cluster behind the URL of one server and the other way round, and a
    /// server that evicts where `RequireNoEviction` is set.
    pub async fn connect(settings: &CachingSettings) -> Result<Self> {
        let (target, connection) = read(&settings.redis).map_err(|problems| {
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            CachingError::new(ErrorCode::Internal, texts.join("; "))
        })?;
        let wire = Wire::new(&target, connection, settings.redis.require_no_eviction);
        match wire.settled().await {
            State::Down(trouble) if trouble.is_login => {
                let detail = format!("redis refuses the user or password of {URL}");
                return Err(CachingError::new(ErrorCode::Unauthenticated, detail)
                    .with_source(trouble.cause));
            }
            State::Down(trouble) if trouble.is_lasting => {
                let detail = format!("redis cannot be used: {}", trouble.cause);
                return Err(CachingError::unavailable(detail).with_source(trouble.cause));
            }
            State::Up(_) | State::Down(_) | State::Opening => {}
        }
        let default_time_to_live = match settings.default_time_to_live {
            Some(time_to_live) => time_to_live,
            None => TimeToLive::new(CachingSettings::DEFAULT_TIME_TO_LIVE)?,
        };
        let keyspace = Keyspace::new(settings.key_prefix.clone(), target.database);
        Ok(Self::new(wire, keyspace, default_time_to_live))
    }
}

/// Reads the section `Redis`.
///
/// # Errors
/// Everything that is wrong with it.
fn read(settings: &RedisSettings) -> Result<(Target, ConnectionSettings), Vec<AssemblyProblem>> {
    let Some(url) = &settings.url else {
        return Err(vec![AssemblyProblem::new(
            URL,
            "it is not set",
            "set it, or UrlFile, to a URL such as redis://localhost:6379",
        )]);
    };
    let mut problems = Vec::new();
    if settings.operation_timeout.is_zero() {
        problems.push(AssemblyProblem::new(
            "XiHan:Caching:Redis:OperationTimeoutMilliseconds",
            "`0` is not positive",
            "give an operation time, or leave the key out for its default",
        ));
    }
    let target = match Target::parse(url.expose()) {
        Ok(target) => target,
        Err(found) => {
            let problem =
                |found: crate::url::UrlProblem| AssemblyProblem::new(URL, found.rule, found.remedy);
            problems.extend(found.into_iter().map(problem));
            return Err(problems);
        }
    };
    let mut connector = None;
    if target.is_tls {
        match tls::connector(settings) {
            Ok(made) => connector = Some(made),
            Err(found) => problems.extend(found),
        }
    } else {
        problems.extend(tls::ignored(settings));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let connection = ConnectionSettings {
        login: target.login.clone(),
        database: target.database,
        tls: connector,
        limit: settings.operation_timeout,
    };
    Ok((target, connection))
}
