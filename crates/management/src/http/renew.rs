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
use std::sync::{Arc, Mutex, PoisonError};

use tokio_rustls::TlsAcceptor;

use super::tls::{acceptor, flaws, Certificate};

/// The TLS settings of one kind of address, and the files that they are of.
#[derive(Clone)]
pub struct Renewal {
    files: Arc<Files>,
    held: Arc<Mutex<Held>>,
}

struct Files {
    certificate: Certificate,
    client_ca: Option<PathBuf>,
}

struct Held {
    acceptor: TlsAcceptor,
    /// What the files had in them.
    content: Vec<u64>,
}

/// Settings that were read, and are not in force yet.
pub struct Fresh {
    renewal: Renewal,
    held: Held,
}

impl Files {
    fn all(&self) -> impl Iterator<Item = &Path> {
        [&self.certificate.chain, &self.certificate.key].into_iter().chain(&self.client_ca).map(PathBuf::as_path)
    }

    /// The content is looked at first: a file that changes meanwhile is read once more the next time.
    fn read(&self) -> Result<Held, String> {
        let content = self.all().map(content_of).collect();
        Ok(Held { acceptor: acceptor(&self.certificate, self.client_ca.as_deref())?, content })
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
        let files = Files { certificate, client_ca };
        let held = files.read()?;
        Ok(Self { files: Arc::new(files), held: Arc::new(Mutex::new(held)) })
    }

    /// The settings for a connection that begins now.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).acceptor.clone()
    }

    /// Read the files again; none if they have not changed. Nothing is in force before [`Fresh::put`].
    ///
    /// # Errors
    /// A file that has changed cannot be read, does not belong to the others, or has a certificate that is not valid now.
    pub fn read(&self) -> Result<Option<Fresh>, String> {
        let Files { certificate, client_ca } = &*self.files;
        let content: Vec<u64> = self.files.all().map(content_of).collect();
        if content == self.held.lock().unwrap_or_else(PoisonError::into_inner).content {
            return Ok(None);
        }
        let found = flaws(Some((&certificate.chain, &certificate.key)), client_ca.as_deref());
        if let Some((_, why)) = found.into_iter().next() {
            return Err(why);
        }
        Ok(Some(Fresh { renewal: self.clone(), held: self.files.read()? }))
    }
}

impl Fresh {
    /// Connections that begin from now on have these settings. Returns the file of the certificate.
    #[must_use]
    pub fn put(self) -> PathBuf {
        *self.renewal.held.lock().unwrap_or_else(PoisonError::into_inner) = self.held;
        self.renewal.files.certificate.chain.clone()
    }
}
