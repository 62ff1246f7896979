//! Starts the order service.

use std::error::Error;
use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use orders_sample::arguments::Arguments;
use orders_sample::http;
use orders_sample::service::Service;
use tokio::net::TcpListener;
use tracing_subscriber::EnvFilter;

type AnyError = Box<dyn Error + Send + Sync>;

/// How often histograms are folded, so that they take no more memory over time.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);
/// The buckets of latencies: from an operation in memory to one that ran into its time limit.
const SECONDS: [f64; 10] = [1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.025, 0.1, 0.5, 2.5];

#[tokio::main]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
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
    let settings = arguments.settings(&configuration)?;
    let metrics = install_metrics()?;
    let service = Service::assemble(configuration, &settings).await?;

    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.http_port));
    let listener = TcpListener::bind(address).await.map_err(|error| {
        format!("cannot listen on {address}: {error}; choose another port with --http-port")
    })?;
    tracing::info!(
        provider = service.caching.provider_name(),
        "listening on http://{}",
        listener.local_addr()?
    );
    serve(listener, &service, metrics).await?;
    tracing::info!("stopped");
    Ok(())
}

/// Serves until a signal comes; then takes no more calls and lets running work end (P15).
async fn serve(
    listener: TcpListener,
    service: &Service,
    metrics: PrometheusHandle,
) -> Result<(), AnyError> {
    let (signalled, mut signal) = tokio::sync::watch::channel(false);
    let stop = async move {
        shutdown_signal().await;
        tracing::info!("stopping; running work may end");
        signalled.send_replace(true);
    };
    let server = axum::serve(listener, http::router(service, metrics)).with_graceful_shutdown(stop);
    // A client that never ends its request may not hold up the shutdown for ever.
    let limit = async {
        let _ = signal.wait_for(|signalled| *signalled).await;
        tokio::time::sleep(service.pipeline.settings().shutdown).await;
    };
    tokio::select! {
        end = server.into_future() => end?,
        () = limit => tracing::warn!("closing connections that are still open"),
    }
    service.pipeline.shutdown().await;
    Ok(())
}

async fn shutdown_signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = interrupt.await;
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
