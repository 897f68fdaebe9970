//! Commands of an administrator to the controller, and the controller's status.
//!
//! Commands are queued like host requests and carried out inside [`crate::Controller::advance`], in order.
//! They may take memory (an array's state is allocated when it is started); host I/O never does.

use alloc::string::String;
use alloc::vec::Vec;
use openraid_format::{DeviceFlags, ReshapeDirection, ShapeFields, Superblock, Uuid};
use openraid_units::{ArrayId, BlockSize, DriveId, DriveLba, Instant, Sectors, SetId, SetLba, Slot, Token};

pub use crate::cache::figures::CacheStatus;
pub use crate::cache::set_figures::CacheFigures;
pub use crate::cache::CacheCounters;
use crate::check_results::{NotComparable, ScrubMode, ScrubStatus};
pub use crate::controller::AdminCommand;
pub use crate::journal::found_journal::{FoundEntry, FoundJournal, KeptEntry};
pub use crate::journal::join::JournalJoin;
pub use crate::journal::older_log::OlderLog;
pub use crate::journal::open_and_detach::{JournalArrayStatus, JournalStatus};
pub use crate::journal::session::Unprotected;
pub use crate::journal::set_journal::Session;
pub use crate::journal::{JournalCounters, JournalLoss, JournalState};
use crate::reason::{FailReason, Reason};
use crate::settings::AdaptiveStatus;

pub use crate::settings::{Policy, Profile};

/// How the engine chooses the method for a write of part of a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PartialWritePolicy {
    /// The method with the fewest member I/Os.
    #[default]
    Fewest,
    /// Always read-modify-write if it is possible: exactly two reads and two writes for one chunk on RAID 5, also with
    /// three members.
    ReadModifyWrite,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteCache {
    /// When it is on the members.
    Through,
    /// When it is in the controller's journal, which keeps it over a power cut or the end of the server. While that is
    /// impossible, writes go through.
    Journal,
    /// When it is in the controller's cache, which loses it in a power cut or at the end of the server: FLUSH and FUA
    /// make it durable, as with a drive's own cache.
    Volatile,
}

/// The data that is read before a host requests it. This needs a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReadAhead {
    /// No data.
    None,
    /// The data after every read.
    Always,
    /// The data after sequential reads.
    #[default]
    Adaptive,
}

/// The rule for the copy of a mirror that is read. Members that do not rotate have no heads: rules about heads choose
/// them by pending commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MirrorRead {
    /// The first available copy.
    Primary,
    /// Each copy in turn.
    RoundRobin,
    /// A sequential stream stays on its copy; otherwise the copy whose drive has the fewest commands.
    #[default]
    LeastPending,
    /// The copy whose head is nearest.
    NearestHead,
    /// The copy whose head is nearest, among the copies whose drives have the fewest commands. A sequential stream
    /// stays on one copy; a long one is read in sections from all copies in turn: see [`Policy::split_above`]. Far and
    /// offset copies are read without regard to streams.
    TwinStor,
}

/// A device that joins a running array; the controller writes its superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewMember {
    /// The drive, attached before.
    pub drive: DriveId,
    /// The start of its data area, its length, its identity: a superblock of the array's `set_uuid`, made by
    /// [`crate::array::new_array::superblock_for_new_member`] or read from the drive.
    pub superblock: Superblock,
    /// Its superblock was read from the drive (a re-add), not made.
    pub returning: bool,
}

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

/// The answer to a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdminReply {
    /// The driver's own name for the command.
    pub token: Token,
    /// Its outcome.
    pub result: Result<AdminOutcome, AdminError>,
}

/// The state of a member, as the user sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberState {
    /// The slot has no member.
    Missing,
    /// Waits until it is needed.
    Spare,
    /// Is being filled; everything below `to` (sectors of its data area) is good.
    Rebuilding {
        /// Good below this.
        to: Sectors,
    },
    /// A full member.
    InSync,
    /// Failed; its failure is not yet recorded on the others.
    Failing(FailReason),
    /// A member whose failure is recorded.
    Faulty(FailReason),
}

/// One line of an array's member table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberStatus {
    /// The slot, for members that have one.
    pub slot: Option<Slot>,
    /// The slot that it had, of a member that failed or was replaced since the start.
    pub left: Option<Slot>,
    /// The drive, unless missing.
    pub drive: Option<DriveId>,
    /// The identity in its superblock, if it has one.
    pub device: Option<Uuid>,
    /// State.
    pub state: MemberState,
    /// It is a replacement that is being filled next to a working member.
    pub replacement: bool,
    /// The flags in its superblock.
    pub flags: DeviceFlags,
    /// Its storage is full, so that writes that need room there are refused.
    pub is_full: bool,
    /// Media errors so far: places that could not be read, repaired or not.
    pub media_errors: u32,
    /// Known bad ranges.
    pub bad_blocks: u32,
    /// Commands outstanding.
    pub outstanding: u32,
    /// Sectors read from it.
    pub sectors_read: u64,
    /// Sectors written to it.
    pub sectors_written: u64,
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Flush commands.
    pub flushes: u64,
}

