//! Messages to a service manager: `sd_notify`'s datagrams, without its library.
//!
//! Without `NOTIFY_SOCKET` in the environment nothing is sent. A manager that does not read does not delay the server.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use openraid_units::Instant;

/// A service manager, if there is one.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// The manager that started this process.
    pub fn from_environment() -> Self {
        let socket = std::env::var_os("NOTIFY_SOCKET").and_then(|name| {
            let address = match name.as_bytes() {
                [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
                path => SocketAddr::from_pathname(std::path::Path::new(std::ffi::OsStr::from_bytes(path))),
            };
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?;
            Some((socket, address.ok()?))
        });
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let is_other = number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| *micros > 0 && !is_other).map(Duration::from_micros);
        Self { socket, watchdog }
    }

    fn send(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            // If the manager is gone, or its queue is full, the message is dropped.
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }

    /// Clients can connect.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// The state of the server in one line.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={status}"));
    }

    /// The configuration is being read; [`Notifier::ready`] ends that.
    pub fn reloading(&self) {
        let micros = openraid_sys::clock::now().since(Instant::ZERO).get() / 1000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// The server stops.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=stopping");
    }

    /// The loop that serves has just answered.
    pub fn alive(&self) {
        if self.watchdog.is_some() {
            self.send("WATCHDOG=1");
        }
    }

    /// The interval of messages to the manager: at most a third of its own limit.
    pub fn tick(&self, usual: Duration) -> Duration {
        self.watchdog.map_or(usual, |watchdog| usual.min(watchdog / 3))
    }
}
