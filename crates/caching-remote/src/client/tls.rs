//! TLS: which authorities are trusted, and how this side shows who it is.

use std::path::Path;
use std::sync::Arc;

use caching_abstractions::{AssemblyProblem, RemoteSettings};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

const CA: &str = "XiHan:Caching:Remote:CaFile";
const CERTIFICATE: &str = "XiHan:Caching:Remote:ClientCertificateFile";
const KEY: &str = "XiHan:Caching:Remote:ClientKeyFile";

/// Makes the connector of `settings`, for an endpoint that asks for TLS.
///
/// # Errors
/// Everything that is wrong with the files.
pub(crate) fn connector(settings: &RemoteSettings) -> Result<TlsConnector, Vec<AssemblyProblem>> {
    let mut problems = Vec::new();
    let roots = roots(settings.ca_file.as_deref(), &mut problems);
    let identity = identity(settings, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let wrong = |subject: &str, error: rustls::Error| {
        let remedy = "give a certificate and the private key that belongs to it";
        vec![AssemblyProblem::new(subject, error.to_string(), remedy)]
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(CA, error))?
        .with_root_certificates(roots);
    let mut config = match identity {
        Some((chain, key)) => {
            let with_identity = builder.with_client_auth_cert(chain, key);
            with_identity.map_err(|error| wrong(CERTIFICATE, error))?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config).into())
}

/// The files of `settings` that would be ignored, for an endpoint that does not ask for TLS.
pub(crate) fn ignored(settings: &RemoteSettings) -> Vec<AssemblyProblem> {
    [
        (CA, &settings.ca_file),
        (CERTIFICATE, &settings.client_certificate_file),
        (KEY, &settings.client_key_file),
    ]
    .into_iter()
    .filter(|(_, file)| file.is_some())
    .map(|(subject, _)| {
        AssemblyProblem::new(
            subject,
            "it would be ignored: the endpoint does not ask for TLS",
            "use a grpcs:// endpoint, or leave the file out",
        )
    })
    .collect()
}

fn unreadable(subject: &str, file: &Path, reason: &str) -> AssemblyProblem {
    let rule = format!("`{}`: {reason}", file.display());
    AssemblyProblem::new(subject, rule, "name a readable file in PEM format")
}

fn certificates(
    subject: &str,
    file: &Path,
    problems: &mut Vec<AssemblyProblem>,
) -> Vec<CertificateDer<'static>> {
    let read = CertificateDer::pem_file_iter(file)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>());
    match read {
        Ok(certificates) if certificates.is_empty() => {
            problems.push(unreadable(subject, file, "it holds no certificate"));
            certificates
        }
        Ok(certificates) => certificates,
        Err(error) => {
            problems.push(unreadable(subject, file, &error.to_string()));
            Vec::new()
        }
    }
}

/// The own authorities where a file names them, else those of the machine.
fn roots(ca_file: Option<&Path>, problems: &mut Vec<AssemblyProblem>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let Some(file) = ca_file else {
        let known = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(known.certs);
        if roots.is_empty() {
            problems.push(AssemblyProblem::new(
                CA,
                "it is not set, and this machine trusts no authority",
                "set it to the file of the authority that signed the server's certificate",
            ));
        }
        return roots;
    };
    for certificate in certificates(CA, file, problems) {
        if let Err(error) = roots.add(certificate) {
            problems.push(unreadable(CA, file, &error.to_string()));
        }
    }
    roots
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(settings: &RemoteSettings, problems: &mut Vec<AssemblyProblem>) -> Option<Identity> {
    let files = (&settings.client_certificate_file, &settings.client_key_file);
    let (certificate, key) = match files {
        (Some(certificate), Some(key)) => (certificate, key),
        (None, None) => return None,
        (Some(_), None) => {
            let rule = "it is not set and ClientCertificateFile is";
            problems.push(AssemblyProblem::new(KEY, rule, "set both, or neither"));
            return None;
        }
        (None, Some(_)) => {
            let rule = "it is not set and ClientKeyFile is";
            problems.push(AssemblyProblem::new(
                CERTIFICATE,
                rule,
                "set both, or neither",
            ));
            return None;
        }
    };
    let chain = certificates(CERTIFICATE, certificate, problems);
    match PrivateKeyDer::from_pem_file(key) {
        Ok(key) => Some((chain, key)),
        Err(error) => {
            problems.push(unreadable(KEY, key, &error.to_string()));
            None
        }
    }
}
