//! The desired state as types.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use openraid_format::Uuid;
use openraid_status::alarm::Severity;
use openraid_status::{ScheduleWord, SinkWord};
use openraid_units::Bytes;

/// A value, and the line on which it stands, counted from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileValue<T> {
    pub value: T,
    pub line: u32,
}

/// The desired state of a server. Keys that the file leaves out come from the command line or the defaults.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DesiredState {
    /// The server itself.
    pub server: DesiredServer,
    /// Arrays, by name, in the order of the file's keys.
    pub arrays: Vec<DesiredArray>,
    /// The HTTP interfaces.
    pub management: DesiredManagement,
    pub spares: Vec<DesiredSpare>,
    /// Where alarms are sent.
    pub sinks: Vec<DesiredSink>,
    /// When arrays are checked.
    pub schedules: Vec<DesiredSchedule>,
    /// How drives are looked after.
    pub care: DesiredCare,
    /// Notes on values that are allowed but may be a mistake, such as a drive's name that can change.
    pub notes: Vec<crate::ConfigProblem>,
}

/// The table `[server]`: it takes effect when the server starts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DesiredServer {
    /// TCP addresses: `HOST:PORT`, or `PORT` on the loopback.
    pub nbd: Option<FileValue<Vec<String>>>,
    /// Unix sockets.
    pub nbd_unix: Option<FileValue<Vec<PathBuf>>>,
    /// TCP addresses of NBD over TLS: `HOST:PORT`, or `PORT` on the loopback.
    pub nbd_tls: Option<FileValue<Vec<String>>>,
    /// The certificate chain of NBD over TLS, as PEM.
    pub nbd_tls_certificate: Option<FileValue<PathBuf>>,
    /// Its key, as PEM.
    pub nbd_tls_key: Option<FileValue<PathBuf>>,
    /// Certificates of authorities, as PEM: a client of NBD over TLS must have a certificate of one of them.
    pub nbd_tls_client_ca: Option<FileValue<PathBuf>>,
    /// Addresses of NVMe/TCP: `HOST:PORT`, or `PORT` on the loopback.
    pub nvme: Option<FileValue<Vec<String>>>,
    /// Places of sockets for virtual machines: `FOLDER`, or `NAME=PATH`.
    pub vhost: Option<FileValue<Vec<String>>>,
    /// Memory for payload.
    pub memory: Option<FileValue<Bytes>>,
    /// Memory for the cache.
    pub cache: Option<FileValue<Bytes>>,
    /// Commands that one drive is given at once.
    pub drive_depth: Option<FileValue<u32>>,
    /// Seconds after which a waiting command goes before others.
    pub queue_age: Option<FileValue<u64>>,
    /// Devices of the journal.
    pub journal: Option<FileValue<Vec<String>>>,
    /// What becomes of hosts after the machine went down.
    pub after_power_cut: Option<FileValue<AfterPowerCut>>,
}

impl DesiredServer {
    /// The keys whose values differ in another one.
    #[must_use]
    pub fn changed_keys(&self, other: &Self) -> Vec<&'static str> {
        fn differs<T: PartialEq>(a: &Option<FileValue<T>>, b: &Option<FileValue<T>>) -> bool {
            a.as_ref().map(|placed| &placed.value) != b.as_ref().map(|placed| &placed.value)
        }
        let all = [
            ("nbd", differs(&self.nbd, &other.nbd)),
            ("nbd-unix", differs(&self.nbd_unix, &other.nbd_unix)),
            ("nbd-tls", differs(&self.nbd_tls, &other.nbd_tls)),
            ("nbd-tls-certificate", differs(&self.nbd_tls_certificate, &other.nbd_tls_certificate)),
            ("nbd-tls-key", differs(&self.nbd_tls_key, &other.nbd_tls_key)),
            ("nbd-tls-client-ca", differs(&self.nbd_tls_client_ca, &other.nbd_tls_client_ca)),
            ("nvme", differs(&self.nvme, &other.nvme)),
            ("vhost", differs(&self.vhost, &other.vhost)),
            ("memory", differs(&self.memory, &other.memory)),
            ("cache", differs(&self.cache, &other.cache)),
            ("drive-depth", differs(&self.drive_depth, &other.drive_depth)),
            ("queue-age", differs(&self.queue_age, &other.queue_age)),
            ("journal", differs(&self.journal, &other.journal)),
            ("after-power-cut", differs(&self.after_power_cut, &other.after_power_cut)),
        ];
        all.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
    }
}

