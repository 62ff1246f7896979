//! From the options of the command line to a store.

use std::sync::Arc;

use xihan_caching::{
    AssemblyProblem, CacheStore, CachingError, CachingProvider, CachingSettings, Configuration,
    InMemoryProvider, RedisProvider, RemoteProvider,
};

use crate::cli::StoreOptions;
use crate::failure::Failure;

/// The environment variable that holds the token of a remote store.
const TOKEN_VARIABLE: &str = "XIHAN_CACHE_TOKEN";
/// The store inside this process.
const MEMORY: &str = "memory";

/// What a store's URL leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Inside this process; nobody else sees it.
    Memory,
    Redis,
    Remote,
}

/// A store that is named and not yet opened.
pub(crate) struct Named {
    pub(crate) kind: Kind,
    url: String,
}

impl Named {
    /// Finds out which store is meant.
    ///
    /// # Errors
    /// No store, two of them, or one of an unknown kind.
    pub(crate) fn find(options: &StoreOptions) -> Result<Self, Failure> {
        let file = options.store_file.as_deref();
        let url = match (file, options.store.as_deref().unwrap_or_default()) {
            (None, "") => {
                return Err(usage(
                    "no store: give --store URL or set XIHAN_CACHE_STORE, for example to \
                 redis://localhost:6379",
                ));
            }
            (None, url) => url.to_owned(),
            // What the environment says is a default; whoever names a file means it.
            (Some(file), _) => read_url(file)?,
        };
        Self::of(url)
    }

    /// The same, where no store that is named means one inside this process.
    ///
    /// # Errors
    /// One of an unknown kind.
    pub(crate) fn find_or_memory(options: &StoreOptions) -> Result<Self, Failure> {
        match (&options.store_file, options.store.as_deref()) {
            (None, None | Some("")) => Self::of(MEMORY.to_owned()),
            _ => Self::find(options),
        }
    }

    fn of(url: String) -> Result<Self, Failure> {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        let kind = match scheme {
            None if url == MEMORY => Kind::Memory,
            Some("grpc" | "grpcs" | "http" | "https") => Kind::Remote,
            Some(name) if name.contains("redis") || name.contains("valkey") => Kind::Redis,
            // The URL may hold a password: it is not repeated.
            _ => {
                return Err(usage(
                    "the store is none of memory, redis://…, grpc://… and grpcs://… (nor one of their \
                 other forms); see xihan-cache --help",
                ));
            }
        };
        Ok(Self { kind, url })
    }

    /// Checks the options and connects. A store that is away is no error yet.
    ///
    /// # Errors
    /// Options that are wrong, and what waiting cannot heal, such as a refused login.
    pub(crate) async fn open(self, options: &StoreOptions) -> Result<Arc<dyn CacheStore>, Failure> {
        let (store, _) = self.open_with(options, |_| {}).await?;
        Ok(store)
    }

