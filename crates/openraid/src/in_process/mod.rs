//! A server inside this process, for verbs that measure an array over NBD. Other programs do not find it.

pub mod trial;

use std::path::PathBuf;
use std::sync::Arc;

use openraid_core::limits::Limits;
use openraid_runtime::service::{Listen, Service};
use openraid_runtime::ServiceConfig;

use crate::failure::Failure;
use crate::server::{ListenAddress, Server, ServerOptions};

/// The folder of its socket and registry, which is removed at the end.
#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // A failure leaves only temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The server.
#[derive(Debug)]
pub struct InProcess {
    /// Its engine.
    pub service: Service,
    /// Its arrays.
    pub server: Arc<Server>,
    socket: PathBuf,
    _folder: Folder,
}

impl InProcess {
    /// Start one without an array. `purpose` is a part of the name of its folder among the temporary files.
    ///
    /// # Errors
    /// The folder cannot be made, or the limits cannot work here.
    pub fn start(purpose: &str, limits: Limits) -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("openraid-{purpose}-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|error| Failure::failed(format!("{}: the folder cannot be made: {error}", path.display())))?;
        let folder = Folder(path);
        let socket = folder.0.join("nbd.sock");
        let config = ServiceConfig { limits, listen: vec![Listen::Unix(socket.clone())], ..ServiceConfig::default() };
        let service = Service::start(config).map_err(Failure::failed)?;
        let server = Server::new(ServerOptions::private(service.handle(), &folder.0, &socket));
        Ok(Self { service, server, socket, _folder: folder })
    }

    /// The address of an array of this server for NBD clients.
    pub fn uri(&self, array: &str) -> String {
        ListenAddress::Unix(self.socket.clone()).uri(array)
    }

    /// The socket for clients.
    #[cfg(test)]
    pub fn socket(&self) -> &std::path::Path {
        &self.socket
    }

    /// Stop the server.
    pub fn stop(self) {
        self.service.stop();
    }
}
