//! The partial parity log: it closes the write hole of RAID 5 without a device of its own.
//!
//! Before a stripe is written, its parity member takes a record: the rows and columns that are about to be written, and
//! the parity of the columns that are not. After a crash the parity of those rows is computed from that record and from
//! the content of the written columns on the members, old or new. So columns that were not being written can still be
//! recovered.
//!
//! ```text
//!  one log for each slot, with one write of it under way at a time
//!
//!  Free -> Writing -> Covering -> Stale -> Flushing -> Free
//!            |           |          |         +-- the members are flushed, and their failures are recorded
//!            |           |          +-- all writes that it covers are complete; it is needed again
//!            |           +-- it is durable: the writes that it covers are under way
//!            +-- header and partial parity are being written; records that arrive meanwhile go with the next write
//! ```
//!
//! A log is overwritten only after a successful flush of the members: until then the writes that it covers may be lost
//! in a power cut. A failure on the way is durable on the other members before any operation continues.
//!
//! Must never: let an operation write before its record is durable; skip the log if a set was not stopped cleanly.
//!
//! Format and placement are md's (`openraid_format::PplHeader`). A header of generation 0 says that the set was not yet
//! consistent when it was written, so it does not replace a resync.

mod area;
mod log;
pub mod plan;
mod start;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use openraid_units::Sectors;

use crate::planted::Planted;
use crate::slab::Queue;
use openraid_format::crc32c_of_both;
use plan::{PlannedPpl, PplRedo};

/// Maximum number of operations whose records one write of a log takes: their commands must fit next to others.
pub(crate) const LOG_OPS_MAX: usize = 64;
const _: () = assert!(LOG_OPS_MAX <= openraid_format::PPL_ENTRIES_MAX);

/// State of an operation's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Partial {
    /// It needs none.
    No,
    /// It needs one before it writes.
    Due,
    /// It waits until the record is durable.
    Waiting,
    /// The record is durable, and covers its writes.
    Logged,
}

/// State of a log; see the module.
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
    pub(in crate::ppl) state: LogState,
    /// Operations that wait for the next write of it.
    pub(in crate::ppl) waiting: Queue,
    /// Operations of the write that is under way.
    pub(in crate::ppl) flying: Vec<u32>,
    /// Outstanding commands of that write.
    pub(in crate::ppl) pending: u32,
    /// Operations that the last write covers and that are not finished.
    pub(in crate::ppl) covered: u32,
    /// An empty header must be written: the set is consistent now, and the header on disk does not say so.
    pub(in crate::ppl) arm: bool,
}

impl Log {
    fn is_wanted(&self) -> bool {
        !self.waiting.is_empty() || self.arm
    }
}

/// Progress of a set from assembly to its first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The entries of the logs are being applied, one after the other.
    Redo,
    /// The members are being flushed.
    Flush,
    /// The areas are being zeroed.
    Clear,
    /// Empty headers are being written.
    Header,
    /// The set takes requests.
    Ready,
}

/// An entry that is being applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redoing {
    pub(in crate::ppl) entry: PplRedo,
    /// CRC-32C of the partial parity read so far.
    pub(in crate::ppl) crc: u32,
    /// Its partial parity matches its checksum.
    pub(in crate::ppl) sound: bool,
}

impl Redoing {
    /// The entry.
    pub(crate) const fn entry(&self) -> &PplRedo {
        &self.entry
    }

    /// Does its partial parity match its checksum?
    pub(crate) const fn is_sound(&self) -> bool {
        self.sound
    }
}

/// The partial parity logs of a set.
#[derive(Debug)]
pub(crate) struct SetPpl {
    pub(in crate::ppl) logs: Vec<Log>,
    /// The generation of the last header written.
    pub(in crate::ppl) generation: u64,
    /// Maximum size of the partial parity that one write of a log takes, on every member.
    pub(in crate::ppl) room: Sectors,
    /// Flushes under way.
    pub(in crate::ppl) flushes: u32,
    /// Writes to areas of members that are being prepared.
    pub(in crate::ppl) setups: u32,
    pub(in crate::ppl) stage: Stage,
    /// Entries still to be applied, and the one in work.
    pub(in crate::ppl) redo: VecDeque<PplRedo>,
    pub(in crate::ppl) redoing: Option<Redoing>,
    /// Some entry could not be applied because its partial parity could not be read, or because its rows are not whole
    /// blocks.
    pub(in crate::ppl) unread: bool,
    /// The set was not stopped cleanly.
    pub(in crate::ppl) dirty: bool,
    pub(in crate::ppl) force: bool,
    /// The reason why it cannot be started.
    pub(in crate::ppl) error: Option<&'static str>,
    pub(in crate::ppl) planted: Planted,
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

    /// Are areas of members being prepared?
    pub(crate) const fn is_preparing(&self) -> bool {
        self.setups > 0
    }

    /// The reason why the set cannot be started.
    pub(crate) const fn error(&self) -> Option<&'static str> {
        self.error
    }

    /// Was the set not stopped cleanly, and is it not serving yet?
    pub(crate) fn is_recovering(&self) -> bool {
        self.dirty && !self.is_ready()
    }

    pub(crate) fn plant(&mut self, planted: Planted) {
        self.planted = planted;
    }

    /// The entry that is being applied.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn redoing(&self) -> &Redoing {
        self.redoing.as_ref().expect("an entry is in work")
    }

    /// A part of its partial parity was read, with this checksum.
    pub(crate) fn sum_partial(&mut self, crc: u32, bytes: u64) {
        let own = self.redoing.as_mut().expect("an entry is in work");
        own.crc = crc32c_of_both(own.crc, crc, bytes);
    }

    /// All of its partial parity was read: does it match its checksum?
    pub(crate) fn judge_partial(&mut self) -> bool {
        let own = self.redoing.as_mut().expect("an entry is in work");
        own.sound = own.crc == own.entry.checksum;
        own.sound
    }

    /// It was applied, or skipped.
    pub(crate) fn end_entry(&mut self) {
        self.redoing = None;
    }

    /// Its partial parity could not be read.
    pub(crate) fn entry_unread(&mut self) {
        self.unread = true;
    }

    /// May the set take requests?
    pub(crate) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }
}