    /// As [`open`](Self::open) with settings that have no option of their own there; gives the
    /// name of the provider as well.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) async fn open_with(
        self,
        options: &StoreOptions,
        adjust: impl FnOnce(&mut CachingSettings),
    ) -> Result<(Arc<dyn CacheStore>, &'static str), Failure> {
        let provider = self.provider();
        let name = provider.manifest().name();
        let configuration = self.configuration(name, options)?;
        let (mut settings, mut problems) = CachingSettings::read(&configuration, Some(name));
        adjust(&mut settings);
        if problems.is_empty() {
            problems = provider.check(&settings);
        }
        if !problems.is_empty() {
            let texts: Vec<String> = problems.iter().map(in_our_words).collect();
            return Err(Failure::Usage(texts.join("\n")));
        }
        let started = provider.start(&settings).await;
        Ok((started.map_err(refusal_in_our_words)?, name))
    }

    /// The one place where a kind becomes a provider.
    fn provider(&self) -> Box<dyn CachingProvider> {
        match self.kind {
            Kind::Memory => Box::new(InMemoryProvider::new()),
            Kind::Redis => Box::new(RedisProvider::new()),
            Kind::Remote => Box::new(RemoteProvider::new()),
        }
    }

    fn configuration(
        &self,
        provider: &str,
        options: &StoreOptions,
    ) -> Result<Configuration, Failure> {
        let section = match self.kind {
            Kind::Memory => None,
            Kind::Redis => Some("Redis"),
            Kind::Remote => Some("Remote"),
        };
        let token = self.token(options)?;
        let mut settings: Vec<(&str, Option<String>)> = vec![
            ("Url", (self.kind == Kind::Redis).then(|| self.url.clone())),
            (
                "Endpoint",
                (self.kind == Kind::Remote).then(|| self.url.clone()),
            ),
            ("Token", token),
            ("TokenFile", options.token_file.clone()),
            ("CaFile", options.ca_file.clone()),
            ("ClientCertificateFile", options.client_cert.clone()),
            ("ClientKeyFile", options.client_key.clone()),
        ];
        settings.retain(|(_, value)| value.is_some());
        if section.is_none() && !settings.is_empty() {
            return Err(usage(
                "--ca-file, --client-cert and --client-key are for stores that are reached over TLS",
            ));
        }
        // The store inside the process takes no time that could be limited.
        let timeout = options.timeout.filter(|_| section.is_some());
        let timeout = timeout.map(|limit| limit.as_millis().to_string());
        settings.push(("OperationTimeoutMilliseconds", timeout));

        let section = section.unwrap_or_default();
        let whole = |name: &str| format!("{}:{section}:{name}", CachingSettings::SECTION);
        let start =
            Configuration::empty().with(format!("{}:Provider", CachingSettings::SECTION), provider);
        let mut configuration = settings
            .into_iter()
            .filter_map(|(name, value)| Some((whole(name), value?)))
            .fold(start, |sum, (key, value)| sum.with(key, value));
        if let Some(prefix) = options
            .key_prefix
            .as_deref()
            .filter(|text| !text.is_empty())
        {
            let key = format!("{}:KeyPrefix", CachingSettings::SECTION);
            configuration = configuration.with(key, prefix);
        }
        Ok(configuration)
    }

    /// The token of the environment, for a store that takes one.
    fn token(&self, options: &StoreOptions) -> Result<Option<String>, Failure> {
        match (self.kind, &options.token_file) {
            (Kind::Remote, None) => token_of_the_environment(),
            (Kind::Remote, Some(_)) | (_, None) => Ok(None),
            (_, Some(_)) => Err(usage(
                "--token-file is for grpc(s):// stores; a password of Redis stands in its URL",
            )),
        }
    }
}

/// The token of the environment, if there is one.
///
/// # Errors
/// If it is no text.
pub(crate) fn token_of_the_environment() -> Result<Option<String>, Failure> {
    match std::env::var(TOKEN_VARIABLE) {
        Ok(token) if token.is_empty() => Ok(None),
        Ok(token) => Ok(Some(token)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(usage("XIHAN_CACHE_TOKEN is not Unicode text"))
        }
    }
}

fn usage(text: &str) -> Failure {
    Failure::Usage(text.to_owned())
}

fn read_url(file: &str) -> Result<String, Failure> {
    let read = std::fs::read_to_string(file)
        .map_err(|error| Failure::Usage(format!("--store-file: `{file}`: {error}")))?;
    match read.trim() {
        "" => Err(Failure::Usage(format!("--store-file: `{file}` is empty"))),
        url => Ok(url.to_owned()),
    }
}

/// A problem of the settings, told in the names of the command line.
fn in_our_words(problem: &AssemblyProblem) -> String {
    const NAMES: [(&str, &str); 8] = [
        ("Url", "--store"),
        ("Endpoint", "--store"),
        ("KeyPrefix", "--key-prefix"),
        ("OperationTimeoutMilliseconds", "--timeout"),
        ("CaFile", "--ca-file"),
        ("ClientCertificateFile", "--client-cert"),
        ("ClientKeyFile", "--client-key"),
        ("TokenFile", "--token-file"),
    ];
    let subject = problem.subject();
    let key = subject.split(' ').next().unwrap_or(subject);
    let last = key.rsplit(':').next().unwrap_or(key);
    let ours = |name: &str| NAMES.iter().find(|(theirs, _)| *theirs == name);
    let subject = match ours(last) {
        Some((_, option)) => option,
        None if last == "Token" => TOKEN_VARIABLE,
        None => subject,
    };
    let mut remedy = problem.remedy().to_owned();
    for (theirs, option) in NAMES.iter().skip(2) {
        remedy = remedy.replace(theirs, option);
    }
    format!("{subject}: {}; {remedy}", problem.rule())
}

