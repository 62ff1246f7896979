use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::error::ServerError;

/// The server's certificate and key, and who signs the certificates of its clients.
///
/// ```no_run
/// use caching_remote::server::TlsSettings;
///
/// let tls = TlsSettings::from_files("server.pem", "server.key")?.client_authority_file("ca.pem")?;
/// # Ok::<(), caching_remote::server::ServerError>(())
/// ```
#[derive(Clone)]
pub struct TlsSettings {
    certificate: Pem,
    key: Pem,
    client_authority: Option<Pem>,
}

/// What a file held, and where it was.
#[derive(Clone)]
struct Pem {
    content: Arc<[u8]>,
    place: PathBuf,
}

impl TlsSettings {
    /// A certificate (with those between it and its authority) and its key, from PEM files.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn from_files(
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, ServerError> {
        Ok(Self {
            certificate: Pem::read(certificate.as_ref())?,
            key: Pem::read(key.as_ref())?,
            client_authority: None,
        })
    }

    /// The same, and every client has to show a certificate that an authority in this PEM file
    /// signed.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn client_authority_file(mut self, path: impl AsRef<Path>) -> Result<Self, ServerError> {
        self.client_authority = Some(Pem::read(path.as_ref())?);
        Ok(self)
    }

    /// What rustls makes of it.
    pub(super) fn configuration(&self) -> Result<ServerConfig, ServerError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| ServerError::tls(error.to_string()))?;
        let builder = match &self.client_authority {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                for certificate in authority.certificates()? {
                    let added = roots.add(certificate);
                    added.map_err(|error| authority.wrong(&error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder
                    .with_client_cert_verifier(verifier.map_err(|error| authority.wrong(&error))?)
            }
        };
        let chain = self.certificate.certificates()?;
        let key = PrivateKeyDer::from_pem_slice(&self.key.content)
            .map_err(|_| self.key.wrong(&"it holds no private key in PEM form"))?;
        let mut configuration = builder
            .with_single_cert(chain, key)
            .map_err(|error| self.certificate.wrong(&error))?;
        configuration.alpn_protocols = vec![b"h2".to_vec()];
        Ok(configuration)
    }
}

impl Pem {
    fn read(path: &Path) -> Result<Self, ServerError> {
        let content = std::fs::read(path)
            .map_err(|error| ServerError::tls(format!("`{}`: {error}", path.display())))?;
        Ok(Self {
            content: content.into(),
            place: path.to_owned(),
        })
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, ServerError> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.content).collect();
        match all {
            Ok(all) if !all.is_empty() => Ok(all),
            _ => Err(self.wrong(&"it holds no certificate in PEM form")),
        }
    }

    fn wrong(&self, reason: &dyn fmt::Display) -> ServerError {
        ServerError::tls(format!("`{}`: {reason}", self.place.display()))
    }
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.client_authority.as_ref();
        f.debug_struct("TlsSettings")
            .field("certificate", &self.certificate.place)
            .field("key", &self.key.place)
            .field("client_authority", &authority.map(|pem| &pem.place))
            .finish()
    }
}
