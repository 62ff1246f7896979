use super::Configuration;
use super::reader::Reader;
use super::settings::{
    CachingSettings, IdempotencySettings, InMemorySettings, RedisSettings, RemoteSettings,
};
use crate::capability::{AssemblyError, AssemblyProblem};
use crate::key::KeyPrefix;

impl CachingSettings {
    /// The section that holds these settings.
    pub const SECTION: &'static str = "XiHan:Caching";

    /// Checks the whole section `XiHan:Caching` (C1).
    ///
    /// Files that only a provider other than the configured one needs are not opened.
    ///
    /// # Errors
    /// Everything that is wrong, at once: values of a wrong type or out of range, unknown keys,
    /// a secret that is given twice or whose file cannot be read. Each problem names the key, where
    /// it stands, the value (never a secret's), the rule and the remedy.
    pub fn from_configuration(configuration: &Configuration) -> Result<Self, AssemblyError> {
        let (settings, problems) = Self::read(configuration, None);
        AssemblyError::check(problems)?;
        Ok(settings)
    }

    /// As [`from_configuration`](Self::from_configuration), for the provider that was `selected`
    /// and with the default in place of each value that is wrong.
    ///
    /// For an assembly that goes on to find the problems of other parts.
    pub fn read(
        configuration: &Configuration,
        selected: Option<&str>,
    ) -> (Self, Vec<AssemblyProblem>) {
        let mut reader = Reader::new(configuration, Self::SECTION);
        reader.check_neighbours(configuration, "XiHan", "Caching");
        let provider = reader.text("Provider");
        let selected = selected.or(provider.as_deref()).map(str::to_owned);
        let is_needed = |name: &str| {
            selected
                .as_ref()
                .is_none_or(|selected| selected.eq_ignore_ascii_case(name))
        };
        let default_time_to_live = reader.optional_seconds(
            "DefaultTimeToLiveSeconds",
            Self::DEFAULT_TIME_TO_LIVE.as_secs(),
        );
        if default_time_to_live.is_some() && selected.is_some() && is_needed("remote") {
            reader.note(
                "DefaultTimeToLiveSeconds",
                "the provider remote takes the default of its server",
                "remove it here and set it at the server",
            );
        }
        let settings = Self {
            default_time_to_live,
            key_prefix: key_prefix(&mut reader),
            idempotency: idempotency(&mut reader),
            in_memory: in_memory(&mut reader),
            redis: redis(&mut reader, is_needed("redis")),
            remote: remote(&mut reader, is_needed("remote")),
            provider,
        };
        (settings, reader.finish())
    }
}

fn key_prefix(reader: &mut Reader<'_>) -> Option<KeyPrefix> {
    reader.value("KeyPrefix", |value| {
        let text = value.to_string();
        KeyPrefix::new(text.as_str()).map_err(|error| {
            let reason = error.parameter("reason").unwrap_or_default();
            (
                format!("`{}` is no key prefix: {reason}", text.escape_default()),
                "set it to 1 to 512 characters without white space, control characters and `:`"
                    .to_owned(),
            )
        })
    })
}

fn idempotency(reader: &mut Reader<'_>) -> IdempotencySettings {
    let default = IdempotencySettings::default();
    let in_progress_time_to_live = reader.seconds(
        "Idempotency:InProgressTimeToLiveSeconds",
        default.in_progress_time_to_live,
    );
    let most = reader.optional_seconds(
        "Idempotency:MaxExecutionSeconds",
        default.max_execution.as_secs(),
    );
    let max_execution = most.map_or(default.max_execution, |most| most.as_duration());
    let least = in_progress_time_to_live.as_duration();
    if max_execution < least {
        reader.note(
            "Idempotency:MaxExecutionSeconds",
            format!(
                "{} s is less than InProgressTimeToLiveSeconds, {} s",
                max_execution.as_secs_f64(),
                least.as_secs_f64()
            ),
            format!("set it to at least {}", least.as_secs_f64()),
        );
    }
    IdempotencySettings {
        time_to_live: reader.seconds("Idempotency:TimeToLiveSeconds", default.time_to_live),
        in_progress_time_to_live,
        max_execution,
        max_recorded_response_bytes: reader.bytes(
            "Idempotency:MaxRecordedResponseBytes",
            default.max_recorded_response_bytes,
        ),
        max_request_bytes: reader.bytes("Idempotency:MaxRequestBytes", default.max_request_bytes),
        shutdown: reader.seconds_or_zero("Idempotency:ShutdownSeconds", default.shutdown),
        accept_idempotency_key_header: reader.boolean(
            "Idempotency:AcceptIdempotencyKeyHeader",
            default.accept_idempotency_key_header,
        ),
        fingerprint: reader.boolean("Idempotency:Fingerprint", default.fingerprint),
        max_wait: reader.seconds_or_zero("Idempotency:MaxWaitSeconds", default.max_wait),
    }
}

fn in_memory(reader: &mut Reader<'_>) -> InMemorySettings {
    let default = InMemorySettings::default();
    InMemorySettings {
        max_capacity_bytes: reader.bytes("InMemory:MaxCapacityBytes", default.max_capacity_bytes),
        max_protected_bytes: reader
            .bytes("InMemory:MaxProtectedBytes", default.max_protected_bytes),
    }
}

fn redis(reader: &mut Reader<'_>, is_needed: bool) -> RedisSettings {
    let default = RedisSettings::default();
    RedisSettings {
        url: reader.secret("Redis:Url", "Redis:UrlFile", is_needed),
        require_no_eviction: reader.boolean("Redis:RequireNoEviction", default.require_no_eviction),
        operation_timeout: reader.milliseconds(
            "Redis:OperationTimeoutMilliseconds",
            default.operation_timeout,
        ),
        ca_file: reader.file("Redis:CaFile", is_needed),
        client_certificate_file: reader.file("Redis:ClientCertificateFile", is_needed),
        client_key_file: reader.file("Redis:ClientKeyFile", is_needed),
    }
}

fn remote(reader: &mut Reader<'_>, is_needed: bool) -> RemoteSettings {
    let default = RemoteSettings::default();
    let schemes = ["http://", "https://", "grpc://", "grpcs://"];
    let endpoint = reader.value("Remote:Endpoint", |value| {
        let text = value.to_string();
        let is_one = |scheme: &&str| {
            text.strip_prefix(*scheme)
                .is_some_and(|rest| !rest.is_empty())
        };
        if schemes.iter().any(is_one) {
            return Ok(text);
        }
        // What stands before an `@` may be a password.
        let shown = if text.contains('@') { "***" } else { &text };
        Err((
            format!("`{shown}` is no endpoint"),
            "set it to an address that begins with http://, https://, grpc:// or grpcs://"
                .to_owned(),
        ))
    });
    RemoteSettings {
        endpoint,
        token: reader.secret("Remote:Token", "Remote:TokenFile", is_needed),
        ca_file: reader.file("Remote:CaFile", is_needed),
        client_certificate_file: reader.file("Remote:ClientCertificateFile", is_needed),
        client_key_file: reader.file("Remote:ClientKeyFile", is_needed),
        operation_timeout: reader.milliseconds(
            "Remote:OperationTimeoutMilliseconds",
            default.operation_timeout,
        ),
        max_message_bytes: reader.bytes("Remote:MaxMessageBytes", default.max_message_bytes),
    }
}

#[cfg(test)]
mod tests;
