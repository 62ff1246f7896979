use std::path::PathBuf;
use std::time::Duration;

use super::Secret;
use crate::expiration::{TimeToLive, milliseconds, seconds};
use crate::key::KeyPrefix;

const MIB: u64 = 1024 * 1024;

/// The section `XiHan:Caching`, checked.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CachingSettings {
    /// `Provider`: the provider to use (R2).
    pub provider: Option<String>,
    /// `DefaultTimeToLiveSeconds`; none where it is not configured and the store's own counts.
    pub default_time_to_live: Option<TimeToLive>,
    /// `KeyPrefix` (K4).
    pub key_prefix: Option<KeyPrefix>,
    /// `Idempotency:…`
    pub idempotency: IdempotencySettings,
    /// `InMemory:…`
    pub in_memory: InMemorySettings,
    /// `Redis:…`
    pub redis: RedisSettings,
    /// `Remote:…`
    pub remote: RemoteSettings,
}

impl CachingSettings {
    /// What a store uses for `CacheEntryOptions::default()` where nothing is configured: 300 s.
    pub const DEFAULT_TIME_TO_LIVE: Duration = seconds(300);
}

/// The section `XiHan:Caching:Idempotency`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IdempotencySettings {
    /// `TimeToLiveSeconds`: how long an outcome is kept. Default 24 h.
    pub time_to_live: TimeToLive,
    /// `InProgressTimeToLiveSeconds`: how long a crashed process blocks its key. Default 60 s.
    pub in_progress_time_to_live: TimeToLive,
    /// `MaxExecutionSeconds`: how long a marker is extended while its handler runs. Default 1 h.
    pub max_execution: Duration,
    /// `MaxRecordedResponseBytes`: a larger response is recorded as done, without itself (P17).
    /// Default 1 MiB.
    pub max_recorded_response_bytes: u64,
    /// `MaxRequestBytes`: a larger request is 413. Default 2 MiB.
    pub max_request_bytes: u64,
    /// `ShutdownSeconds`: how long a graceful shutdown waits for running work (P15). Default 30 s.
    pub shutdown: Duration,
    /// `AcceptIdempotencyKeyHeader`: whether HTTP also takes `Idempotency-Key` (H1).
    pub accept_idempotency_key_header: bool,
    /// `Fingerprint`: whether a repeat must carry the same request (P10).
    pub fingerprint: bool,
    /// `MaxWaitSeconds`: how long a caller may ask to wait for a call in progress. Read and checked;
    /// no transport lets a caller ask yet.
    pub max_wait: Duration,
}

impl Default for IdempotencySettings {
    fn default() -> Self {
        let ttl = |duration| TimeToLive::new(duration).unwrap_or(TimeToLive::MAX);
        Self {
            time_to_live: ttl(seconds(86_400)),
            in_progress_time_to_live: ttl(seconds(60)),
            max_execution: seconds(3600),
            max_recorded_response_bytes: MIB,
            max_request_bytes: 2 * MIB,
            shutdown: seconds(30),
            accept_idempotency_key_header: false,
            fingerprint: false,
            max_wait: Duration::ZERO,
        }
    }
}

/// The section `XiHan:Caching:InMemory`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InMemorySettings {
    /// `MaxCapacityBytes`: the budget of what may be evicted. Default 256 MiB.
    pub max_capacity_bytes: u64,
    /// `MaxProtectedBytes`: the budget of what must not be (S2). Default 1 GiB.
    pub max_protected_bytes: u64,
}

impl Default for InMemorySettings {
    fn default() -> Self {
        Self {
            max_capacity_bytes: 256 * MIB,
            max_protected_bytes: 1024 * MIB,
        }
    }
}

/// The section `XiHan:Caching:Redis`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisSettings {
    /// `Url`, or the content of `UrlFile`.
    pub url: Option<Secret>,
    /// `RequireNoEviction` (S2).
    pub require_no_eviction: bool,
    /// `OperationTimeoutMilliseconds` (S3). Default 2000.
    pub operation_timeout: Duration,
    /// `CaFile`
    pub ca_file: Option<PathBuf>,
    /// `ClientCertificateFile`
    pub client_certificate_file: Option<PathBuf>,
    /// `ClientKeyFile`
    pub client_key_file: Option<PathBuf>,
}

impl Default for RedisSettings {
    fn default() -> Self {
        Self {
            url: None,
            require_no_eviction: false,
            operation_timeout: milliseconds(2000),
            ca_file: None,
            client_certificate_file: None,
            client_key_file: None,
        }
    }
}

/// The section `XiHan:Caching:Remote`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteSettings {
    /// `Endpoint`
    pub endpoint: Option<String>,
    /// `Token`, or the content of `TokenFile`.
    pub token: Option<Secret>,
    /// `CaFile`
    pub ca_file: Option<PathBuf>,
    /// `ClientCertificateFile`
    pub client_certificate_file: Option<PathBuf>,
    /// `ClientKeyFile`
    pub client_key_file: Option<PathBuf>,
    /// `OperationTimeoutMilliseconds` (S3). Default 2000.
    pub operation_timeout: Duration,
    /// `MaxMessageBytes`. Default 16 MiB.
    pub max_message_bytes: u64,
}

impl Default for RemoteSettings {
    fn default() -> Self {
        Self {
            endpoint: None,
            token: None,
            ca_file: None,
            client_certificate_file: None,
            client_key_file: None,
            operation_timeout: milliseconds(2000),
            max_message_bytes: 16 * MIB,
        }
    }
}
