//! Sockets for virtual machines: where they are, by `--vhost` or `server.vhost`.

use std::path::Path;

use openraid_runtime::service::VhostPlace;
use openraid_runtime::ServiceHandle;

use super::options::ServeOptions;
use crate::failure::Failure;
use crate::server::ListenAddress;
use crate::verb::Context;

/// The places that were chosen.
///
/// # Errors
/// A folder that is none, or a socket without a path.
pub fn places(chosen: &ServeOptions) -> Result<Vec<VhostPlace>, Failure> {
    chosen.vhost.iter().map(|text| place(text)).collect()
}

fn place(text: &str) -> Result<VhostPlace, Failure> {
    let wrong = |why: &str| Failure::usage(format!("--vhost {text}: {why}; write FOLDER, or NAME=PATH"));
    let absolute = |path: &str| std::path::absolute(path).map_err(|error| wrong(&error.to_string()));
    match text.split_once('=') {
        Some(("", _) | (_, "")) => Err(wrong("a name or a path is missing")),
        Some((array, path)) => Ok(VhostPlace::Socket { array: array.to_owned(), path: absolute(path)? }),
        None if Path::new(text).is_dir() => Ok(VhostPlace::Folder(absolute(text)?)),
        None => Err(wrong("there is no such folder, so make it first")),
    }
}

/// The places as addresses.
pub fn listening(places: &[VhostPlace]) -> Vec<ListenAddress> {
    places.iter().cloned().map(ListenAddress::Vhost).collect()
}

/// Warn of sockets of arrays that are not served: no machine finds them.
pub fn warn_of_unserved(context: &Context, places: &[VhostPlace], handle: &ServiceHandle) {
    // An error means that the service is ending.
    let Ok(status) = handle.status() else { return };
    for place in places {
        let VhostPlace::Socket { array, path } = place else { continue };
        if !status.arrays.iter().any(|view| view.exports.contains(array)) {
            let socket = path.display();
            context.output.warn(&format!("{socket}: no array {array} is served, so virtual machines find no socket"));
        }
    }
}
