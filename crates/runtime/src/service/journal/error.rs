//! Why a journal is not used, in words that name the device and the remedy.

use std::fmt;

use openraid_core::admin::OlderLog;
use openraid_format::{JournalError, JournalSuperblock};
use openraid_sys::MemberError;
use openraid_units::{Bytes, Nanos, Sectors};

use super::Witness;
use crate::member::{MemberSpec, OpenError, OpenedMember};
use crate::service::ServiceError;

/// Why a journal cannot be made or used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalStartError {
    /// No device, or more than two.
    Count(usize),
    /// Two devices of different size.
    Sizes(Sectors, Sectors),
    /// It is not a file, a partition or a drive of this machine.
    NotLocal(String),
    /// A device cannot be opened.
    Open(OpenError),
    /// The content of a device cannot be used.
    Device { device: String, error: JournalError },
    /// One of two devices cannot be used, and the other one can.
    OneOfTwo {
        /// The device that cannot.
        device: String,
        why: String,
        /// The device that can.
        whole: String,
        /// It carries the journal alone: nothing on the other one counts.
        is_alone: bool,
    },
    /// Two devices that do not belong together, or are both damaged.
    Mirrors { devices: String, error: JournalError },
    /// One of two devices was named alone, and it may lack writes that the other one acknowledged.
    OtherMissing {
        /// The device that is there.
        device: String,
        /// Which of the two it is.
        mirror: u8,
    },
    /// Two devices are present, but one of them never completed its join.
    NotTheOther {
        /// The device that belongs to the pair.
        device: String,
        /// The device that did not finish joining.
        unfinished: String,
    },
    /// A device cannot be read or written.
    Io {
        device: String,
        /// The reason in words.
        why: String,
    },
    /// The engine does not accept a device that joins.
    JoinRefused { device: String, error: ServiceError },
    /// The journal was used later without these devices.
    LeftBehind(String),
    /// The journal is an older copy of the one that was used last.
    OlderCopy {
        devices: String,
        /// How far it has come, and how far it had come.
        older: OlderLog,
        /// The place that knows that.
        witness: Witness,
    },
    /// A device did not answer for this long.
    Silent(String, Nanos),
    /// A device is still open here, because it has not answered an earlier command.
    Hangs(String),
    /// The program failed while it used a device. That does not concern the device.
    Panicked(String),
    /// The journal that a device should join does not work.
    NotLive,
    /// A device is joining already.
    Joining,
    /// The journal has not recorded yet that it works without a device.
    EpochPending,
    /// It may have carried the journal alone.
    MayHoldMore(String),
    /// The journal holds nothing for this array.
    NothingFor(String),
    /// It was lost while it was being opened.
    LostAtOnce,
    /// The service refuses.
    Service(ServiceError),
}

impl fmt::Display for JournalStartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "a journal is on one device or mirrored over two, not on {count}"),
            Self::Sizes(one, other) => write!(
                f,
                "the two devices of a journal must have the same size, and these have {one} and {other}; use files of one \
                 --size, or partitions of the same size"
            ),
            Self::NotLocal(device) => {
                write!(f, "{device}: a journal is on a file, a partition or a drive of this machine; name one")
            }
            Self::Open(error) => write!(f, "journal: {error}"),
            Self::Device { device, error } => write!(f, "journal {device}: {error}"),
            Self::OneOfTwo { device, why, whole, is_alone } => {
                write!(f, "journal {device}: {why}; the journal's other device, {whole}, is whole: ")?;
                write_remedy(f, device, whole, *is_alone)
            }
            Self::Mirrors { devices, error } => write!(f, "journal on {devices}: {error}"),
            Self::OtherMissing { .. } | Self::NotTheOther { .. } | Self::LeftBehind(_) | Self::OlderCopy { .. } => {
                self.write_newer(f)
            }
            Self::Io { device, why } => write!(f, "journal {device}: {why}"),
            Self::JoinRefused { device, error } => write!(f, "journal {device}: {error}"),
            Self::Silent(device, limit) => {
                write!(f, "journal {device}: no answer for {} seconds; check the drive", limit.as_secs())
            }
            Self::Hangs(device) => write!(
                f,
                "journal {device}: no answer: the drive has not finished earlier commands of this server. Check the drive. It is \
                 used again when it answers; a restarted server does not wait for that"
            ),
            Self::Panicked(device) => write!(
                f,
                "journal {device}: openraid itself failed at this device; the device may be good. Report the panic message on \
                 standard error, and try again"
            ),
            Self::NotLive => f.write_str("the journal does not work; a device can only join a working one"),
            Self::Joining => {
                f.write_str("a device is joining the journal already; `openraid journal show` has its progress")
            }
            Self::EpochPending => f.write_str(
                "the journal has just changed its devices, and the change is not recorded yet; try again in a moment",
            ),
            Self::MayHoldMore(device) => write!(
                f,
                "journal {device}: it was used alone meanwhile, and may hold acknowledged writes that the running journal lacks. \
                 If nothing on it is needed, add --yes --overwrite"
            ),
            Self::NothingFor(array) => {
                write!(f, "the journal holds nothing for array {array}; there is nothing to discard")
            }
            Self::LostAtOnce => write!(f, "the journal cannot be written; check its device"),
            Self::Service(error) => write!(f, "{error}"),
        }
    }
}
impl std::error::Error for JournalStartError {}

