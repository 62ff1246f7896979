//! Serving a store: from the options to a server, and to its end.

mod exporter;
mod files;
mod signals;

use std::pin::pin;
use std::sync::Arc;

use caching_remote::server::{AccessToken, Limits, Server, ServerError, StoreServer, TlsSettings};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use xihan_caching::{CacheStore, MeteredStore};

use crate::cli::StoreOptions;
use crate::commands::serve::Serve;
use crate::console::Console;
use crate::failure::Failure;
use crate::open::token_of_the_environment;
use crate::run::Session;
use crate::status::Status;
use exporter::Exporter;
use signals::Signals;

/// Serves until a signal says that it is enough.
pub(crate) async fn run(options: Serve, session: Session<'_>) -> Result<Status, Failure> {
    let tokens = tokens(&options)?;
    let tls = tls(&options).map_err(refused)?;
    files::allow(options.max_connections.get());
    // From here on no signal is missed, and none ends the process half-way.
    let signals = Signals::listen()?;
    let exporter = match &options.metrics_listen {
        // Before the store, so that it counts from its first operation.
        Some(address) => Some(Exporter::bind(address).await?),
        None => None,
    };

    let (console, is_tls) = (session.console, tls.is_some());
    let (store, provider) = open(&options, session).await?;
    tracing::info!(
        provider,
        tls = is_tls,
        tokens = tokens.len(),
        "a store is about to be served"
    );
    if options.insecure {
        tracing::warn!("--insecure: whoever reaches the port may be let in, or listen in");
    }
    let store: Arc<dyn CacheStore> = match exporter {
        Some(_) => Arc::new(MeteredStore::new(store, provider)),
        None => store,
    };
    let mut server = StoreServer::builder(Arc::clone(&store))
        .tokens(tokens)
        .insecure(options.insecure)
        .limits(limits(&options));
    if let Some(tls) = tls {
        server = server.tls(tls);
    }
    let server = server.build().map_err(refused)?;
    let server = server.bind(&*options.listen).await.map_err(refused)?;

    announce(console, &server, is_tls, exporter.as_ref())?;
    let stopping = CancellationToken::new();
    if let Some(exporter) = exporter {
        tokio::spawn(exporter.run(store, stopping.clone()));
    }
    Ok(until_signalled(server, signals, stopping).await)
}

/// Serves until the first signal, then shuts down; the second one ends that.
async fn until_signalled(
    server: Server,
    mut signals: Signals,
    stopping: CancellationToken,
) -> Status {
    let serving = pin!(server.run_until(stopping.clone().cancelled_owned()));
    let signalled_twice = async {
        let first = signals.next().await;
        tracing::info!(
            signal = first,
            "shutting down; the same signal again ends at once"
        );
        stopping.cancel();
        signals.next().await
    };
    tokio::select! {
        () = serving => Status::DONE,
        second = signalled_twice => Status::of_signal(second),
    }
}

/// Opens the store. The tokens and their file are those of the clients, and not for the store.
async fn open(
    options: &Serve,
    session: Session<'_>,
) -> Result<(Arc<dyn CacheStore>, &'static str), Failure> {
    let store_options = StoreOptions {
        token_file: None,
        ..session.options.store.clone()
    };
    let adjust = |settings: &mut _| options.adjust(settings);
    session.named.open_with(&store_options, adjust).await
}

fn tokens(options: &Serve) -> Result<Vec<AccessToken>, Failure> {
    if let Some(file) = &options.token_file {
        return AccessToken::from_file(file).map_err(refused);
    }
    let token = token_of_the_environment()?.map(AccessToken::new);
    let token = token
        .transpose()
        .map_err(|error| Failure::Usage(format!("XIHAN_CACHE_TOKEN: {error}")))?;
    Ok(token.into_iter().collect())
}

fn tls(options: &Serve) -> Result<Option<TlsSettings>, ServerError> {
    let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) else {
        return Ok(None);
    };
    let tls = TlsSettings::from_files(certificate, key)?;
    match &options.client_ca {
        Some(authority) => tls.client_authority_file(authority).map(Some),
        None => Ok(Some(tls)),
    }
}

fn limits(options: &Serve) -> Limits {
    let mut limits = Limits::default();
    limits.max_message_bytes = options.max_message_bytes.get();
    limits.max_connections = options.max_connections.get();
    limits.drain = options.drain;
    limits.shutdown_timeout = options.shutdown_timeout;
    limits
}

/// Says where the server is, for people and for whoever has to wait for it.
fn announce(
    console: Console,
    server: &Server,
    is_tls: bool,
    exporter: Option<&Exporter>,
) -> Result<(), Failure> {
    let scheme = if is_tls { "grpcs" } else { "grpc" };
    let store = format!("{scheme}://{}", server.local_address());
    let metrics = exporter.map(|exporter| format!("http://{}/metrics", exporter.local_address()));
    console.result(
        || json!({ "listening": store, "metrics": metrics }),
        |output| {
            if let Some(metrics) = &metrics {
                writeln!(output, "metrics on {metrics}")?;
            }
            writeln!(output, "listening on {store}")
        },
    )
}

/// Why the server does not start, in the names of the command line.
fn refused(error: ServerError) -> Failure {
    match error {
        ServerError::Exposed { address, missing } => Failure::Usage(format!(
            "--listen: {address} can be reached from other machines, and the server has no \
             {missing}: give --token-file (or XIHAN_CACHE_TOKEN) and --tls-cert with --tls-key, \
             listen on 127.0.0.1, or allow it with --insecure"
        )),
        ServerError::Listen { address, source } => cannot_listen("--listen", &address, &source),
        ServerError::Descriptor { .. } => Failure::System(error.to_string()),
        // Files and limits of the command line.
        _ => Failure::Usage(error.to_string()),
    }
}

fn cannot_listen(option: &str, address: &str, error: &std::io::Error) -> Failure {
    let address = address.trim_matches('"');
    Failure::System(format!(
        "cannot listen on {address}: {error}; choose another address with {option}"
    ))
}