/// The kind of a background task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskKind {
    /// A slot is rebuilt.
    Rebuild,
    /// A working member is copied to its replacement.
    Replace,
    /// Parity or copies are made consistent.
    Resync,
    /// Everything is read and compared.
    Check,
    /// Everything is read, compared and corrected.
    Repair,
    /// The data moves to the places of another shape.
    Reshape,
}

impl TaskKind {
    /// All kinds of tasks.
    pub const ALL: [Self; 6] = [Self::Rebuild, Self::Replace, Self::Resync, Self::Check, Self::Repair, Self::Reshape];

    /// The word for users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rebuild => "rebuild",
            Self::Replace => "replacement",
            Self::Resync => "resync",
            Self::Check => "check",
            Self::Repair => "repair",
            Self::Reshape => "reshape",
        }
    }
}

/// What a change of shape does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReshapeStage {
    /// Dirty data and the journal's session end first.
    Draining,
    /// The superblocks are being told of the change.
    Beginning,
    /// Data moves.
    Moving,
    /// The superblocks are being told of the end.
    Ending,
}

/// A change of shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReshapeStatus {
    /// The shape before.
    pub from: ShapeFields,
    /// The shape after.
    pub to: ShapeFields,
    /// Sectors of the set before and after.
    pub capacities: [Sectors; 2],
    /// The direction.
    pub direction: ReshapeDirection,
    /// The stage of the change.
    pub stage: ReshapeStage,
    /// Sectors of the set that have moved.
    pub moved: Sectors,
    /// Sectors of the set that the superblocks call moved.
    pub recorded: Sectors,
    /// Sectors of the set that move.
    pub total: Sectors,
    /// The boundary that the superblocks name.
    pub position: SetLba,
}

/// A background task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskStatus {
    /// Kind of the task.
    pub kind: TaskKind,
    /// Sectors of each member done.
    pub done: Sectors,
    /// Sectors of each member in all.
    pub total: Sectors,
    /// Is it held?
    pub paused: bool,
    /// When it began.
    pub since: Instant,
    /// Done when it began (a task that was resumed).
    pub done_at_start: Sectors,
    /// Sectors that did not match, of a check or repair.
    pub mismatches: u64,
    /// What a check or repair may change.
    pub scrub: Option<ScrubMode>,
}

/// The health of an array in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// All members in sync.
    Optimal,
    /// Redundancy is reduced.
    Degraded,
    /// Its data cannot be read.
    Failed,
}

/// The status of a write-intent bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BitmapStatus {
    /// Regions that may differ.
    pub marked: u64,
    /// Regions in all.
    pub regions: u64,
    /// Pages in which md would keep counters for them, those with a marked region and all: what /proc/mdstat shows.
    pub pages: (u64, u64),
    /// What a region covers.
    pub chunk: Sectors,
}

/// The status of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayStatus {
    /// Number of the array.
    pub array: ArrayId,
    /// Size of the array for hosts.
    pub capacity: Sectors,
    /// Up to here the array has all the redundancy of its level: the whole of an optimal array, nothing of a degraded
    /// one, and the part that a rebuild has restored so far if that is contiguous.
    pub whole_to: Sectors,
    /// In one word.
    pub health: Health,
    /// Members by slot, then spares and the faulty. None for a nested array: its spans have them.
    pub members: Vec<MemberStatus>,
    /// The spans of a nested array.
    pub spans: Vec<ArrayId>,
    /// Its sets: one, or one for each span.
    pub sets: Vec<SetId>,
    /// Background task.
    pub task: Option<TaskStatus>,
    /// The change of its shape.
    pub reshape: Option<ReshapeStatus>,
    /// Is the active mark on disk?
    pub active: bool,
    /// md's event count.
    pub events: u64,
    /// Parity or copies are consistent below this; `Sectors::MAX` when everywhere.
    pub consistent_to: Sectors,
    /// The bitmap, if it has one.
    pub bitmap: Option<BitmapStatus>,
    /// Decisions counted.
    pub reasons: Vec<(Reason, u64)>,
    /// Host requests: reads, writes, flushes, others.
    pub requests: [u64; 4],
    /// Host bytes read and written.
    pub bytes: [u64; 2],
    /// Figures of the cache for it.
    pub cached: CacheFigures,
    /// Operations in work.
    pub ops: u32,
    /// The superblock as it would be written now (of slot 0; without per-member fields).
    pub superblock: Option<Superblock>,
    /// Its logical block, which hosts see as the smallest unit.
    pub block: BlockSize,
    /// Settings of the array.
    pub policy: Policy,
    /// State of its journal session; for a nested array, see its spans.
    pub session: Session,
    /// May a journal hold data for it? If not, a journal's entries about it do not count.
    pub in_journal: bool,
    /// State and history of the adaptive policy.
    pub adaptive: AdaptiveStatus,
    /// Is it being stopped?
    pub stopping: bool,
    /// The outcome of the last check or repair; for a nested array, see its spans.
    pub last_scrub: Option<ScrubStatus>,
}
