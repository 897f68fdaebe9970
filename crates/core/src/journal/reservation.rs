//! How the room in the ring is divided. The redo records of all dirty data always find room, so that acknowledged data can
//! be written to the members.
//!
//! ```text
//!  free sectors of the ring
//!  +----------------------+--------------------------+-------------------------+------------------+
//!  | more host data       | writes past the cache    | redo of what is dirty   | two entries      |
//!  |                      | that have begun          |                         |                  |
//!  +----------------------+--------------------------+-------------------------+------------------+
//!    for cached writes      reserved before they       for destage only          for the open
//!                           lock a range                                         group
//! ```
//!
//! The table of entries is divided in the same way: its last places are for redo.
//!
//! A write past the cache reserves its part before it locks its range. If it waited for room while it held the range,
//! destage that would make room might wait for that range.

use openraid_format::JOURNAL_ALIGN;
use openraid_units::{Sectors, SetId};

use crate::array::set::Set;
use crate::cache::lines::LINE_SECTORS;
use crate::controller::Controller;
use crate::io::footprint::{narrow, Footprint};
use crate::io::op::{Op, Phase};

/// Sectors of the ring that are kept free for each dirty line: its own bytes again, P, Q, and a share of a header.
const REDO_SECTORS_PER_LINE: u64 = 4 * LINE_SECTORS;

/// One write past the cache reserves this share of the ring at most, so that it can get it at some time.
const RESERVED_SHARE: u64 = 4;

impl Controller {
    /// Number of sectors that must stay free after `lines` more lines of host data.
    pub(crate) fn room_behind_data(&self, lines: u64) -> u64 {
        self.room_kept(lines) + self.journal.asked
    }

    /// Number of sectors that are kept for redo records of dirty data, if there are `lines` more dirty lines, and for
    /// writes past the cache that have begun. One entry's length is added, because it may be lost once at the end of
    /// the ring while these records are written.
    fn room_kept(&self, lines: u64) -> u64 {
        let dirty: u32 = if self.cache.is_of_one_set() {
            self.cache.dirty_lines()
        } else {
            self.sets_in_session().map(|set| self.cache.dirty_of(set)).sum()
        };
        let redo = (u64::from(dirty) + lines) * REDO_SECTORS_PER_LINE;
        redo + self.journal.reserved + self.journal.entry_max()
    }

    /// Reserve room for the records of a write past the cache; false if it has to wait.
    pub(crate) fn reserve_room(&mut self, index: u32) -> bool {
        let op = &self.ops[index];
        if !op.is_direct_write() || op.parent().is_some() || op.reserved() > 0 {
            return true;
        }
        // A session may begin before the write logs anything.
        let logs = self.sets.get(op.set()).journal.has_session() || self.wants_journal(op.set());
        if !self.journal.is_live() || !logs {
            return true;
        }
        let need = self.logs_at_most(op).min(self.journal.ring().sectors.get() / RESERVED_SHARE);
        let kept = self.room_kept(0);
        let journal = &mut self.journal;
        if journal.free() < journal.group_room() + kept + need || !journal.log.takes_group(true) {
            // Cached writes wait as well, because they would take the room that becomes free.
            (journal.short, journal.asked) = (true, journal.asked.max(need));
            return false;
        }
        journal.reserved += need;
        self.ops[index].reserve(narrow(Sectors(need)));
        true
    }

    /// An operation has ended: the room that it reserved is free, or taken by its entry. Data that it has destaged needs no
    /// more room.
    pub(crate) fn release_room(&mut self, index: u32) {
        let op = &mut self.ops[index];
        let reserved = op.reserve(0);
        let frees = reserved > 0 || op.is_destage();
        self.journal.reserved -= u64::from(reserved);
        if frees && self.ops.is_journal_awaited() {
            self.wake_journal_waiters();
        }
    }

    /// The most sectors of the ring that a write past the cache needs.
    fn logs_at_most(&self, op: &Op) -> u64 {
        let set = self.sets.get(op.set());
        match op.footprint() {
            Footprint::Rows(own) => {
                let (lo, hi) = own.part.range();
                let rows = u64::from(hi - lo);
                let columns = u64::from(own.named().1) + u64::from(set.parity().parities());
                let turns = rows.div_ceil(u64::from(set.rows_max())).max(1);
                rows * columns + turns * JOURNAL_ALIGN.get()
            }
            _ => op.extent().len.get() + JOURNAL_ALIGN.get(),
        }
    }

    /// Will an operation that is under way, or about to begin, make room in the ring? One that waits for room itself makes
    /// none.
    pub(crate) fn may_room_come(&self) -> bool {
        let (mut destage, mut direct) = (0, 0);
        for op in self.ops.journal_waiters() {
            destage += u32::from(self.ops[op].is_destage());
            direct += u32::from(self.ops[op].is_direct_write());
        }
        // Nor does one that waits for the range of an operation that waits for room.
        direct += self.locked_out();
        let (mut writing, mut passing, mut promising) = (0, 0, false);
        for set in self.sets_in_session() {
            writing += self.cache.writing_of(set);
            passing += self.sets.get(set).direct_writes();
            promising |= self.cache.is_any_promising(set);
        }
        writing > destage || passing > direct || (promising && destage == 0)
    }

    /// Writes past the cache, of sets in session, that wait for their range.
    fn locked_out(&self) -> u32 {
        let waits = |op: &Op| op.phase() == Phase::Locking && op.is_direct_write();
        let keeps = |id| self.sets_in_session().any(|set| set == id);
        let count = self.ops.iter().filter(|(_, op)| waits(op) && keeps(op.set())).count();
        u32::try_from(count).expect("operations have a limit")
    }

    /// Sets whose dirty data may need entries of the log. Dirty data of other sets is not in the log.
    pub(super) fn sets_in_session(&self) -> impl Iterator<Item = SetId> + '_ {
        let keeps = |set: &Set| set.journal.has_session() && !set.has_failed();
        self.sets.iter().filter(move |(_, set)| keeps(set)).map(|(id, _)| id)
    }
}
