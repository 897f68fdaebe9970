//! The HTTP interfaces of `openraid serve`: their options, and the address that is printed.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use openraid_config::DesiredManagement;
use openraid_management::{Management, Options};
use openraid_status::Role;

use super::addresses;
use crate::arguments::ServeArguments;
use crate::failure::Failure;
use crate::server::desired::InForce;
use crate::server::{web, Server};

/// Starts the interfaces if they are requested. Interfaces that cannot start are an alarm, and are tried again.
pub fn start(options: Option<Options>, server: &Arc<Server>) -> Option<Arc<Management>> {
    let Some(options) = options else {
        server.forget_events();
        return None;
    };
    web::start_or_retry(server, options)
}

/// The options of the interfaces; none if they are not requested. The command line overrides the file.
///
/// # Errors
/// An address is invalid.
pub fn options(arguments: &ServeArguments, file: Option<&InForce>) -> Result<Option<Options>, Failure> {
    let desired = file.map(|file| file.desired.management.clone()).unwrap_or_default();
    let DesiredManagement { listen, certificate, key, client_ca, names, metrics_md, drives } = desired;
    let Some(listen) = arguments.http.clone().or(listen.map(|placed| placed.value)) else {
        return Ok(None);
    };
    let listen = addresses("--http", &listen)?;
    let listen = listen.first().copied().unwrap_or(SocketAddr::new(IpAddr::from([127, 0, 0, 1]), 0));
    let both = certificate.zip(key).map(|(chain, key)| (chain.value, key.value));
    Ok(Some(Options {
        listen,
        kept: None,
        folder: PathBuf::new(),
        certificate: both,
        client_ca: client_ca.map(|placed| placed.value),
        names: names.map(|placed| placed.value).unwrap_or_default(),
        metrics_md: arguments.metrics_md || metrics_md.is_some_and(|placed| placed.value),
        drives: drives.map(|placed| placed.value).unwrap_or_default(),
    }))
}

/// The address of the console. If no user has a password, also a link that signs in once, unless the output goes to the journal of
/// systemd: readers of the journal are not administrators.
pub fn announcement(management: &Management) -> (String, Option<String>) {
    let link = (!management.has_users() && !is_journal()).then(|| management.login(Role::Administrator));
    (management.url(), link)
}

/// Does the output go to the journal? `JOURNAL_STREAM` has device and inode of its stream; if output and errors go there by two streams,
/// those of the errors (systemd.exec(5)).
fn is_journal() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let is_stream = |metadata: std::fs::Metadata| stream == format!("{}:{}", metadata.dev(), metadata.ino());
    ["/proc/self/fd/1", "/proc/self/fd/2"].into_iter().any(|path| std::fs::metadata(path).is_ok_and(is_stream))
}
