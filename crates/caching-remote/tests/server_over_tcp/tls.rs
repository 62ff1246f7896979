//! TLS, and clients that have to show a certificate.

use caching_remote::proto::store_client::StoreClient;
use caching_remote::server::{ServerError, StoreServer, TlsSettings};
use redis_support::Certificates;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::support::{Running, access, get, reference};

fn pem(path: std::path::PathBuf) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

async fn client(
    server: &Running,
    authority: &Certificates,
    identity: Option<&Certificates>,
) -> Result<StoreClient<Channel>, tonic::transport::Error> {
    let mut tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(pem(authority.authority())))
        .domain_name("localhost");
    if let Some(own) = identity {
        tls = tls.identity(Identity::from_pem(pem(own.certificate()), pem(own.key())));
    }
    let endpoint = Endpoint::from_shared(format!("https://{}", server.address))?;
    Ok(StoreClient::new(endpoint.tls_config(tls)?.connect().await?))
}

fn settings(made: &Certificates) -> TlsSettings {
    TlsSettings::from_files(made.certificate(), made.key()).unwrap()
}

#[tokio::test]
async fn a_client_that_trusts_the_authority_is_served_and_others_turn_away() {
    let (made, foreign) = (Certificates::make(), Certificates::make());
    let server = Running::of(reference(), |builder| builder.tls(settings(&made))).await;
    let mut trusting = client(&server, &made, None).await.unwrap();
    trusting.get(get("a")).await.unwrap();
    assert!(client(&server, &foreign, None).await.is_err());
    let plain = server.endpoint().connect_lazy();
    assert!(StoreClient::new(plain).get(get("a")).await.is_err());
}

#[tokio::test]
async fn a_client_shows_a_certificate_of_the_right_authority_where_one_is_asked_for() {
    let (made, foreign) = (Certificates::make(), Certificates::make());
    let tls = settings(&made)
        .client_authority_file(made.authority())
        .unwrap();
    let server = Running::of(reference(), |builder| builder.tls(tls)).await;
    let mut known = client(&server, &made, Some(&made)).await.unwrap();
    known.get(get("a")).await.unwrap();
    for identity in [None, Some(&foreign)] {
        // With TLS 1.3 a client learns of it with its first call.
        let refused = match client(&server, &made, identity).await {
            Ok(mut client) => client.get(get("a")).await.is_err(),
            Err(_) => true,
        };
        assert!(refused);
    }
}

#[tokio::test]
async fn an_address_that_others_reach_is_fine_with_token_and_tls() {
    let made = Certificates::make();
    let with_tls = || StoreServer::builder(reference()).tls(settings(&made));
    let server = with_tls().build().unwrap();
    let error = server.bind("0.0.0.0:0").await.unwrap_err();
    assert!(error.to_string().contains("no token:"), "{error}");
    let server = with_tls().token(access("SECRET")).build().unwrap();
    assert!(server.bind("0.0.0.0:0").await.is_ok());
}

#[test]
fn c2_a_file_that_cannot_be_used_is_named() {
    let made = Certificates::make();
    let build = |certificate, key| {
        let tls = TlsSettings::from_files(certificate, key)?;
        StoreServer::builder(reference()).tls(tls).build()
    };
    let swapped = build(made.key(), made.certificate()).unwrap_err();
    assert!(matches!(swapped, ServerError::Tls { .. }));
    assert!(swapped.to_string().contains("no certificate"), "{swapped}");
    let no_key = build(made.certificate(), made.authority()).unwrap_err();
    assert!(no_key.to_string().contains("no private key"), "{no_key}");
    let missing = build("/nowhere/server.pem".into(), made.key()).unwrap_err();
    assert!(
        missing.to_string().contains("/nowhere/server.pem"),
        "{missing}"
    );
}
