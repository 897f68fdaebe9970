//! Errors of a journal, in words for the administrator.

use super::ring::RingSector;
use super::superblock::SuperblockCopy;
use super::{JOURNAL_ARRAYS_MAX, JOURNAL_BLOCK_BYTES, JOURNAL_BYTES_MIN, JOURNAL_VERSION};
use crate::identity::Uuid;
use core::fmt;
use openraid_units::{BlockSize, DriveLba, Sectors};

/// The reason why the bytes at a position of the ring are not the expected next entry. This is expected at the end of
/// the log; before the end it is damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryFault {
    /// The scan needs nothing more: the journal was closed when it was empty, or the whole ring was read.
    EndOfLog,
    /// There are fewer bytes than a header has.
    Truncated(usize),
    /// The bytes are not a header.
    NotAnEntry,
    /// The header's checksum does not match.
    HeaderChecksum {
        /// The value in the header.
        stored: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// The payload's checksum does not match.
    PayloadChecksum {
        /// The value in the header.
        stored: u32,
        /// The checksum of the payload.
        computed: u32,
    },
    /// The device could not read the sectors.
    Unreadable,
    /// The entry belongs to another journal.
    OtherJournal(Uuid),
    /// The entry was written for another position.
    OtherPosition(RingSector),
    /// The entry has another number; usually it is from an earlier lap of the ring.
    OtherSequence(u64),
    /// The entry is older than the last opening of the journal: a crash left it in the ring.
    OlderEpoch(u64),
    /// A newer program wrote the entry.
    NewerVersion(u32),
    /// The value of a field is impossible although the checksum is correct.
    BadField {
        /// Name of the field in `docs/on-disk.md`.
        field: &'static str,
        /// Value of the field.
        value: u64,
    },
    /// The value of a field of a record is impossible although the checksum is correct.
    BadRecord {
        /// Index of the record.
        index: usize,
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
    },
    /// Bytes that are zero in this version are not zero.
    UnknownContent,
}

impl EntryFault {
    /// Was the entry written completely, but cannot be used? Then its position in the log proves nothing.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::NewerVersion(_) | Self::BadField { .. } | Self::BadRecord { .. } | Self::UnknownContent)
    }
}

impl fmt::Display for EntryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::EndOfLog => f.write_str("the log ends here"),
            Self::Truncated(have) => write!(f, "only {have} of {JOURNAL_BLOCK_BYTES} bytes of its header are there"),
            Self::NotAnEntry => f.write_str("there is no entry"),
            Self::HeaderChecksum { stored, computed } => {
                write!(f, "its header is damaged (checksum {stored:08x}, its bytes give {computed:08x})")
            }
            Self::PayloadChecksum { stored, computed } => {
                write!(f, "its payload is damaged (checksum {stored:08x}, its bytes give {computed:08x})")
            }
            Self::Unreadable => f.write_str("the device cannot read it"),
            Self::OtherJournal(uuid) => write!(f, "an entry of another journal ({uuid}) is there"),
            Self::OtherPosition(position) => {
                write!(f, "an entry that belongs to sector {} of the ring is there", position.0)
            }
            Self::OtherSequence(sequence) => write!(f, "entry {sequence} is there"),
            Self::OlderEpoch(epoch) => write!(f, "an entry of epoch {epoch}, from before a crash, is there"),
            Self::NewerVersion(version) => write!(
                f,
                "it has version {version}, this program reads version {JOURNAL_VERSION}; use the newer openraid that \
                 wrote it"
            ),
            Self::BadField { field, value } => {
                write!(f, "{field} is {value}, which cannot be; a newer openraid may have written it")
            }
            Self::BadRecord { index, field, value } => {
                write!(
                    f,
                    "in its record {index}, {field} is {value}, which cannot be; a newer openraid may have \
                           written it"
                )
            }
            Self::UnknownContent => {
                f.write_str("it has content that is not known here; a newer openraid may have written it")
            }
        }
    }
}

