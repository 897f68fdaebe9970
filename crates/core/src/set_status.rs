//! The parts of an array's status: its health, members, background task, change of shape and bitmap.
//!
//! They are data only. `controller/status.rs` fills them in for [`crate::admin::ArrayStatus`].

use openraid_format::{DeviceFlags, ReshapeDirection, ShapeFields, Uuid};
use openraid_units::{DriveId, Instant, Sectors, SetLba, Slot};

use crate::check_results::ScrubMode;
use crate::reason::FailReason;

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
