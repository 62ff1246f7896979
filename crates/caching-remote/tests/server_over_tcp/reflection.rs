//! Server reflection, as grpcurl uses it.

use tokio_stream::StreamExt;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_reflection::pb::{v1, v1alpha};

use crate::support::{Running, access, reference};

fn list() -> v1::ServerReflectionRequest {
    v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1::server_reflection_request::MessageRequest::ListServices(
            String::new(),
        )),
    }
}

async fn services(channel: Channel, token: &str) -> Result<Vec<String>, Status> {
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel);
    let mut request = Request::new(tokio_stream::once(list()));
    if !token.is_empty() {
        let value = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", value);
    }
    let mut answers = client.server_reflection_info(request).await?.into_inner();
    let answer = answers.next().await.unwrap()?.message_response.unwrap();
    let v1::server_reflection_response::MessageResponse::ListServicesResponse(list) = answer else {
        return Err(Status::internal("another answer"));
    };
    Ok(list
        .service
        .into_iter()
        .map(|service| service.name)
        .collect())
}

#[tokio::test]
async fn reflection_v1_lists_every_service() {
    let server = Running::new().await;
    let channel = server.endpoint().connect().await.unwrap();
    let services = services(channel, "").await.unwrap();
    for service in ["xihan.caching.v1.Store", "grpc.health.v1.Health"] {
        assert!(services.iter().any(|name| name == service), "{services:?}");
    }
}

#[tokio::test]
async fn reflection_v1alpha_gives_the_file_of_a_symbol() {
    use v1alpha::server_reflection_request::MessageRequest;
    use v1alpha::server_reflection_response::MessageResponse;

    let server = Running::new().await;
    let channel = server.endpoint().connect().await.unwrap();
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
    let symbol = "xihan.caching.v1.Store".to_owned();
    let request = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::FileContainingSymbol(symbol)),
    };
    let answers = client
        .server_reflection_info(tokio_stream::once(request))
        .await;
    let answer = answers.unwrap().into_inner().next().await.unwrap().unwrap();
    let Some(MessageResponse::FileDescriptorResponse(files)) = answer.message_response else {
        unreachable!("{answer:?}");
    };
    assert_eq!(files.file_descriptor_proto.len(), 1);
}

#[tokio::test]
async fn reflection_asks_for_a_token_where_there_are_any() {
    let server = Running::of(reference(), |settings| settings.token(access("SECRET"))).await;
    let channel = server.endpoint().connect().await.unwrap();
    let status = services(channel.clone(), "").await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    assert!(!services(channel, "SECRET").await.unwrap().is_empty());
}