/// What a store has against this client, told in the names of the command line.
fn refusal_in_our_words(error: CachingError) -> CachingError {
    const NAMES: [(&str, &str); 2] = [
        (
            "XiHan:Caching:Remote:Token or TokenFile",
            "XIHAN_CACHE_TOKEN or --token-file",
        ),
        ("XiHan:Caching:KeyPrefix", "--key-prefix"),
    ];
    let told = error.detail();
    let ours = NAMES
        .iter()
        .fold(told.to_owned(), |text, (theirs, option)| {
            text.replace(theirs, option)
        });
    if ours == told {
        return error;
    }
    CachingError::new(error.code(), ours).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(store: &str) -> StoreOptions {
        StoreOptions {
            store: Some(store.to_owned()),
            ..StoreOptions::default()
        }
    }

    fn refusal<T>(result: Result<T, Failure>) -> String {
        match result {
            Err(Failure::Usage(text)) => text,
            Err(other) => panic!("no usage error: {other}"),
            Ok(_) => panic!("not refused"),
        }
    }

    #[test]
    fn part11_the_url_decides_the_kind() {
        for (url, kind) in [
            ("memory", Kind::Memory),
            ("redis://a", Kind::Redis),
            ("rediss-cluster://a,b", Kind::Redis),
            ("valkey-sentinel://a?sentinelServiceName=b", Kind::Redis),
            ("grpc://a:1", Kind::Remote),
            ("https://a", Kind::Remote),
        ] {
            let named = Named::find(&options(url)).unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(named.kind, kind, "{url}");
        }
    }

    #[test]
    fn x3_a_refused_url_is_not_repeated() {
        for url in [
            "ftp://user:secret@host",
            "secret",
            "memory:secret",
            "Memory",
        ] {
            let refusal = refusal(Named::find(&options(url)));
            assert!(refusal.contains("none of memory"), "{refusal}");
            assert!(!refusal.contains("secret"), "{refusal}");
        }
    }

    #[tokio::test]
    async fn x3_problems_are_told_in_the_options_names_and_without_secrets() {
        let mut wrong = options("redis://:se@cret@host");
        wrong.ca_file = Some("/nowhere.pem".to_owned());
        wrong.key_prefix = Some("a:b".to_owned());
        let named = Named::find(&wrong).unwrap_or_else(|error| panic!("{error}"));
        let text = refusal(named.open(&wrong).await);
        for option in ["--ca-file: ", "--key-prefix: "] {
            assert!(text.contains(option), "{text}");
        }
        assert!(!text.contains("cret"), "{text}");

        let wrong = options("redis://:se@cret@host");
        let named = Named::find(&wrong).unwrap_or_else(|error| panic!("{error}"));
        let text = refusal(named.open(&wrong).await);
        assert!(text.starts_with("--store: "), "{text}");
        assert!(!text.contains("cret"), "{text}");
    }

    #[tokio::test]
    async fn an_option_that_would_be_ignored_is_refused() {
        let mut memory = options("memory");
        memory.ca_file = Some("ca.pem".to_owned());
        let named = Named::find(&memory).unwrap_or_else(|error| panic!("{error}"));
        assert!(refusal(named.open(&memory).await).contains("TLS"));

        let mut redis = options("redis://localhost");
        redis.token_file = Some("token".to_owned());
        let named = Named::find(&redis).unwrap_or_else(|error| panic!("{error}"));
        assert!(refusal(named.open(&redis).await).contains("--token-file"));
    }
}
