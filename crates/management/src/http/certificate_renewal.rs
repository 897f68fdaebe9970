//! Certificates that are renewed while the server runs.
//!
//! ```text
//!  read: files --> the same as in force, or broken: nothing changes
//!               \-> Fresh --put--> connections that begin from now on; the others keep what they began with
//! ```

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_rustls::TlsAcceptor;

use super::tls::{acceptor, flaws, Certificate};

/// The TLS settings of one kind of address, and the files that they are of.
#[derive(Clone)]
pub struct Renewal {
    held: Arc<Mutex<TlsState>>,
}

/// Files of TLS settings, as PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Certificates of authorities: a client must have a certificate of one of them.
    pub client_ca: Option<PathBuf>,
}

struct TlsState {
    files: TlsFiles,
    acceptor: TlsAcceptor,
    /// What the files had in them.
    content: Vec<u64>,
}

/// Settings that were read, and are not in force yet.
pub struct PendingTls {
    renewal: Renewal,
    held: TlsState,
}

impl TlsFiles {
    fn content(&self) -> Vec<u64> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca).map(|path| content_of(path)).collect()
    }

    /// The content is looked at first: a file that changes meanwhile is read once more the next time.
    fn read(self) -> Result<TlsState, String> {
        let content = self.content();
        let both = Certificate { chain: self.certificate.clone(), key: self.key.clone() };
        Ok(TlsState { acceptor: acceptor(&both, self.client_ca.as_deref())?, content, files: self })
    }
}

/// A number that changes with the content of a file; 0 if it cannot be read.
fn content_of(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    fs::read(path).map_or(0, |bytes| {
        bytes.hash(&mut hasher);
        hasher.finish()
    })
}

impl Renewal {
    /// Read the files for the first time.
    ///
    /// # Errors
    /// The files cannot be read, or do not belong together.
    pub(crate) fn new(certificate: Certificate, client_ca: Option<PathBuf>) -> Result<Self, String> {
        let files = TlsFiles { certificate: certificate.chain, key: certificate.key, client_ca };
        Ok(Self { held: Arc::new(Mutex::new(files.read()?)) })
    }

    fn held(&self) -> MutexGuard<'_, TlsState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The settings for a connection that begins now.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.held().acceptor.clone()
    }

    /// The files in force.
    #[must_use]
    pub fn files(&self) -> TlsFiles {
        self.held().files.clone()
    }

    /// Read these files; none if they are the ones in force and have not changed. Nothing is in force before [`PendingTls::put`].
    ///
    /// # Errors
    /// A file that has changed cannot be read, does not belong to the others, or has a certificate that is not valid now.
    pub fn read(&self, files: TlsFiles) -> Result<Option<PendingTls>, String> {
        {
            let held = self.held();
            if files == held.files && files.content() == held.content {
                return Ok(None);
            }
        }
        let found = flaws(Some((&files.certificate, &files.key)), files.client_ca.as_deref());
        if let Some((_, why)) = found.into_iter().next() {
            return Err(why);
        }
        Ok(Some(PendingTls { renewal: self.clone(), held: files.read()? }))
    }
}

impl PendingTls {
    /// Connections that begin from now on have these settings. Returns the file of the certificate.
    #[must_use]
    pub fn put(self) -> PathBuf {
        let certificate = self.held.files.certificate.clone();
        *self.renewal.held() = self.held;
        certificate
    }
}