/// The table `[management]`: it takes effect when the server starts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DesiredManagement {
    /// The address of API, console, metrics and Redfish: `HOST:PORT`, or `PORT` on the loopback; without it there are none.
    pub listen: Option<FileValue<String>>,
    /// The certificate chain, as PEM.
    pub certificate: Option<FileValue<PathBuf>>,
    /// Its key, as PEM.
    pub key: Option<FileValue<PathBuf>>,
    /// Certificates of authorities, as PEM: a client must have a certificate of one of them.
    pub client_ca: Option<FileValue<PathBuf>>,
    /// Host names by which clients may come.
    pub names: Option<FileValue<Vec<String>>>,
    /// Give metrics also under the names that node_exporter has for md.
    pub metrics_md: Option<FileValue<bool>>,
    /// Drives that Redfish may make arrays of.
    pub drives: Option<FileValue<Vec<String>>>,
}

impl DesiredManagement {
    /// The keys whose values differ in another one.
    #[must_use]
    pub fn changed_keys(&self, other: &Self) -> Vec<&'static str> {
        fn differs<T: PartialEq>(a: &Option<FileValue<T>>, b: &Option<FileValue<T>>) -> bool {
            a.as_ref().map(|placed| &placed.value) != b.as_ref().map(|placed| &placed.value)
        }
        let all = [
            ("management.listen", differs(&self.listen, &other.listen)),
            ("management.certificate", differs(&self.certificate, &other.certificate)),
            ("management.key", differs(&self.key, &other.key)),
            ("management.client-ca", differs(&self.client_ca, &other.client_ca)),
            ("management.names", differs(&self.names, &other.names)),
            ("management.metrics-md", differs(&self.metrics_md, &other.metrics_md)),
            ("management.drives", differs(&self.drives, &other.drives)),
        ];
        all.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
    }
}

/// The table `[care]`: how drives are looked after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesiredCare {
    /// Seconds after which a drive without commands is read; nothing: never.
    pub idle_probe: Option<u64>,
    /// Seconds from one question for a drive's health to the next; nothing: never.
    pub smart: Option<u64>,
    /// Seconds for which the times of commands are collected before members are compared with each other; nothing: never.
    pub slow_window: Option<u64>,
    /// The program that reads a drive's health. A program that is set here is asked about files too. Without one,
    /// `smartctl` is used if it is found, for block devices only.
    pub smartctl: Option<FileValue<PathBuf>>,
    /// The program that is called to switch a drive's light.
    pub led: Option<FileValue<PathBuf>>,
}

impl Default for DesiredCare {
    fn default() -> Self {
        Self { idle_probe: Some(600), smart: Some(1800), slow_window: Some(60), smartctl: None, led: None }
    }
}

/// How an array is identified.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ArrayId {
    Name(String),
    /// By its UUID, which stays when it is renamed.
    Uuid(Uuid),
}

impl fmt::Display for ArrayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Uuid(uuid) => write!(f, "{uuid}"),
        }
    }
}

/// The access that hosts have to an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    #[default]
    ReadWrite,
    /// Read. A write is refused.
    ReadOnly,
    /// Nothing: it has no export. Rebuilds and checks run.
    Blocked,
}

impl Access {
    /// All values.
    pub const ALL: [Self; 3] = [Self::ReadWrite, Self::ReadOnly, Self::Blocked];

    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReadWrite => "read-write",
            Self::ReadOnly => "read-only",
            Self::Blocked => "blocked",
        }
    }
}

/// What becomes of hosts after the machine went down with writes in the caches of drives that hosts had been answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AfterPowerCut {
    /// They are refused until an administrator admits them: a host that kept its power does not know of the loss.
    #[default]
    Refuse,
    /// They are served, with an alarm: they went down with the server.
    Admit,
}

impl AfterPowerCut {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Refuse, Self::Admit];

    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Admit => "admit",
        }
    }
}

impl FromStr for AfterPowerCut {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|value| value.word() == text);
        found.ok_or_else(|| format!("{text}: use refuse or admit"))
    }
}

impl FromStr for Access {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|access| access.word() == text);
        found.ok_or_else(|| format!("access={text}: use read-write, read-only or blocked"))
    }
}

