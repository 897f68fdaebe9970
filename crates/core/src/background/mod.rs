//! Background work: rebuild, resync, check and repair, and the rewrites of single sectors.

pub(crate) mod bitmap_clear;
pub(crate) mod check_task;
pub(crate) mod pace;
pub(crate) mod pump_reshape;
pub(crate) mod pump_set;
pub(crate) mod reshape_task;
pub(crate) mod rewrite_sectors;
pub(crate) mod set_tasks;
mod spare_choice;
pub(crate) mod task_end;
pub(crate) mod task_rows;
pub(crate) mod task_start;

use self::task_rows::Course;
use crate::geometry::shape::Side;
use openraid_units::{Instant, Sectors, Slot};

use crate::array::set::Set;
use crate::check_results::AbortReason;
use crate::limits::WINDOW_ROWS_MAX;
use crate::set_status::{TaskKind, TaskStatus};

/// A task processes a set in units, several at a time, within a window. All units before the window are done.
///
/// ```text
///   done                 window                   to do
///  |--------------------|x..x.x..|---------------|
///  0                 position   next            end
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Distinguishes the operations of this task from those of an earlier one.
    pub(in crate::background) id: u32,
    pub(in crate::background) kind: TaskKind,
    /// The slot that is filled.
    pub(in crate::background) slot: Option<Slot>,
    /// Sectors of a unit, and of the whole (of a member; of the set for a resync or scrub of RAID 10).
    pub(in crate::background) unit: u64,
    pub(in crate::background) total: u64,
    /// The places of its positions.
    pub(in crate::background) course: Course,
    pub(in crate::background) position: u64,
    pub(in crate::background) next: u64,
    pub(in crate::background) end: u64,
    /// Bit set of the finished units from `position` on.
    done: u64,
    pub(in crate::background) in_flight: u32,
    /// Are only regions processed that the bitmap marks?
    pub(in crate::background) only_marked: bool,
    /// It begins when this generation of superblocks is durable.
    pub(in crate::background) generation: u64,
    pub(in crate::background) since: Instant,
    pub(in crate::background) done_at_start: Sectors,
    pub(in crate::background) next_unit_at: Instant,
    pub(in crate::background) next_checkpoint: Instant,
    /// The position when the flush for the next checkpoint was issued.
    pub(in crate::background) flushed: u64,
    /// All units are done, and the members are being flushed before this is recorded.
    pub(in crate::background) finishing: bool,
    /// The generation of superblocks that records a complete replacement; 0 is none.
    pub(in crate::background) complete: u64,
    /// The reason why it was aborted.
    pub(in crate::background) aborted: Option<AbortReason>,
    /// For a resync: which units it compares before it writes.
    pub(in crate::background) sync: Comparing,
}

/// Number of differing units in a row after which a resync writes without comparing.
const DIFFERING_MAX: u8 = 8;
/// A resync that writes without comparing still compares every unit whose number is a multiple of this, to find where
/// members agree again.
const COMPARED_EVERY: u64 = 16;

/// Decides which units a resync compares before it writes. If the members agree, nothing is written: sparse members
/// stay sparse, and flash does not wear. If all units differ, comparing only costs (`docs/decisions/consistency.md`).
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Comparing {
    /// Number of compared units that differed since one agreed.
    differing: u8,
}

impl Comparing {
    /// Is this unit compared?
    pub(crate) fn is_due(self, unit: u64) -> bool {
        self.differing < DIFFERING_MAX || unit.is_multiple_of(COMPARED_EVERY)
    }
    /// Rows of a unit were compared.
    pub(crate) fn note(&mut self, differs: bool) {
        self.differing = if differs { self.differing.saturating_add(1) } else { 0 };
    }
}

impl Task {
    /// Distinguishes the operations of this task from those of an earlier one.
    pub(crate) const fn id(&self) -> u32 {
        self.id
    }

