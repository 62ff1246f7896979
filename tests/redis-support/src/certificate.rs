//! Certificates for servers that speak TLS, made with `openssl`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::Server;

/// An authority of its own, and a certificate of it for `127.0.0.1` and `localhost`.
#[derive(Debug)]
pub struct Certificates {
    directory: TempDir,
}

impl Certificates {
    /// Makes them.
    ///
    /// # Panics
    /// If `openssl` is missing.
    pub fn make() -> Self {
        let made = Self {
            directory: tempfile::tempdir().expect("a folder of its own"),
        };
        let names = "subjectAltName=IP:127.0.0.1,DNS:localhost";
        std::fs::write(made.path("names.txt"), names).expect("a file");
        made.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
             -subj /CN=authority -keyout ca.key -out ca.pem",
        );
        made.openssl(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
             -subj /CN=localhost -keyout server.key -out server.csr",
        );
        made.openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
             -extfile names.txt -out server.pem",
        );
        made
    }

    fn openssl(&self, arguments: &str) {
        let status = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(self.directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "openssl fails");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The authority's certificate.
    pub fn authority(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// A certificate of the authority, for either side.
    pub fn certificate(&self) -> PathBuf {
        self.path("server.pem")
    }

    /// The private key of [`certificate`](Self::certificate).
    pub fn key(&self) -> PathBuf {
        self.path("server.key")
    }

    /// A server that speaks TLS on the port this gives beside it, and asks for a certificate of
    /// the authority where `asks` says so.
    pub fn server(&self, asks: bool) -> (Server, u16) {
        let asks = if asks { "yes" } else { "no" };
        self.server_with(&[("tls-auth-clients", asks)])
    }

    /// A server that speaks TLS on the port this gives beside it, with more settings.
    pub(crate) fn server_with(&self, settings: &[(&str, &str)]) -> (Server, u16) {
        let port = crate::free_port();
        let own = self.settings(port);
        let mut all: Vec<(&str, &str)> =
            own.iter().map(|(name, value)| (*name, &**value)).collect();
        all.extend_from_slice(settings);
        (Server::with(&all), port)
    }

    /// The settings of a server or sentinel that speaks TLS on `port`.
    pub(crate) fn settings(&self, port: u16) -> [(&'static str, String); 4] {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        [
            ("tls-port", port.to_string()),
            ("tls-cert-file", text(&self.certificate())),
            ("tls-key-file", text(&self.key())),
            ("tls-ca-cert-file", text(&self.authority())),
        ]
    }
}
