//! `serve` as the client of the end-to-end tests meets it, which is written in Python and learns
//! the contract by server reflection.

use std::path::Path;
use std::process::{Command, Stdio};

use redis_support::Certificates;

use crate::support::{Call, Served};

/// Those that are tried, in this order, as in the end-to-end tests.
const INTERPRETERS: [&str; 2] = ["python3", "/usr/bin/python3"];

/// A Python that has what the client needs.
fn interpreter() -> &'static str {
    let has_modules = |program: &&str| {
        let mut asked = Command::new(program);
        asked.args(["-c", "import google.protobuf, grpc"]);
        let status = asked.stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let found = INTERPRETERS.into_iter().find(has_modules);
    found.unwrap_or_else(|| {
        panic!(
            "no python3 has `grpcio` and `protobuf`: install them (Debian and Ubuntu: `apt-get \
             install python3-grpcio python3-protobuf`); `cargo xtask test` does so on Debian as \
             root"
        )
    })
}

/// Has the client make a check of the server.
#[track_caller]
fn passes(served: &Served, certificates: &Certificates, check: &str) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/e2e/python/store.py");
    let done = Command::new(interpreter())
        .arg("-B")
        .arg(&tests)
        .args([check, &*served.port().to_string()])
        .args([
            certificates.authority(),
            certificates.certificate(),
            certificates.key(),
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(done.status.success(), "{check}: {done:?}");
}

#[test]
fn part11_another_language_learns_the_contract_and_uses_the_store() {
    let made = Certificates::make();
    let checks = [
        "reflection",
        "values",
        "leases",
        "waiting",
        "sessions",
        "health",
    ];
    for check in checks {
        passes(&Served::start(&[]), &made, check);
    }
}

#[test]
fn part11_another_language_meets_tokens_and_tls() {
    let made = Certificates::make();
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "SECRET-whole\nSECRET-shop shop\n").unwrap();
    let served = Served::start(&["--token-file", tokens.to_str().unwrap()]);
    passes(&served, &made, "tokens");

    let (authority, certificate, key) = (made.authority(), made.certificate(), made.key());
    let tls = || {
        Call::new(&["serve", "--tls-cert"]).args(&[
            certificate.as_os_str(),
            "--tls-key".as_ref(),
            key.as_os_str(),
        ])
    };
    passes(&Served::of(tls(), 0), &made, "tls");
    let asking = tls().args(&["--client-ca".as_ref(), authority.as_os_str()]);
    passes(&Served::of(asking, 0), &made, "client_certificates");
}
