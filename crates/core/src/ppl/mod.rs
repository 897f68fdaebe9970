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
use openraid_format::crc32c_of_both;
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
    pub(in crate::ppl) state: LogState,
    /// Operations that wait for the next write of it.
    pub(in crate::ppl) waiting: Queue,
    /// Operations of the write that is on its way.
    pub(in crate::ppl) flying: Vec<u32>,
    /// Commands of that write that are out.
    pub(in crate::ppl) pending: u32,
    /// Operations that the last write covers and that are not through.
    pub(in crate::ppl) covered: u32,
    /// An empty header is to be written: the set is consistent now, and the one on disk does not say so.
    pub(in crate::ppl) arm: bool,
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
    pub(in crate::ppl) entry: PplRedo,
    /// CRC-32C of the partial parity read so far.
    pub(in crate::ppl) crc: u32,
    /// Its partial parity is as it was written.
    pub(in crate::ppl) sound: bool,
}

impl Redoing {
    /// The entry.
    pub(crate) const fn entry(&self) -> &PplRedo {
        &self.entry
    }

    /// Is its partial parity as it was written?
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
    /// Partial parity that one write of a log takes at most, on every member.
    pub(in crate::ppl) room: Sectors,
    /// Flushes under way.
    pub(in crate::ppl) flushes: u32,
    /// Writes to areas of members that are being prepared.
    pub(in crate::ppl) setups: u32,
    pub(in crate::ppl) stage: Stage,
    /// Entries still to be carried out, and the one in work.
    pub(in crate::ppl) redo: VecDeque<PplRedo>,
    pub(in crate::ppl) redoing: Option<Redoing>,
    /// Some entry could not be carried out because its partial parity could not be read, or its rows are not whole blocks.
    pub(in crate::ppl) unread: bool,
    /// The set was not stopped cleanly.
    pub(in crate::ppl) dirty: bool,
    pub(in crate::ppl) force: bool,
    /// Why it cannot be started.
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

    /// Why the set cannot be started.
    pub(crate) const fn error(&self) -> Option<&'static str> {
        self.error
    }

    /// Was the set not stopped cleanly, and does it not take requests yet?
    pub(crate) fn is_recovering(&self) -> bool {
        self.dirty && !self.is_ready()
    }

    pub(crate) fn plant(&mut self, planted: Planted) {
        self.planted = planted;
    }

    /// The entry that is being carried out.
    ///
    /// # Panics
    /// There is none.
    pub(crate) fn redoing(&self) -> &Redoing {
        self.redoing.as_ref().expect("an entry is in work")
    }

    /// A part of its partial parity was read, with this checksum.
    pub(crate) fn sum_partial(&mut self, crc: u32, bytes: u64) {
        let own = self.redoing.as_mut().expect("an entry is in work");
        own.crc = crc32c_of_both(own.crc, crc, bytes);
    }

    /// All of its partial parity was read: is it as it was written?
    pub(crate) fn judge_partial(&mut self) -> bool {
        let own = self.redoing.as_mut().expect("an entry is in work");
        own.sound = own.crc == own.entry.checksum;
        own.sound
    }

    /// It is carried out, or left out.
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