/// The reason why a journal cannot be used. The journal is unchanged in every case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JournalError {
    /// There are fewer bytes than a superblock has.
    Truncated(usize),
    /// The device has no journal superblock.
    NotAJournal,
    /// The device does not read the places of its superblocks. Nothing is known about its content.
    Unreadable,
    /// A newer program wrote the superblock.
    NewerVersion(u32),
    /// The superblock's checksum does not match.
    Checksum {
        /// The value in the superblock.
        stored: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// The value of a field is impossible although the checksum is correct.
    BadField {
        /// Name of the field in `docs/on-disk.md`.
        field: &'static str,
        /// Value of the field.
        value: u64,
    },
    /// An entry in the superblock's table of arrays is impossible.
    BadArray {
        /// Index of the entry.
        index: usize,
        /// Name of the field.
        field: &'static str,
    },
    /// Bytes that are zero in this version are not zero.
    UnknownContent,
    /// The device is too small for a journal.
    TooSmall(Sectors),
    /// The device is larger than the maximum address.
    TooLarge(Sectors),
    /// The device is smaller than when the journal was created.
    DeviceTruncated {
        /// Sectors when the journal was created.
        made: Sectors,
        /// Sectors now.
        now: Sectors,
    },
    /// The device's blocks are larger than the journal's entries allow.
    LargerBlocks {
        /// Block size for which the journal was created.
        made: BlockSize,
        /// Block size now.
        now: BlockSize,
    },
    /// The journal belongs to another controller.
    OtherController {
        /// The controller that the journal belongs to.
        owner: Uuid,
        /// The controller that opens the journal.
        controller: Uuid,
    },
    /// The two superblocks of one device belong to different journals.
    TwoJournals {
        /// The journal of the first superblock.
        first: Uuid,
        /// The journal of the last one.
        last: Uuid,
    },
    /// The two superblocks of one device have the same generation, but not the same content.
    CopiesDiffer(u64),
    /// The two devices are not mirrors of each other.
    NotMirrors {
        /// The journal of the first device.
        one: Uuid,
        /// The journal of the other device.
        other: Uuid,
    },
    /// The copy of the journal to this device was not completed.
    Unfinished,
    /// Both devices say that they are the same copy of the journal.
    SameMirror(u8),
    /// Each device has carried the journal alone, so each has entries that the other lacks.
    BothAlone,
    /// An acknowledged entry cannot be read, or this program does not know the version of an entry.
    Damaged {
        /// Number of the missing entry.
        sequence: u64,
        /// Number of the newest entry that is known to have been acknowledged.
        promised: u64,
        /// Place on the device where the entry should begin.
        at: DriveLba,
        /// Number of damaged sectors, as far as known: at least the header.
        sectors: Sectors,
        /// The fault of the entry.
        fault: EntryFault,
    },
    /// The table of arrays is full.
    TableFull,
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated(have) => write!(
                f,
                "only {have} of {JOURNAL_BLOCK_BYTES} bytes of the journal's superblock could be read; check the device"
            ),
            Self::NotAJournal => f.write_str(
                "this is not an openraid journal; give the device that carries it, or make one with: openraid journal \
                 create",
            ),
            Self::Unreadable => f.write_str(
                "its superblocks cannot be read: the device answers with errors, and its content may be whole. Check the \
                 device and its cable (dmesg), and make no new journal on it",
            ),
            Self::NewerVersion(version) => write!(
                f,
                "the journal has version {version}, this program reads version {JOURNAL_VERSION}; use the newer \
                 openraid that wrote it"
            ),
            Self::Checksum { stored, computed } => write!(
                f,
                "the journal's superblock is damaged (checksum {stored:08x}, its bytes give {computed:08x}); if the \
                 journal is mirrored, attach the other device"
            ),
            Self::BadField { field, value } => {
                write!(f, "the journal's superblock cannot be used: {field} is {value}, which cannot be{OTHER}")
            }
            Self::BadArray { index, field } => {
                write!(f, "the journal's superblock cannot be used: array {index} has a {field} that cannot be{OTHER}")
            }
            Self::UnknownContent => write!(f, "the journal's superblock has content that is not known here{OTHER}"),
            Self::TooSmall(_) | Self::TooLarge(_) | Self::DeviceTruncated { .. } | Self::LargerBlocks { .. } => {
                self.fmt_size(f)
            }
            Self::OtherController { owner, controller } => write!(
                f,
                "this journal belongs to another controller ({owner}, this one is {controller}) and may hold acknowledged \
                 data; serve with it there, or, if that controller does not use it any more, adopt it with: openraid \
                 journal adopt DEVICE (both devices of a mirrored one)"
            ),
            Self::TwoJournals { first, last } => write!(
                f,
                "the device carries the superblocks of two journals ({first} at its start, {last} at its end): making \
                 one of them was interrupted; make it again if nothing on it is needed"
            ),
            Self::CopiesDiffer(generation) => write!(
                f,
                "the journal's two superblocks contradict each other in generation {generation}: another program wrote \
                 to the device; find out which before you use it"
            ),
            Self::Unfinished => f.write_str(
                "this device was being brought up to date when that was interrupted, and nothing on it counts; name the \
                 other device of the journal, alone or beside this one",
            ),
            Self::NotMirrors { .. }
            | Self::SameMirror(_)
            | Self::BothAlone
            | Self::Damaged { .. }
            | Self::TableFull => self.fmt_whole(f),
        }
    }
}
impl core::error::Error for JournalError {}

