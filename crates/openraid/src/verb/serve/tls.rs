//! NBD over TLS for `openraid serve`: a socket of the server's own, to which the clients' bytes go.

use std::net::SocketAddr;
use std::path::PathBuf;

use openraid_management::{NbdTls, NbdTlsOptions, NbdTlsRuns, Options};
use openraid_runtime::service::Listen;

use super::listening_sockets::ListeningSockets;
use super::options::ServeOptions;
use super::{addresses, Context};
use crate::control;
use crate::failure::Failure;
use crate::server::desired::InForce;
use crate::server::{ListenAddress, Server};

/// NBD over TLS, if the configuration asks for it.
pub struct Tls {
    bound: Option<NbdTls>,
    addresses: Vec<SocketAddr>,
    socket: PathBuf,
    is_open: bool,
    /// The certificate, and the authorities of clients.
    files: Vec<PathBuf>,
}

/// The addresses, if the configuration asks for some.
///
/// # Errors
/// One is invalid.
pub fn listen(chosen: &ServeOptions) -> Result<Vec<SocketAddr>, Failure> {
    let found = chosen.nbd_tls.iter().map(|text| addresses("nbd-tls", text)).collect::<Result<Vec<_>, _>>()?;
    Ok(found.concat())
}

/// Take the addresses. Sockets listen already at the addresses of `ready`.
///
/// # Errors
/// One is in use; certificate or key cannot be read.
pub fn bind(
    chosen: &ServeOptions,
    file: Option<&InForce>,
    listen: Vec<SocketAddr>,
    ready: &ListeningSockets,
) -> Result<Tls, Failure> {
    // No client names it: the number of the process keeps servers apart.
    let socket = control::folder().join(format!("{}{}", std::process::id(), control::TLS_SUFFIX));
    let desired = file.map(|file| &file.desired.server).filter(|_| !chosen.nbd_tls.is_empty());
    let files =
        desired.and_then(|server| Some((server, server.nbd_tls_certificate.clone()?, server.nbd_tls_key.clone()?)));
    let Some((server, certificate, key)) = files else {
        return Ok(Tls { bound: None, addresses: Vec::new(), socket, is_open: false, files: Vec::new() });
    };
    let client_ca = server.nbd_tls_client_ca.as_ref().map(|placed| placed.value.clone());
    let is_open = client_ca.is_none();
    let files = client_ca.iter().chain([&certificate.value]).cloned().collect();
    let options = NbdTlsOptions { listen, certificate: certificate.value, key: key.value, client_ca };
    let bound = NbdTls::bind(&options, &ready.nbd_tls).map_err(|error| ready.crossed.explain_tls(error.0))?;
    control::make_folder()?;
    Ok(Tls { addresses: bound.addresses(), bound: Some(bound), socket, is_open, files })
}

impl Tls {
    /// The server's own socket, on which it must listen.
    pub fn inside(&self) -> Option<Listen> {
        self.bound.as_ref().map(|_| Listen::Unix(self.socket.clone()))
    }

    /// Its files with certificates, and those of the interfaces over HTTP.
    pub fn certificates(&self, web: Option<&Options>) -> Vec<PathBuf> {
        let web =
            web.into_iter().flat_map(|web| web.client_ca.iter().chain(web.certificate.as_ref().map(|files| &files.0)));
        let mut all: Vec<PathBuf> = self.files.iter().chain(web).cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    /// The addresses for clients.
    pub fn listening(&self) -> Vec<ListenAddress> {
        self.addresses.iter().map(|address| ListenAddress::Tls(*address)).collect()
    }

    /// Accept clients until the end. The server reads the files again at a reload.
    ///
    /// # Errors
    /// There is no thread.
    pub fn run(self, context: &Context, server: &Server) -> Result<Option<NbdTlsRuns>, Failure> {
        server.keep_nbd_tls(self.bound.as_ref().map(|bound| bound.renewal().clone()));
        for address in self.addresses.iter().filter(|address| self.is_open && !address.ip().is_loopback()) {
            context.output.warn(&format!(
                "{address} is open to the network: without nbd-tls-client-ca, every client that can reach it can read and write the \
                 arrays, over an encrypted connection"
            ));
        }
        let run = |bound: NbdTls| bound.run(self.socket).map_err(|error| Failure::failed(error.0));
        self.bound.map(run).transpose()
    }
}
