//! The configuration file `openraid.toml`: what an administrator wants a server to be.
//!
//! ```text
//!  text --parse--> Desired             every key was understood and can be
//!             \--> Vec<Problem>        or: each mistake with its line, and what to write instead
//! ```
//!
//! ```toml
//! [server]
//! nbd = ["127.0.0.1:10809"]
//! cache = "1G"
//!
//! [arrays.data]                        # by name, or by UUID: [arrays."0d5c2a38:..."]
//! access = "read-write"
//! exports = ["data", "vm1"]
//! [arrays.data.settings]               # as `openraid set` names them
//! rebuild.rate = "50M"
//!
//! [[spares]]
//! member = "/dev/disk/by-id/ata-X"
//! for = "all"
//!
//! [sinks.mail]                         # where alarms are sent
//! kind = "mail"
//! ```
//!
//! The crate is pure: it opens no file, resolves no name and looks at no drive. The words that the command line knows as well
//! (settings, sizes, names) come from the caller as [`Words`], so that both accept the same.

#![forbid(unsafe_code)]

mod care;
mod cross;
mod desired;
mod nearest;
mod problem;
mod read;
mod schedules;
mod sinks;
mod table;

pub use desired::{
    Access, AfterPowerCut, ArrayId, DesiredArray, DesiredCare, DesiredManagement, DesiredSchedule, DesiredServer,
    DesiredSetting, DesiredSink, DesiredSpare, DesiredState, FileValue, MailTls, ScheduleTask, SinkKind, SpareFor,
    WebhookForm,
};
pub use nearest::nearest;
pub use problem::{ConfigProblem, Problems};
pub use read::{
    ARRAYS_MAX, DRIVE_DEPTH_MAX, EXPORTS_MAX, FILE_BYTES_MAX, JOURNAL_DEVICES_MAX, LISTENS_MAX, MEMBERS_MAX,
    QUEUE_AGE_MAX_SECONDS, SPARES_MAX,
};
pub use schedules::SCHEDULES_MAX;
pub use sinks::{JOURNALD_SOCKET, RECEIVERS_MAX, SINKS_MAX};

use openraid_units::Bytes;

/// The words that the command line accepts, so that the file accepts the same.
pub trait Words {
    /// The names of all settings of an array.
    fn settings(&self) -> Vec<&'static str>;
    /// Check a setting.
    ///
    /// # Errors
    /// The text says which values are allowed.
    fn check_setting(&self, key: &str, value: &str) -> Result<(), String>;
    /// Read a size.
    ///
    /// # Errors
    /// The text says which values are allowed.
    fn size(&self, text: &str) -> Result<Bytes, String>;
    /// Check the name of an array.
    ///
    /// # Errors
    /// The text says which values are allowed.
    fn check_name(&self, text: &str) -> Result<(), String>;
    /// Check the name of a member: a path or an address.
    ///
    /// # Errors
    /// The text says which values are allowed.
    fn check_member(&self, text: &str) -> Result<(), String>;
}

/// Read a configuration.
///
/// # Errors
/// Everything that is wrong with it, in the order of its lines.
pub fn parse(text: &str, words: &dyn Words) -> Result<DesiredState, Problems> {
    read::parse(text, words)
}