impl JournalStartError {
    /// A journal that is newer is or may be elsewhere.
    fn write_newer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherMissing { device, mirror } => write!(
                f,
                "journal {device}: this is copy {mirror} of a journal on two devices, and the other one is missing. It may hold \
                 acknowledged writes that this one lacks. Name both (--journal twice). If the other device is lost for good, \
                 and was not used alone before that, use this one with --journal-alone"
            ),
            Self::NotTheOther { device, unfinished } => write!(
                f,
                "journal {device}: {unfinished} did not finish joining it. The journal was used with another device last, which \
                 may hold acknowledged writes that {device} lacks. Name that device in place of {unfinished}. If it is lost for \
                 good, and was not used alone before that, use {device} with --journal-alone"
            ),
            Self::LeftBehind(devices) => write!(
                f,
                "journal {devices}: the journal was used later on another device, which may hold acknowledged writes that this \
                 one lacks. Name that device. If it is lost for good, use this one with --journal-alone"
            ),
            Self::OlderCopy { devices, older, witness: Witness::Registry } => write!(
                f,
                "journal {devices}: this log ends at entry {}, and the registry knows of entry {}: it is an older copy of the \
                 journal, or the registry is of another time than the journal and the arrays. Name the device that was used last. \
                 If no array is newer than this copy, use it with --journal-alone",
                older.ends.entry, older.seen.entry
            ),
            Self::OlderCopy { devices, older, witness } => write!(f, "journal {devices}, compared with {witness}: {older}"),
            _ => unreachable!("the caller has asked for these variants"),
        }
    }
}

fn write_remedy(f: &mut fmt::Formatter<'_>, device: &str, whole: &str, is_alone: bool) -> fmt::Result {
    if is_alone {
        f.write_str("it carries the journal alone, so name only that one")?;
    } else {
        write!(
            f,
            "if {device} cannot be repaired, and was not used alone before it broke, name only {whole} and add \
             --journal-alone"
        )?;
    }
    f.write_str("; then `openraid journal attach DEVICE` gives it a second one again")
}

impl JournalStartError {
    /// Is the device itself at fault? It is not if another program uses it, or if it belongs to another controller or a
    /// newer program: its content is then valid.
    pub(super) fn is_dead(&self) -> bool {
        use MemberError::{Empty, Failed, Missing, ReadOnly};
        match self {
            Self::Open(OpenError::Local(error)) => {
                matches!(error, Missing { .. } | Empty { .. } | ReadOnly { .. } | Failed { .. })
            }
            Self::Open(OpenError::Probe { .. }) | Self::Silent(..) | Self::Hangs(_) => true,
            Self::Device { error, .. } => matches!(
                error,
                JournalError::Truncated(_)
                    | JournalError::NotAJournal
                    | JournalError::Unreadable
                    | JournalError::Checksum { .. }
                    | JournalError::TooSmall(_)
                    | JournalError::DeviceTruncated { .. }
            ),
            _ => false,
        }
    }

    /// The same error if the journal's other device can be used and has this superblock. An error about the device's
    /// user or owner does not change.
    pub(super) fn beside(self, spec: &MemberSpec, whole: &OpenedMember, superblock: &JournalSuperblock) -> Self {
        let made = superblock.device_sectors;
        let cut = |now: Bytes| {
            let (now, made) = (now.readable(), made.bytes().readable());
            format!("it is {now} long and was {made} long, as {} is: the rest was cut off", whole.spec.text)
        };
        let why = match &self {
            Self::Open(OpenError::Local(MemberError::Empty { size, .. })) => cut(*size),
            Self::Device { error: JournalError::TooSmall(now), .. } if *now < made => cut(now.bytes()),
            Self::Device { error: JournalError::DeviceTruncated { now, .. }, .. } => cut(now.bytes()),
            Self::Open(OpenError::Local(MemberError::Missing { .. })) => "there is no such file or device".into(),
            Self::Device { error, .. }
                if matches!(
                    error,
                    JournalError::NotAJournal | JournalError::Unreadable | JournalError::Checksum { .. }
                ) =>
            {
                error.to_string()
            }
            _ => return self,
        };
        let (device, whole) = (spec.text.clone(), whole.spec.text.clone());
        Self::OneOfTwo { device, why, whole, is_alone: superblock.mirrors == 1 }
    }
}

impl From<ServiceError> for JournalStartError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}
impl From<OpenError> for JournalStartError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}
