//! The server as a client meets it that is written in another language and has nothing generated:
//! Python with `grpcio` and `protobuf`, which learns the contract by server reflection.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "the whole crate is test code: a failed expectation is a failed test"
)]

use std::io::{self, BufRead, BufReader, PipeReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock};

use caching_abstractions::KeyPrefix;
use caching_inmemory::InMemoryStore;
use caching_remote::server::{AccessToken, StoreServer, StoreServerBuilder, TlsSettings};
use redis_support::Certificates;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Those that are tried, in this order: the one of the search path may be another one than the one
/// that Debian's packages belong to.
const INTERPRETERS: [&str; 2] = ["python3", "/usr/bin/python3"];
const MODULES: &str = "import google.protobuf, grpc";
/// What the client prints when the server has to shut down.
const SHUT_DOWN: &str = "shut the server down";

static CERTIFICATES: LazyLock<Certificates> = LazyLock::new(Certificates::make);

/// A server of an empty store, on a free port.
struct Server {
    runtime: Runtime,
    port: u16,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    fn start(settings: impl FnOnce(StoreServerBuilder) -> StoreServerBuilder) -> Self {
        let runtime = Runtime::new().unwrap();
        let store = Arc::new(InMemoryStore::new());
        let server = settings(StoreServer::builder(store)).build().unwrap();
        let listening = runtime.block_on(server.bind(("127.0.0.1", 0))).unwrap();
        let port = listening.local_address().port();
        let (shutdown, told) = oneshot::channel();
        let task = runtime.spawn(listening.run_until(async {
            let _ = told.await;
        }));
        Self {
            runtime,
            port,
            shutdown: Some(shutdown),
            task,
        }
    }

    /// Has the client make a check, and fails with what it prints unless everything is as it has
    /// to be.
    #[track_caller]
    fn passes(mut self, check: &str) {
        let (mut client, output) = client(check, self.port);
        let mut said = String::new();
        for line in BufReader::new(output).lines() {
            let line = line.unwrap();
            if line == SHUT_DOWN {
                let shutdown = self.shutdown.take().unwrap();
                shutdown.send(()).unwrap();
            }
            said += &line;
            said.push('\n');
        }
        let status = client.wait().unwrap();
        assert!(status.success(), "{check}: {status}\n{said}");
        if self.shutdown.is_none() {
            self.runtime.block_on(self.task).unwrap();
        }
    }
}

/// Starts the client, and gives what it prints on both of its streams.
fn client(check: &str, port: u16) -> (Child, PipeReader) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/store.py");
    let (output, input) = io::pipe().unwrap();
    let child = Command::new(interpreter())
        .arg("-B")
        .arg(script)
        .args([check, &port.to_string()])
        .args([
            CERTIFICATES.authority(),
            CERTIFICATES.certificate(),
            CERTIFICATES.key(),
        ])
        .env("PYTHONUNBUFFERED", "1")
        .stdin(Stdio::null())
        .stdout(input.try_clone().unwrap())
        .stderr(input)
        .spawn()
        .unwrap();
    (child, output)
}

/// A Python that has what the client needs.
fn interpreter() -> PathBuf {
    let has_modules = |program: &&str| {
        let mut asked = Command::new(program);
        asked.args(["-c", MODULES]).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    };
    let found = INTERPRETERS.into_iter().find(has_modules);
    let found = found.expect(
        "no python3 has `grpcio` and `protobuf`: install them (Debian and Ubuntu: `apt-get \
         install python3-grpcio python3-protobuf`, elsewhere `pip install grpcio protobuf`); \
         `cargo xtask test` does so on Debian as root",
    );
    PathBuf::from(found)
}

fn access(secret: &str) -> AccessToken {
    AccessToken::new(secret).unwrap()
}

fn tls() -> TlsSettings {
    TlsSettings::from_files(CERTIFICATES.certificate(), CERTIFICATES.key()).unwrap()
}

fn open() -> Server {
    Server::start(|settings| settings)
}

#[test]
fn part11_reflection_describes_every_service_in_both_versions() {
    open().passes("reflection");
}

#[test]
fn part3_values_numbers_and_batches_are_the_same_for_every_language() {
    open().passes("values");
}

#[test]
fn e4_an_expired_entry_is_gone() {
    open().passes("expiry");
}

#[test]
fn s6_fencing_numbers_rise_with_every_lease() {
    open().passes("leases");
}

#[test]
fn l9_a_wait_ends_with_the_lease_or_before_the_deadline() {
    open().passes("waiting");
}

#[test]
fn part3_watch_says_that_it_is_registered_and_hints_at_a_release() {
    open().passes("watching");
}

#[test]
fn part3_keys_are_listed_by_a_literal_prefix() {
    open().passes("listing");
}

#[test]
fn part3_a_session_answers_every_call_by_its_number() {
    open().passes("sessions");
}

#[test]
fn x1_a_refused_call_says_why_in_its_details() {
    open().passes("errors");
}

#[test]
fn part11_health_is_asked_and_watched() {
    open().passes("health");
}

#[test]
fn part11_a_shutdown_is_told_to_whoever_watches_and_ends_sessions() {
    open().passes("shutdown");
}

#[test]
fn k4_a_token_opens_its_prefix_and_a_wrong_one_nothing() {
    let shop = access("SECRET-shop").bound_to(KeyPrefix::new("shop").unwrap());
    Server::start(|settings| settings.token(access("SECRET-whole")).token(shop)).passes("tokens");
}

#[test]
fn part11_tls_is_spoken_with_the_authority_of_the_test_only() {
    Server::start(|settings| settings.tls(tls())).passes("tls");
}

#[test]
fn part11_a_client_without_a_certificate_is_not_let_in_where_one_is_asked_for() {
    let asking = tls()
        .client_authority_file(CERTIFICATES.authority())
        .unwrap();
    Server::start(|settings| settings.tls(asking)).passes("client_certificates");
}
