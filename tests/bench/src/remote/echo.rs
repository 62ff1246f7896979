//! The baseline: a unary call of tonic that is as long as one of ours and answered with as much,
//! and nothing behind it. Server and channel as tonic has them by default, with TCP_NODELAY.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use caching_remote::proto;
use prost::Message;
use tonic::client::Grpc as Client;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::measure::{
    ENTRY_MILLISECONDS, LEASE_MILLISECONDS, Operation, TOKEN, VALUE, entry, lease,
};
use crate::Result;

const PATH: &str = "/bench.v1.Echo/Call";
/// What answers are cut from.
const ZEROS: [u8; 1024] = [0; 1024];

/// What is asked: some bytes, and how many the answer has to have.
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(fixed32, tag = "1")]
    answer: u32,
    #[prost(bytes = "bytes", optional, tag = "2")]
    payload: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(bytes = "bytes", optional, tag = "1")]
    payload: Option<Bytes>,
}

impl Question {
    /// A question of `length` bytes whose answer has `answer` bytes.
    fn new(length: usize, answer: usize) -> Self {
        let mut question = Self {
            answer: u32::try_from(answer).unwrap_or(u32::MAX),
            payload: None,
        };
        question.payload = payload(length.saturating_sub(question.encoded_len()));
        question
    }
}

/// A field of `length` bytes, its tag and its length included.
fn payload(length: usize) -> Option<Bytes> {
    const SHORT: usize = 127;
    let around = if length <= SHORT + 2 { 2 } else { 3 };
    let bytes = length.checked_sub(around)?;
    Some(Bytes::from_static(&ZEROS).slice(..bytes))
}

/// The questions that stand for the calls of an operation.
fn questions(operation: Operation) -> Vec<Question> {
    let value = Some(Bytes::from_static(&VALUE));
    match operation {
        Operation::Get => {
            let request = proto::GetRequest { key: entry(0) };
            let answer = proto::GetResponse { value };
            vec![Question::new(request.encoded_len(), answer.encoded_len())]
        }
        Operation::GetStanding => {
            let answer = proto::GetOrAddResponse { value };
            vec![Question::new(
                get_or_add().encoded_len(),
                answer.encoded_len(),
            )]
        }
        Operation::Add => {
            let answer = proto::GetOrAddResponse { value: None };
            vec![Question::new(
                get_or_add().encoded_len(),
                answer.encoded_len(),
            )]
        }
        Operation::Lease | Operation::Lock => {
            let (take, release) = (try_lease(), release());
            let taken = proto::TryLeaseResponse {
                // Microseconds of this century.
                fencing: Some(1_800_000_000_000_000),
            };
            let released = proto::ReleaseResponse { released: true };
            vec![
                Question::new(take.encoded_len(), taken.encoded_len()),
                Question::new(release.encoded_len(), released.encoded_len()),
            ]
        }
    }
}

fn get_or_add() -> proto::GetOrAddRequest {
    let lifetime = proto::expiration::Kind::TimeToLiveMilliseconds(ENTRY_MILLISECONDS);
    proto::GetOrAddRequest {
        key: entry(0),
        value: Bytes::from_static(&VALUE),
        expiration: Some(proto::Expiration {
            kind: Some(lifetime),
            essential: false,
        }),
    }
}

fn try_lease() -> proto::TryLeaseRequest {
    proto::TryLeaseRequest {
        key: lease(0),
        token: TOKEN.to_owned(),
        time_to_live_milliseconds: LEASE_MILLISECONDS,
    }
}

fn release() -> proto::ReleaseRequest {
    proto::ReleaseRequest {
        key: lease(0),
        token: TOKEN.to_owned(),
    }
}

/// The client, as tonic's generated ones are; each task has a clone.
#[derive(Clone)]
pub(crate) struct Echo {
    client: Client<Channel>,
    /// Made before the time is taken.
    questions: Arc<[(Operation, Vec<Question>)]>,
}

impl Echo {
    pub(crate) async fn connect(port: u16) -> Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?;
        let channel = endpoint.tcp_nodelay(true).connect().await?;
        let of = |operation| (operation, questions(operation));
        Ok(Self {
            client: Client::new(channel),
            questions: Operation::ALL.map(of).into(),
        })
    }

    /// Makes the calls of an operation, one after the other.
    pub(crate) async fn apply(&mut self, operation: Operation) -> bool {
        let questions = Arc::clone(&self.questions);
        let questions = questions.iter().filter(|(of, _)| *of == operation);
        for question in questions.flat_map(|(_, questions)| questions) {
            match self.call(question.clone()).await {
                Ok(answer) if answer.encoded_len() == question.answer as usize => {}
                _ => return false,
            }
        }
        true
    }

    async fn call(&mut self, question: Question) -> Result<Answer> {
        self.client.ready().await?;
        let path = PathAndQuery::from_static(PATH);
        let codec = ProstCodec::default();
        let answer = self.client.unary(Request::new(question), path, codec);
        Ok(answer.await?.into_inner())
    }
}

/// Serves until the process ends.
pub(crate) async fn serve(port: u16) -> Result {
    let server = Server::builder().tcp_nodelay(true).add_service(Served);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    Ok(server.serve(address).await?)
}

/// The service, as tonic's generated ones are.
#[derive(Clone)]
struct Served;

impl NamedService for Served {
    const NAME: &'static str = "bench.v1.Echo";
}

impl Service<http::Request<tonic::body::Body>> for Served {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = Grpc::new(ProstCodec::default());
            Ok(grpc.unary(Answering, request).await)
        })
    }
}

struct Answering;

impl UnaryService<Question> for Answering {
    type Response = Answer;
    type Future = Ready<std::result::Result<Response<Answer>, Status>>;

    fn call(&mut self, request: Request<Question>) -> Self::Future {
        let payload = payload(request.get_ref().answer as usize);
        ready(Ok(Response::new(Answer { payload })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_and_its_answer_are_as_long_as_they_have_to_be() {
        for length in (7..300).chain([0, 2]) {
            let answer = payload(length).map_or(0, |bytes| {
                let payload = Some(bytes);
                Answer { payload }.encoded_len()
            });
            // No field is 130 bytes long.
            assert!(answer == length || length == 130, "{length}: {answer}");
        }
        for question in Operation::ALL.into_iter().flat_map(questions) {
            assert!(question.encoded_len() > 20, "{question:?}");
        }
        let get = proto::GetRequest { key: entry(0) }.encoded_len();
        assert_eq!(questions(Operation::Get)[0].encoded_len(), get);
        let lengths: Vec<usize> = questions(Operation::Lease)
            .iter()
            .map(Message::encoded_len)
            .collect();
        assert_eq!(
            lengths,
            [try_lease().encoded_len(), release().encoded_len()]
        );
        let add = questions(Operation::Add)[0].encoded_len();
        assert_eq!(add, get_or_add().encoded_len());
    }
}
