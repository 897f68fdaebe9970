//! The control socket: the other verbs send their commands to a running server through it.
//!
//! A unix socket with mode 0600. Each message is one JSON object on one line; every request has one line as its answer.
//! Both carry the version of the protocol, and an unknown version gets an error text.
//!
//! ```text
//!  {"v":2,"do":"fail","array":"data","member":"/srv/d2"}
//!  {"v":2,"ok":{"done":{"text":"...","array":{...}}}}
//!  {"v":2,"error":{"exit":65,"text":"..."}}
//! ```

mod client;
mod listen;
mod protocol;

pub use client::{offline_text, ControlConnection, ControlServers};
pub use listen::{listen, make_folder, Answerer, TLS_SUFFIX};
pub use protocol::{Command, ServerAnswer, ServerModel};

use std::path::PathBuf;

/// The folder of the control sockets of this user's servers.
pub fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder).join("openraid"),
        _ if crate::registry::is_root() => PathBuf::from("/run/openraid"),
        _ => std::env::temp_dir().join(format!("openraid-{}", user_number())),
    }
}

fn user_number() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").map_or(0, |metadata| metadata.uid())
}
