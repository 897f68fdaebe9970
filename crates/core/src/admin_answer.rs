//! The answer to a command of an administrator ([`crate::admin::AdminCommand`]): its outcome, or why it was refused.

use alloc::string::String;
use openraid_format::{JournalReached, Uuid};
use openraid_units::{ArrayId, BlockSize, DriveId, DriveLba, Sectors, Slot, Token};

use crate::check_results::NotComparable;
use crate::set_status::TaskKind;

/// The outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdminOutcome {
    /// Done, nothing to say.
    Done,
    /// The array runs under this number.
    Started(ArrayId),
}

/// Why a command was refused. The text says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminError {
    /// No array has this number.
    NoSuchArray(ArrayId),
    /// No drive has this number, or it is no member of the array.
    NoSuchDrive(DriveId),
    /// The drive is used by an array already.
    DriveBusy(DriveId),
    /// No slot has this number, or no working member is in it.
    NoSuchSlot(Slot),
    /// A table of the controller is full: which.
    Full(&'static str),
    /// Failing this member would lose the array.
    WouldLoseArray,
    /// Rows that are not in sync yet need this member: without it they would be reconstructed from data that does not
    /// match.
    NeededByUnsynced,
    /// The member works: fail it first.
    MemberInUse(DriveId),
    /// The drive still has commands that it never answered: it can come back after it answers or is detached.
    CommandsOutstanding(DriveId),
    /// The partial parity log of a spare is being emptied: it can take over a slot in a moment.
    PreparingLog,
    /// The array has no redundancy, so this cannot be done.
    NoRedundancy,
    /// Nothing of the array can be compared.
    NotComparable(NotComparable),
    /// No check or repair is running.
    NoScrub,
    /// This task is running, and an array has one task at a time.
    TaskRuns(TaskKind),
    /// The array is not degraded and the new member is no spare for it.
    NotPossible(&'static str),
    /// The drive is too small.
    TooSmall {
        /// What it has.
        have: Sectors,
        /// What it needs.
        need: Sectors,
    },
    /// The geometry or the set's description is refused; the text says why.
    Refused(String),
    /// The journal is an older copy of the one that the array needs.
    OlderLog(OlderLog),
    /// The drive's smallest write is larger than the array may need.
    LargerBlock {
        /// The drive's logical block.
        drive: BlockSize,
        /// Logical block of the array.
        array: BlockSize,
    },
    /// The data area of a member that comes back is too small.
    TooSmallMember {
        /// Sectors of its data area.
        have: Sectors,
        /// Sectors that the array uses of each member.
        need: Sectors,
        /// Where its data area starts.
        offset: DriveLba,
    },
    /// The array's bitmap does not fit between the drive's superblock and its data.
    BitmapTooLarge {
        /// Sectors there are.
        have: Sectors,
        /// Sectors that the bitmap has.
        need: Sectors,
    },
    /// The array is stopping or has failed.
    Offline,
}

impl core::fmt::Display for AdminError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoSuchArray(a) => write!(f, "no array {a} runs here"),
            Self::NoSuchDrive(d) => write!(f, "drive {d} is not a member of this array"),
            Self::DriveBusy(d) => write!(f, "drive {d} is already used by an array; remove it there first"),
            Self::NoSuchSlot(s) => write!(f, "slot {s} has no working member"),
            Self::Full(what) => write!(f, "no room for another {what}; start the service with larger limits"),
            Self::WouldLoseArray => {
                write!(
                    f,
                    "the array needs this member: without it data would be lost; add or rebuild another one first"
                )
            }
            Self::NeededByUnsynced => f.write_str(
                "the sync has not passed yet: rows that are not in sync cannot be restored without this member; wait for the sync",
            ),
            Self::MemberInUse(d) => write!(f, "drive {d} is a working member; fail it first, then remove it"),
            Self::CommandsOutstanding(d) => {
                write!(f, "drive {d} still has commands that it never answered; wait until it answers, or restart the server")
            }
            Self::PreparingLog => {
                f.write_str("the partial parity log of a spare is being prepared; try again in a moment")
            }
            Self::NoRedundancy => {
                write!(f, "this level has no redundancy, so there is nothing to rebuild or check from")
            }
            Self::NotComparable(why) => f.write_str(why.text()),
            Self::NoScrub => f.write_str("no check or repair is running"),
            Self::TaskRuns(kind) => {
                write!(f, "a {} is running on this array; try again after its end", kind.name())
            }
            Self::NotPossible(why) => f.write_str(why),
            Self::TooSmall { have, need } => {
                write!(f, "the drive has room for {}, the array needs {}", have.readable(), need.readable())
            }
            Self::Refused(why) => f.write_str(why),
            Self::OlderLog(older) => write!(f, "{older}"),
            Self::LargerBlock { drive, array } => write!(
                f,
                "the drive's logical block is {} bytes, the array's {}: it cannot hold the array's writes; use a drive with \
                 logical blocks of at most {} bytes",
                drive.bytes().get(),
                array.bytes().get(),
                array.bytes().get()
            ),
            Self::TooSmallMember { have, need, offset } => write!(
                f,
                "its superblock says a data area of {} from sector {} on, and the array needs {} of each \
                 member; wipe its metadata (openraid wipe-metadata) and add it as a new drive, which may place its data \
                 elsewhere, or use a larger drive",
                have.readable(),
                offset.get(),
                need.readable()
            ),
            Self::BitmapTooLarge { have, need } => write!(
                f,
                "the array's write-intent bitmap needs {}, and this drive has room for {} between its superblock and \
                 its data; use a drive of the other members' size",
                need.readable(),
                have.readable()
            ),
            Self::Offline => write!(f, "the array is stopping or has failed"),
        }
    }
}

/// A journal that ends before something that members know of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OlderLog {
    /// The journal.
    pub journal: Uuid,
    /// How far it has come.
    pub ends: JournalReached,
    /// What members know of.
    pub seen: JournalReached,
}

impl core::fmt::Display for OlderLog {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { journal, ends, seen } = self;
        if seen.entry > ends.entry {
            write!(f, "this log ends at entry {}, and members have seen entry {}", ends.entry, seen.entry)?;
        } else {
            write!(
                f,
                "the superblock of this journal has generation {}, and members have seen generation {}",
                ends.generation, seen.generation
            )?;
        }
        write!(
            f,
            ": it is an older copy of journal {journal}, and what it holds is older than what the members have; start the \
             server with the device that was used last (--journal), or give up the writes that only that device has \
             (--journal-lost)"
        )
    }
}
impl core::error::Error for OlderLog {}

/// The answer to a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdminReply {
    /// The driver's own name for the command.
    pub token: Token,
    /// Its outcome.
    pub result: Result<AdminOutcome, AdminError>,
}
