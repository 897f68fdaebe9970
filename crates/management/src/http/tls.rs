//! TLS: a certificate of the administrator's, or one that is made when it is first needed; and the certificates of clients.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// A certificate and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The chain, as PEM.
    pub chain: PathBuf,
    /// The key, as PEM.
    pub key: PathBuf,
}

/// Make a certificate for these names, if there is none here yet.
///
/// # Errors
/// It cannot be written.
pub fn make(folder: &Path, names: &[String]) -> Result<Certificate, String> {
    let made = Certificate { chain: folder.join("certificate.pem"), key: folder.join("key.pem") };
    if made.chain.exists() && made.key.exists() {
        return Ok(made);
    }
    let own = rcgen::generate_simple_self_signed(names.to_vec());
    let own = own.map_err(|error| format!("no certificate can be made: {error}"))?;
    let written = fs::create_dir_all(folder)
        .and_then(|()| write(&made.key, &own.key_pair.serialize_pem()))
        .and_then(|()| write(&made.chain, &own.cert.pem()));
    written.map_err(|error| format!("the certificate in {} cannot be written: {error}", folder.display()))?;
    Ok(made)
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn wrong(path: &Path, why: impl std::fmt::Display) -> String {
    format!("{}: {why}", path.display())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| wrong(path, format_args!("no certificate in PEM form: {error:?}")))?;
    if all.is_empty() {
        return Err(wrong(path, "there is no certificate in PEM form in it"));
    }
    Ok(all)
}

/// The authorities of clients.
fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for own in certificates(path)? {
        roots.add(own).map_err(|error| wrong(path, format_args!("no certificate of an authority: {error}")))?;
    }
    Ok(roots)
}

/// The TLS settings of all connections: TLS 1.2 and 1.3; older versions are refused. With `client_ca`, so is a client that has no
/// certificate of one of those authorities.
///
/// # Errors
/// The files cannot be read, or do not belong together.
pub fn acceptor(certificate: &Certificate, client_ca: Option<&Path>) -> Result<TlsAcceptor, String> {
    let chain = certificates(&certificate.chain)?;
    let key = PrivateKeyDer::from_pem_file(&certificate.key)
        .map_err(|error| wrong(&certificate.key, format_args!("no private key in PEM form: {error:?}")))?;
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match client_ca {
        None => config.with_no_client_auth(),
        Some(path) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities(path)?), provider).build();
            config.with_client_cert_verifier(verifier.map_err(|error| wrong(path, error))?)
        }
    };
    let config = config.with_single_cert(chain, key).map_err(|error| wrong(&certificate.chain, error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
