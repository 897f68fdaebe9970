//! Background work: rebuild, resync, check and repair, and the repair of single sectors.

mod pump;
mod repair;
mod scrub;
mod start;

use openraid_units::{Instant, Sectors, Slot};

use crate::admin::TaskKind;
use crate::limits::WINDOW_ROWS_MAX;
use crate::scrub::AbortReason;

/// A task walks through a set in units, several at a time, within a window; all units before the window are done.
///
/// ```text
///   done                 window                   to do
///  |--------------------|x..x.x..|---------------|
///  0                 position   next            end
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Tells the operations of this task from those of an earlier one.
    pub(super) id: u32,
    pub(super) kind: TaskKind,
    /// The slot that is filled.
    pub(super) slot: Option<Slot>,
    /// Sectors of a unit, and of the whole (of a member; of the set for a resync or scrub of RAID 10).
    pub(super) unit: u64,
    pub(super) total: u64,
    pub(super) position: u64,
    pub(super) next: u64,
    pub(super) end: u64,
    /// Units from `position` on that are done.
    done: u64,
    pub(super) in_flight: u32,
    /// Only parts that the bitmap marks.
    pub(super) only_marked: bool,
    /// Not before this generation of superblocks is durable.
    pub(super) generation: u64,
    pub(super) since: Instant,
    pub(super) done_at_start: Sectors,
    pub(super) next_unit_at: Instant,
    pub(super) next_checkpoint: Instant,
    /// The position when the flush for the next checkpoint was issued.
    pub(super) flushed: u64,
    /// Everything is done; the members are being flushed before that is recorded.
    pub(super) finishing: bool,
    /// A replacement is complete, which this generation of superblocks says; 0 is none.
    pub(super) complete: u64,
    /// It ended before its end.
    pub(super) aborted: Option<AbortReason>,
    /// For a resync: which units it compares before it writes.
    pub(super) sync: Comparing,
}

/// Units in a row that differed, after which a resync writes without comparing.
const DIFFERING_MAX: u8 = 8;
/// A resync that writes without comparing compares every unit whose number is a multiple of this, to find where members agree
/// again.
const COMPARED_EVERY: u64 = 16;

/// Which units a resync compares before it writes. If the members agree, nothing is written: sparse members stay
/// sparse, and flash does not wear. Where all units differ a comparison only costs (decision 0051).
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Comparing {
    /// Compared units that differed since one agreed.
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
    /// Does a rebuild break it off? Only for that is a slot left empty although a member could fill it.
    pub(crate) fn yields(&self) -> bool {
        matches!(self.kind, TaskKind::Resync | TaskKind::Check | TaskKind::Repair) && !self.finishing
    }
    /// Are these sectors done?
    pub(crate) fn is_done(&self, from: u64, to: u64) -> bool {
        if to <= self.position * self.unit {
            return true;
        }
        (from / self.unit..to.div_ceil(self.unit)).all(|unit| self.is_unit_done(unit))
    }
    /// Is any of these sectors done?
    pub(crate) fn is_done_in_part(&self, from: u64, to: u64) -> bool {
        (from / self.unit..to.div_ceil(self.unit)).any(|unit| self.is_unit_done(unit))
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