impl JournalError {
    /// Prints a fault of the size of the device, or of its blocks.
    fn fmt_size(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooSmall(have) => write!(
                f,
                "{} bytes are too small for a journal; give a device of {} MiB at least",
                u128::from(have.get()) * 512,
                JOURNAL_BYTES_MIN.get() >> 20
            ),
            Self::TooLarge(have) => {
                write!(f, "a device of {have} is too large for a journal; give a partition of it")
            }
            Self::DeviceTruncated { made, now } => write!(
                f,
                "the journal's device has shrunk: it had {made} and has {now}; restore its size first, because \
                 acknowledged data may be after its end"
            ),
            Self::LargerBlocks { made, now } => write!(
                f,
                "the journal was made for blocks of {} bytes, the device now has {}; attach it as it was before",
                made.bytes().get(),
                now.bytes().get()
            ),
            _ => unreachable!("other faults are told elsewhere"),
        }
    }

    /// Prints a fault of the journal as a whole.
    fn fmt_whole(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotMirrors { one, other } => write!(
                f,
                "these devices carry different journals ({one} and {other}); attach the two of the same journal, or \
                 one alone"
            ),
            Self::SameMirror(mirror) => write!(
                f,
                "both devices say they are copy {mirror} of the journal: one is a duplicate of the other; detach the \
                 one that was not in use last"
            ),
            Self::BothAlone => f.write_str(
                "each of the two devices says that it carries the journal alone: one was used without the other, and \
                 then the other way round, or one is a duplicate; name only the one that was in use last, and attach \
                 the other one to it again with `openraid journal attach DEVICE --yes --overwrite`",
            ),
            Self::Damaged { sequence, promised, at, sectors, fault } => {
                let first = u128::from(at.get()) * 512;
                let end = first + u128::from(sectors.get()) * 512;
                write!(
                    f,
                    "the journal is damaged: entry {sequence} should be at bytes {first} to {end} of the \
                           device, but {fault}. "
                )?;
                if promised >= sequence {
                    write!(f, "Entries up to {promised} hold acknowledged data. ")?;
                }
                f.write_str(
                    "If the journal is mirrored, attach the other device. Otherwise see: openraid journal show DEVICE, \
                     and discard the lost entries of each array that is named there with: openraid journal discard \
                     ARRAY --on DEVICE --lost",
                )
            }
            Self::TableFull => write!(
                f,
                "{JOURNAL_ARRAYS_MAX} arrays use this journal already; detach one, or give this array another journal"
            ),
            _ => unreachable!("the superblock's own faults are told elsewhere"),
        }
    }
}

const OTHER: &str = "; a newer openraid may have written it, or the device is failing; if the journal is mirrored, \
                     attach the other device";

impl fmt::Display for SuperblockCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "at the start of the device",
            Self::Last => "at the end of the device",
        })
    }
}