    /// Kind of the task.
    pub(crate) const fn kind(&self) -> TaskKind {
        self.kind
    }

    /// The slot that it fills.
    pub(crate) const fn slot(&self) -> Option<Slot> {
        self.slot
    }

    /// Length of the whole in sectors.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// When it began.
    pub(crate) const fn since(&self) -> Instant {
        self.since
    }

    /// Sectors that were done when it began.
    pub(crate) const fn done_at_start(&self) -> Sectors {
        self.done_at_start
    }

    /// Is this unit of a resync compared before it is written?
    pub(crate) fn is_compared(&self, unit: u64) -> bool {
        self.sync.is_due(unit)
    }

    /// It was compared.
    pub(crate) fn note_compared(&mut self, differs: bool) {
        self.sync.note(differs);
    }

    /// The position to be recorded after a flush, if it has moved since the last one.
    pub(crate) fn begin_checkpoint(&mut self) -> bool {
        let has_moved = self.position > self.flushed;
        if has_moved {
            self.flushed = self.position;
        }
        has_moved
    }

    /// The slot that a rebuild fills, if the finished part can be read.
    pub(crate) fn filling(&self) -> Option<Slot> {
        (self.kind == TaskKind::Rebuild).then_some(self.slot).flatten()
    }
    /// Does it compare?
    pub(crate) fn is_scrub(&self) -> bool {
        matches!(self.kind, TaskKind::Check | TaskKind::Repair)
    }
    /// Does it make parity or copies consistent?
    pub(crate) fn is_resync(&self) -> bool {
        self.kind == TaskKind::Resync
    }
    /// Does a rebuild abort it? Only for such a task may a slot stay empty although a member could fill it.
    pub(crate) fn yields(&self) -> bool {
        matches!(self.kind, TaskKind::Resync | TaskKind::Check | TaskKind::Repair) && !self.finishing
    }
    /// Are these sectors of this side done?
    pub(crate) fn is_done(&self, side: Side, from: u64, to: u64) -> bool {
        let Some((from, to)) = self.course.positions(side, from, to) else { return false };
        if to <= self.position * self.unit {
            return true;
        }
        (from / self.unit..to.div_ceil(self.unit)).all(|unit| self.is_unit_done(unit))
    }
    /// Is any of these sectors of this side done?
    pub(crate) fn is_done_in_part(&self, side: Side, from: u64, to: u64) -> bool {
        let Some((from, to)) = self.course.positions(side, from, to) else { return false };
        (from / self.unit..to.div_ceil(self.unit)).any(|unit| self.is_unit_done(unit))
    }
    /// The end of the unit that has this sector.
    pub(crate) fn unit_end(&self, sector: u64) -> u64 {
        (sector / self.unit + 1) * self.unit
    }
    fn is_unit_done(&self, unit: u64) -> bool {
        unit < self.position
            || (unit - self.position < u64::from(WINDOW_ROWS_MAX) && self.done >> (unit - self.position) & 1 == 1)
    }
    /// A unit is done.
    pub(crate) fn unit_done(&mut self, unit: u64) {
        self.done |= 1 << (unit - self.position);
        let run = self.done.trailing_ones();
        self.position += u64::from(run);
        self.done = self.done.checked_shr(run).unwrap_or(0);
    }
    /// Sectors done.
    pub(crate) fn done_sectors(&self) -> Sectors {
        Sectors((self.position * self.unit).min(self.total))
    }
}

/// The status of a task of a set, for readers.
pub(crate) fn task_status(set: &Set, task: &Task) -> TaskStatus {
    TaskStatus {
        kind: task.kind(),
        done: task.done_sectors(),
        total: Sectors(task.total()),
        paused: set.tasks.is_paused(),
        since: task.since(),
        done_at_start: task.done_at_start(),
        mismatches: if task.is_scrub() { set.tasks.mismatches() } else { 0 },
        scrub: task.is_scrub().then_some(set.tasks.scrub_mode()),
    }
}
