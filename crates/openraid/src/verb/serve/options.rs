//! The options of a server: those of the command line, and those of the configuration file that the command line leaves
//! out.

use std::path::PathBuf;

use openraid_config::{AfterPowerCut, FileValue};
use openraid_units::Bytes;

use crate::arguments::ServeArguments;
use crate::desired::model::{SourceWord, ValueModel};
use crate::quantity::human;
use crate::server::desired::InForce;

/// Default memory for payload.
const MEMORY: Bytes = Bytes::mib(160);
/// Default maximum number of commands at one drive.
const DRIVE_DEPTH: u32 = 128;
/// Default age in seconds after which a waiting command is sent before others.
const QUEUE_AGE: u64 = 2;

/// The options in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServeOptions {
    /// TCP addresses.
    pub nbd: Vec<String>,
    /// Unix sockets.
    pub nbd_unix: Vec<PathBuf>,
    /// TCP addresses of NBD over TLS.
    pub nbd_tls: Vec<String>,
    /// Addresses of NVMe/TCP.
    pub nvme: Vec<String>,
    /// Places of sockets for virtual machines.
    pub vhost: Vec<String>,
    /// Memory for payload.
    pub memory: Bytes,
    /// Memory for the cache.
    pub cache: Option<Bytes>,
    /// Maximum number of commands at one drive.
    pub drive_depth: u32,
    /// Age in seconds after which a waiting command is sent before others.
    pub queue_age: u64,
    /// Devices of the journal.
    pub journal: Vec<String>,
    /// What becomes of hosts after the machine went down; `None` if neither says it.
    pub after_power_cut: Option<AfterPowerCut>,
    /// The values of the command line, for reports.
    pub overview: Vec<ValueModel>,
    /// Differences between the command line and the file.
    pub notes: Vec<String>,
}

impl ServeOptions {
    /// Combines both; the command line overrides the file.
    pub fn of(arguments: &ServeArguments, file: Option<&InForce>) -> Self {
        let desired = file.map(|file| file.desired.server.clone()).unwrap_or_default();
        let mut overview = Overview { path: file.map(|file| file.path.display().to_string()), ..Overview::default() };
        let paths =
            |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        // Both lists together say where clients can connect, so one list on the command line replaces both.
        let listens = !arguments.nbd.is_empty() || !arguments.nbd_unix.is_empty();
        let (file_nbd, file_unix) = (desired.nbd, desired.nbd_unix);
        if listens {
            let nbd = file_nbd.as_ref().map(|placed| (placed.value.join(", "), placed.line));
            overview.note("nbd", arguments.nbd.join(", "), nbd);
            let unix = file_unix.as_ref().map(|placed| (paths(&placed.value), placed.line));
            overview.note("nbd-unix", paths(&arguments.nbd_unix), unix);
            overview.note(
                "nbd-tls",
                String::new(),
                desired.nbd_tls.as_ref().map(|placed| (placed.value.join(", "), placed.line)),
            );
        }
        overview.list("nvme", &arguments.nvme, desired.nvme.as_ref());
        overview.list("vhost", &arguments.vhost, desired.vhost.as_ref());
        let listen = file.and_then(|file| file.desired.management.listen.as_ref());
        let listen = listen.map(|placed| (placed.value.clone(), placed.line));
        overview.option("management.listen", arguments.http.clone(), listen);
        let text = |bytes: Bytes| human(bytes);
        overview.option(
            "memory",
            arguments.memory.map(text),
            desired.memory.as_ref().map(|placed| (text(placed.value), placed.line)),
        );
        overview.option(
            "cache",
            arguments.cache.map(text),
            desired.cache.as_ref().map(|placed| (text(placed.value), placed.line)),
        );
        let depth = desired.drive_depth.as_ref().map(|placed| (placed.value.to_string(), placed.line));
        overview.option("drive-depth", arguments.drive_depth.map(|number| number.to_string()), depth);
        let age = desired.queue_age.as_ref().map(|placed| (placed.value.to_string(), placed.line));
        overview.option("queue-age", arguments.queue_age.map(|number| number.to_string()), age);
        overview.list("journal", &arguments.journal, desired.journal.as_ref());
        let cut = desired.after_power_cut.as_ref().map(|placed| (placed.value.word().to_owned(), placed.line));
        overview.option("after-power-cut", arguments.after_power_cut.map(|cut| cut.word().to_owned()), cut);
        let or = |given: &[String], file: Option<Vec<String>>| match given {
            [] => file.unwrap_or_default(),
            given => given.to_vec(),
        };
        Self {
            nbd: or(&arguments.nbd, file_nbd.map(|placed| placed.value).filter(|_| !listens)),
            nbd_unix: match arguments.nbd_unix.as_slice() {
                [] => file_unix.map(|placed| placed.value).filter(|_| !listens).unwrap_or_default(),
                given => given.to_vec(),
            },
            nbd_tls: desired.nbd_tls.map(|placed| placed.value).filter(|_| !listens).unwrap_or_default(),
            nvme: or(&arguments.nvme, desired.nvme.map(|placed| placed.value)),
            vhost: or(&arguments.vhost, desired.vhost.map(|placed| placed.value)),
            memory: arguments.memory.or(desired.memory.map(|placed| placed.value)).unwrap_or(MEMORY),
            cache: arguments.cache.or(desired.cache.map(|placed| placed.value)),
            drive_depth: arguments
                .drive_depth
                .or(desired.drive_depth.map(|placed| placed.value))
                .unwrap_or(DRIVE_DEPTH),
            queue_age: arguments.queue_age.or(desired.queue_age.map(|placed| placed.value)).unwrap_or(QUEUE_AGE),
            journal: or(&arguments.journal, desired.journal.map(|placed| placed.value)),
            after_power_cut: arguments.after_power_cut.or(desired.after_power_cut.map(|placed| placed.value)),
            overview: overview.values,
            notes: overview.notes,
        }
    }
}

#[derive(Default)]
struct Overview {
    path: Option<String>,
    values: Vec<ValueModel>,
    notes: Vec<String>,
}

impl Overview {
    fn list(&mut self, key: &str, given: &[String], file: Option<&FileValue<Vec<String>>>) {
        let file = file.map(|placed| (placed.value.join(", "), placed.line));
        self.option(key, Some(given.join(", ")).filter(|_| !given.is_empty()), file);
    }

    fn option(&mut self, key: &str, given: Option<String>, file: Option<(String, u32)>) {
        if let Some(given) = given {
            self.note(key, given, file);
        }
    }

    fn note(&mut self, key: &str, given: String, file: Option<(String, u32)>) {
        let shown = if given.is_empty() { "(none)" } else { &given };
        if let (Some((value, line)), Some(path)) = (file.filter(|(value, _)| *value != given), &self.path) {
            self.notes.push(format!("{key}: {shown} of the command line overrides {value} ({path}, line {line})"));
        }
        if !given.is_empty() {
            self.values.push(ValueModel { key: key.into(), value: given, from: SourceWord::CommandLine, line: None });
        }
    }
}