/// A table `[arrays.NAME]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesiredArray {
    pub id: ArrayId,
    /// The line of its table.
    pub line: u32,
    /// Its members; if empty, the members in the registry.
    pub members: Vec<String>,
    /// Names under which clients find it; empty: its own.
    pub exports: Vec<String>,
    /// The names of the NVMe hosts that may use it; if nothing is given, all.
    pub hosts: Option<Vec<String>>,
    /// The access that hosts have; if nothing is given, the access that was set.
    pub access: Option<FileValue<Access>>,
    /// Settings in the order of their names, `profile` first.
    pub settings: Vec<DesiredSetting>,
}

impl DesiredArray {
    /// A setting by its name.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<&DesiredSetting> {
        self.settings.iter().find(|setting| setting.key == key)
    }
}

/// A setting, as `openraid set` takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesiredSetting {
    pub key: String,
    pub value: String,
    /// The line on which it stands.
    pub line: u32,
}

/// Which arrays a spare is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpareFor {
    /// Any array of this server that needs one.
    All,
    /// One array, or one span of a nested one.
    Array {
        name: String,
        /// The span, counted from 0.
        span: Option<u32>,
    },
}

/// An entry of `[[spares]]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesiredSpare {
    /// The drive.
    pub member: String,
    /// The line of its table.
    pub line: u32,
    /// Which arrays it is for.
    pub whom: SpareFor,
}

/// The form of a webhook's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WebhookForm {
    /// The program's own JSON.
    #[default]
    Json,
    /// As Alertmanager's API takes alerts.
    Alertmanager,
}

/// How a mail server is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MailTls {
    /// In plain text.
    None,
    /// In plain text until STARTTLS, which is required.
    #[default]
    StartTls,
    /// TLS from the beginning.
    Tls,
}

/// Where a sink sends alarms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SinkKind {
    /// A program, called as mdadm calls its PROGRAM.
    Exec {
        /// Its absolute path.
        program: PathBuf,
    },
    /// An HTTP server that takes POST requests.
    Webhook {
        /// Its address.
        url: String,
        /// The form of the messages.
        form: WebhookForm,
    },
    /// A mail server.
    Mail {
        /// `HOST:PORT`.
        server: String,
        /// How it is spoken to.
        tls: MailTls,
        /// The sender.
        from: String,
        /// The receivers.
        to: Vec<String>,
        /// The account, if the server wants one.
        user: Option<String>,
        /// The file with its password.
        password_file: Option<PathBuf>,
    },
    /// The journal of systemd.
    Journald { socket: PathBuf },
}

impl SinkKind {
    #[must_use]
    pub const fn word(&self) -> SinkWord {
        match self {
            Self::Exec { .. } => SinkWord::Exec,
            Self::Webhook { .. } => SinkWord::Webhook,
            Self::Mail { .. } => SinkWord::Mail,
            Self::Journald { .. } => SinkWord::Journald,
        }
    }
}

/// A table `[sinks.NAME]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesiredSink {
    pub name: String,
    /// The line of its table.
    pub line: u32,
    /// Alarms below this level are not sent.
    pub level: Severity,
    /// Where they are sent.
    pub kind: SinkKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScheduleTask {
    /// Members are read and compared.
    Check,
    /// Each drive is read by itself.
    Patrol {
        /// Bytes a second.
        rate: Bytes,
        /// SSDs are read too.
        ssd: bool,
    },
}

impl ScheduleTask {
    #[must_use]
    pub const fn word(self) -> ScheduleWord {
        match self {
            Self::Check => ScheduleWord::Check,
            Self::Patrol { .. } => ScheduleWord::Patrol,
        }
    }
}

/// A table `[schedules.NAME]`: arrays are checked again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesiredSchedule {
    pub name: String,
    pub task: ScheduleTask,
    /// The line of its table.
    pub line: u32,
    /// Names of arrays; empty: all.
    pub arrays: Vec<String>,
    /// Seconds from one check to the next.
    pub every_seconds: u64,
    /// When checks run: the first and the last minute of the day, UTC; nothing: at any time. It may go over midnight.
    pub window: Option<(u32, u32)>,
}

impl DesiredSchedule {
    /// Is this time, in seconds since 1970, in the window?
    #[must_use]
    pub fn is_open(&self, now: u64) -> bool {
        let minute = u32::try_from(now % 86_400 / 60).unwrap_or(0);
        match self.window {
            None => true,
            Some((from, to)) if from <= to => (from..to).contains(&minute),
            Some((from, to)) => minute >= from || minute < to,
        }
    }
}
