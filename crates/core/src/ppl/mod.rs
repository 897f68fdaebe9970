//! The partial parity log: what closes the write hole of RAID 5 without a device of its own.
//!
//! Before a stripe is written, its parity member takes a record: which rows and columns are about to be written, and
//! the parity of the columns that are not. After a crash the parity of those rows is made from that record and from the
//! content of the written columns on the members, old or new: so columns that were not being written can still be
//! recovered.
//!
//! ```text
//!  one log for each slot, one write of it on its way at a time
//!
//!  Free -> Writing -> Covering -> Stale -> Flushing -> Free
//!            |           |          |         +-- the members are flushed, and their failures are recorded
//!            |           |          +-- all that it covers is written; wanted again
//!            |           +-- it is durable: what it covers is being written
//!            +-- header and partial parity are on their way; others that come meanwhile go with the next one
//! ```
//!
//! A log is written over only after a successful flush of the members: until then what it covers may be lost with the
//! power. What failed on the way is durable on the other members before anybody goes on.
//!
//! Must never: let an operation write before its record is durable; skip the log when a set was not stopped cleanly.
//!
//! Format and placement are md's (`openraid_format::PplHeader`). A header of generation 0 says that the set was not yet
//! consistent when it was written: it does not stand in for a resync.

mod area;
mod log;
pub mod plan;
mod start;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use openraid_units::Sectors;

use crate::planted::Planted;
use crate::slab::Queue;
use plan::{PlannedPpl, PplRedo};

/// The most operations whose records one write of a log takes: their commands must fit next to those of others.
pub(crate) const LOG_OPS_MAX: usize = 64;
const _: () = assert!(LOG_OPS_MAX <= openraid_format::PPL_ENTRIES_MAX);

/// How far an operation is with its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Partial {
    /// It needs none.
    No,
    /// It needs one before it writes.
    Due,
    /// It waits until the record is durable.
    Waiting,
    /// The record is durable, and covers what it writes.
    Logged,
}

/// What a log is doing; see the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogState {
    Free,
    Writing,
    Covering,
    Stale,
    Flushing,
}

/// The log of one slot.
#[derive(Debug)]
pub(crate) struct Log {
    pub(super) state: LogState,
    /// Operations that wait for the next write of it.
    pub(super) waiting: Queue,
    /// Operations of the write that is on its way.
    pub(super) flying: Vec<u32>,
    /// Commands of that write that are out.
    pub(super) pending: u32,
    /// Operations that the last write covers and that are not through.
    pub(super) covered: u32,
    /// An empty header is to be written: the set is consistent now, and the one on disk does not say so.
    pub(super) arm: bool,
}

impl Log {
    fn is_wanted(&self) -> bool {
        !self.waiting.is_empty() || self.arm
    }
}

/// How far a set is on its way from assembly to its first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The entries of the logs are being carried out, one after the other.
    Redo,
    /// The members are being flushed.
    Flush,
    /// What stands in the areas is being zeroed.
    Clear,
    /// Empty headers are being written.
    Header,
    /// The set takes requests.
    Ready,
}

/// An entry that is being carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redoing {
    pub(super) entry: PplRedo,
    /// CRC-32C of the partial parity read so far.
    pub(super) crc: u32,
    /// Its partial parity is as it was written.
    pub(super) sound: bool,
}

/// The partial parity logs of a set.
#[derive(Debug)]
pub(crate) struct SetPpl {
    pub(super) logs: Vec<Log>,
    /// The generation of the last header written.
    pub(super) generation: u64,
    /// Partial parity that one write of a log takes at the most, on every member.
    pub(super) room: Sectors,
    /// Flushes under way.
    pub(super) flushes: u32,
    /// Writes to areas of members that are being prepared.
    pub(super) setups: u32,
    pub(super) stage: Stage,
    /// Entries still to be carried out, and the one in work.
    pub(super) redo: VecDeque<PplRedo>,
    pub(super) redoing: Option<Redoing>,
    /// Some entry could not be carried out because its partial parity could not be read, or its rows are not whole blocks.
    pub(super) unread: bool,
    /// The set was not stopped cleanly.
    pub(super) dirty: bool,
    pub(super) force: bool,
    /// Why it cannot be started.
    pub(super) error: Option<&'static str>,
    pub(super) planted: Planted,
}

impl SetPpl {
    pub(crate) fn new(planned: &PlannedPpl, slots: u16, room: Sectors, ops_max: u32) -> Self {
        let log = || Log {
            state: LogState::Free,
            waiting: Queue::new(ops_max),
            flying: Vec::with_capacity(LOG_OPS_MAX),
            pending: 0,
            covered: 0,
            arm: false,
        };
        Self {
            logs: (0..slots).map(|_| log()).collect(),
            generation: planned.generation,
            room,
            flushes: 0,
            setups: 0,
            stage: Stage::Redo,
            redo: planned.redo.iter().copied().collect(),
            redoing: None,
            unread: false,
            dirty: planned.dirty,
            force: planned.force,
            error: None,
            planted: Planted::default(),
        }
    }

    /// May the set take requests?
    pub(crate) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }
}
