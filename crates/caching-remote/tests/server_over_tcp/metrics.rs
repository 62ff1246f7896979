//! What the server counts (part 10).

use caching_remote::proto::*;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpStream;
use tokio_stream::StreamExt;
use tonic::Request;

use crate::support::{Running, access, get, reference, set};

/// The number of a series, by all that stands before it.
fn number(handle: &PrometheusHandle, series: &str) -> Option<f64> {
    let rendered = handle.render();
    let lines = rendered.lines().filter_map(|line| line.rsplit_once(' '));
    let (_, number) = lines.into_iter().find(|(name, _)| *name == series)?;
    number.parse().ok()
}

async fn becomes(handle: &PrometheusHandle, series: &str, expected: f64) {
    let reached = async {
        while number(handle, series) != Some(expected) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let reached = tokio::time::timeout(std::time::Duration::from_secs(20), reached).await;
    assert!(
        reached.is_ok(),
        "{series} is not {expected}:\n{}",
        handle.render()
    );
}

// Everything runs on this thread, and so the recorder is found.
#[tokio::test(flavor = "current_thread")]
async fn part10_calls_sessions_connections_and_refusals_are_counted_without_keys() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);

    let server = Running::of(reference(), |settings| settings.token(access("SECRET"))).await;
    let mut client = server.client().await;
    let known = |message| {
        let mut request = Request::new(message);
        let value = "Bearer SECRET".parse().unwrap();
        request.metadata_mut().insert("authorization", value);
        request
    };
    client.get(get("the-key")).await.unwrap_err();
    client.get(known(get("the-key"))).await.unwrap();
    client.get(known(get("the-key"))).await.unwrap();
    client.get(known(get("the key"))).await.unwrap_err();
    let get_total =
        |code| format!("xihan_caching_server_requests_total{{rpc=\"Get\",code=\"{code}\"}}");
    becomes(&handle, &get_total("OK"), 2.0).await;
    becomes(&handle, &get_total("UNAUTHENTICATED"), 1.0).await;
    becomes(&handle, &get_total("INVALID_ARGUMENT"), 1.0).await;
    becomes(
        &handle,
        "xihan_caching_server_refusals_total{reason=\"unauthenticated\"}",
        1.0,
    )
    .await;
    becomes(&handle, "xihan_caching_server_connections", 1.0).await;

    let (requests, receiver) = tokio::sync::mpsc::channel(1);
    let mut asked = Request::new(tokio_stream::wrappers::ReceiverStream::new(receiver));
    asked
        .metadata_mut()
        .insert("authorization", "Bearer SECRET".parse().unwrap());
    let mut replies = client.session(asked).await.unwrap().into_inner();
    let call = |id| Call {
        id,
        timeout_milliseconds: 0,
        operation: Some(call::Operation::Set(set("the-key", "the-value"))),
    };
    requests
        .send(SessionRequest {
            calls: (0..3).map(call).collect(),
        })
        .await
        .unwrap();
    replies.next().await.unwrap().unwrap();
    becomes(&handle, "xihan_caching_server_sessions", 1.0).await;
    becomes(
        &handle,
        "xihan_caching_server_session_operations_total",
        3.0,
    )
    .await;
    drop((requests, replies));
    becomes(&handle, "xihan_caching_server_sessions", 0.0).await;

    let other = TcpStream::connect(server.address).await.unwrap();
    becomes(&handle, "xihan_caching_server_connections", 2.0).await;
    drop(other);
    becomes(
        &handle,
        "xihan_caching_server_refusals_total{reason=\"protocol\"}",
        1.0,
    )
    .await;
    let rendered = handle.render();
    for secret in ["the-key", "the-value", "SECRET"] {
        assert!(!rendered.contains(secret), "{rendered}");
    }
}
