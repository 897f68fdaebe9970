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
//! The table of entries is divided in the same way. A write past the cache reserves an entry for each of its turns, because
//! each turn may find a group of its own.
//!
//! A write past the cache reserves its part before it locks its range. If it waited for room while it held the range,
//! destage that would make room might wait for that range.

use openraid_format::JOURNAL_ALIGN;
use openraid_units::{Sectors, SetId};

use super::Journal;
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::cache::Cache;
use crate::geometry::cache_units::LINE_SECTORS;
use crate::io::state::footprint::{narrow, Footprint};
use crate::io::state::log_room::LogRoom;
use crate::io::state::op::{Op, Phase};
use crate::io::state::ops::Ops;

/// Sectors of the ring that are kept free for each dirty line: its own bytes again, P, Q, and a share of a header.
pub(super) const REDO_SECTORS_PER_LINE: u64 = 4 * LINE_SECTORS;

/// One write past the cache reserves this share of the ring and of the hosts' entries at most, so that it can get it at some
/// time.
const RESERVED_SHARE: u64 = 4;

/// The room that is promised, and the room that is asked for.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Reservation {
    /// Did a write find no room since the tail last moved?
    short: bool,
    /// Sectors that writes past the cache have reserved.
    reserved: u64,
    /// The largest need of the writes past the cache that wait for room; 0 if none does.
    asked: u64,
    /// `reserved` and `asked` in entries of the table.
    reserved_entries: u64,
    asked_entries: u64,
}

impl Reservation {
    /// For the next journal: writes that have reserved room release it when they end.
    pub(super) fn for_next_journal(&self) -> Self {
        Self { reserved: self.reserved, reserved_entries: self.reserved_entries, ..Self::default() }
    }

    /// For tests: writes past the cache have reserved this number of sectors.
    #[cfg(test)]
    pub(super) fn set_reserved(&mut self, sectors: u64) {
        self.reserved = sectors;
    }
}

fn count(entries: u64) -> u32 {
    u32::try_from(entries).expect("a write has few turns")
}

impl Journal {
    /// Does a write wait for room in the ring?
    #[inline(always)]
    pub(crate) const fn is_short(&self) -> bool {
        self.room.short
    }

    /// A write found no room: a round of flushes must make some.
    pub(crate) fn note_short(&mut self) {
        self.room.short = true;
    }

    /// The tail has moved.
    pub(super) fn end_short(&mut self) {
        self.room.short = false;
    }

    /// Room that a write past the cache has reserved is free, or taken by its entries.
    fn release(&mut self, room: LogRoom) {
        self.room.reserved -= u64::from(room.sectors());
        self.room.reserved_entries -= u64::from(room.entries());
    }

    /// The writes that wait for room are called, and will ask again.
    pub(crate) fn forget_asked(&mut self) {
        (self.room.asked, self.room.asked_entries) = (0, 0);
    }

    /// Number of places in the table that must stay free after an entry of host data.
    pub(super) fn entries_behind(&self) -> u64 {
        self.log.kept_for_redo() + self.room.reserved_entries + self.room.asked_entries
    }

    /// Number of sectors that must stay free after host data, if `dirty` lines are dirty then.
    fn room_behind(&self, dirty: u64) -> u64 {
        self.room_kept(dirty) + self.room.asked
    }

    /// Number of sectors that are kept for redo records of `dirty` lines, and for writes past the cache that have begun.
    /// One entry's length is added, because it may be lost once at the end of the ring while these records are written.
    fn room_kept(&self, dirty: u64) -> u64 {
        dirty * REDO_SECTORS_PER_LINE + self.room.reserved + self.entry_max()
    }

    /// Reserve room for a write past the cache that logs at most `need`, while `dirty` lines are dirty. Returns what it has
    /// reserved, or `None` if it has to wait: then cached writes wait as well, because they would take the room that becomes
    /// free.
    fn reserve(&mut self, need: LogRoom, dirty: u64) -> Option<LogRoom> {
        let sectors = u64::from(need.sectors()).min(self.ring().sectors.get() / RESERVED_SHARE);
        let entries = u64::from(need.entries()).min(self.log.hosts_part() / RESERVED_SHARE);
        let kept = self.log.kept_for_redo() + self.room.reserved_entries + entries;
        if self.free() < self.group_room() + self.room_kept(dirty) + sectors || !self.log.takes_group(kept) {
            self.room.short = true;
            self.room.asked = self.room.asked.max(sectors);
            self.room.asked_entries = self.room.asked_entries.max(entries);
            return None;
        }
        self.room.reserved += sectors;
        self.room.reserved_entries += entries;
        Some(LogRoom::new(narrow(Sectors(sectors)), count(entries)))
    }

    /// Number of sectors that must stay free after `lines` more lines of host data.
    pub(crate) fn room_behind_data(&self, sets: &Sets, cache: &Cache, lines: u64) -> u64 {
        self.room_behind(dirty_in_session(sets, cache) + lines)
    }

    /// Reserve room for the records of a write past the cache; false if it has to wait.
    #[inline]
    pub(crate) fn reserve_room(&mut self, op: &mut Op, sets: &Sets, cache: &Cache) -> bool {
        if !self.is_live() || !op.is_direct_write() || op.parent().is_some() || op.reserved() != LogRoom::NONE {
            return true;
        }
        // A session may begin before the write logs anything.
        let set = sets.get(op.set());
        let logs = set.journal.has_session() || self.is_wanted_by(set);
        if !logs {
            return true;
        }
        let (need, dirty) = (logs_at_most(set, op), dirty_in_session(sets, cache));
        let Some(reserved) = self.reserve(need, dirty) else { return false };
        op.reserve(reserved);
        true
    }

    /// An operation has ended: the room that it reserved is free, or taken by its entry. Data that it has destaged needs no
    /// more room. True if there may be room for others.
    pub(crate) fn release_room(&mut self, op: &mut Op) -> bool {
        let reserved = op.reserve(LogRoom::NONE);
        if reserved == LogRoom::NONE {
            return op.is_destage();
        }
        self.release(reserved);
        true
    }
}

/// The most room that a write past the cache needs: an entry for each turn, and perhaps one that fills the end of the ring.
fn logs_at_most(set: &Set, op: &Op) -> LogRoom {
    match op.footprint() {
        Footprint::Rows(stripe_rows) => {
            let (lo, hi) = stripe_rows.part.range();
            let rows = u64::from(hi - lo);
            let columns = u64::from(stripe_rows.named().1) + u64::from(op.parity(set).parities());
            let turns = rows.div_ceil(u64::from(set.rows_max())).max(1);
            let sectors = rows * columns + turns * JOURNAL_ALIGN.get();
            LogRoom::new(narrow(Sectors(sectors)), count(turns + 1))
        }
        _ => LogRoom::new(narrow(op.extent().len + JOURNAL_ALIGN), 2),
    }
}

/// May its dirty data need entries of the log? Dirty data of other sets is not in the log.
pub(super) fn keeps_entries(set: &Set) -> bool {
    set.journal.has_session() && !set.has_failed()
}

/// Sets whose dirty data may need entries of the log.
pub(super) fn in_session(sets: &Sets) -> impl Iterator<Item = SetId> + '_ {
    sets.iter().filter(|(_, set)| keeps_entries(set)).map(|(id, _)| id)
}

/// Number of dirty lines that may need entries of the log.
fn dirty_in_session(sets: &Sets, cache: &Cache) -> u64 {
    let dirty: u32 =
        if cache.is_of_one_set() { cache.dirty_lines() } else { in_session(sets).map(|set| cache.dirty_of(set)).sum() };
    u64::from(dirty)
}

/// Will an operation that is under way, or about to begin, make room in the ring? One that waits for room itself makes
/// none.
pub(super) fn may_make_room(ops: &Ops, sets: &Sets, cache: &Cache) -> bool {
    let (mut destage, mut direct) = (0, 0);
    for op in ops.journal_waiters() {
        destage += u32::from(ops[op].is_destage());
        direct += u32::from(ops[op].is_direct_write());
    }
    // Nor does one that waits for the range of an operation that waits for room.
    let is_locked_out =
        |op: &Op| op.phase() == Phase::Locking && op.is_direct_write() && in_session(sets).any(|set| set == op.set());
    direct += u32::try_from(ops.iter().filter(|(_, op)| is_locked_out(op)).count()).expect("operations have a limit");
    let (mut writing, mut passing, mut promising) = (0, 0, false);
    for set in in_session(sets) {
        writing += cache.writing_of(set);
        passing += sets.get(set).direct_writes();
        promising |= cache.is_any_promising(set);
    }
    writing > destage || passing > direct || (promising && destage == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sectors(sectors: u32) -> LogRoom {
        LogRoom::new(sectors, 2)
    }

    /// Ring of 8192 sectors, entries of at most 136: two entries and a header, 280 sectors, are never promised.
    const RING: u64 = 8192;

    #[test]
    fn a_write_past_the_cache_gets_what_dirty_data_and_other_writes_leave_over() {
        let mut journal = Journal::of_ring(Sectors(RING));
        // 100 dirty lines keep 32 sectors each, and one entry may be lost at the end of the ring.
        assert_eq!(journal.room_behind(100), 100 * 32 + 136);
        let left = RING - 280 - (100 * 32 + 136);
        assert_eq!(journal.reserve(sectors(2000), 100), Some(sectors(2000)));
        assert_eq!(journal.reserve(sectors(6000), 100), Some(sectors(2048)), "a quarter of the ring at most");
        assert_eq!(left - 2000 - 2048, 528);
        assert_eq!(journal.reserve(sectors(529), 100), None);
        assert!(journal.is_short());
        assert_eq!(journal.reserve(sectors(300), 100), Some(sectors(300)), "a smaller one fits");
    }

    #[test]
    fn what_a_waiting_write_asks_for_is_kept_from_cached_writes_until_all_are_called() {
        let mut journal = Journal::of_ring(Sectors(RING));
        assert_eq!(journal.reserve(sectors(2048), 0), Some(sectors(2048)));
        assert_eq!(journal.reserve(sectors(1000), 200), None, "the dirty lines keep 6400 sectors");
        assert_eq!(journal.reserve(sectors(700), 200), None);
        assert_eq!(journal.room_behind(0), 2048 + 136 + 1000, "the largest of both");
        journal.forget_asked();
        journal.release(sectors(2048));
        assert_eq!(journal.room_behind(0), 136);
        assert!(journal.is_short(), "until the tail has moved");
        journal.end_short();
        assert!(!journal.is_short());
    }

    #[test]
    fn the_next_journal_knows_the_reservations_that_are_still_to_be_released_and_nothing_else() {
        let room = Reservation { short: true, reserved: 40, asked: 7, reserved_entries: 2, asked_entries: 3 };
        let room = room.for_next_journal();
        assert_eq!((room.short, room.reserved, room.asked), (false, 40, 0));
        assert_eq!((room.reserved_entries, room.asked_entries), (2, 0));
        let mut journal = Journal { room, ..Journal::of_ring(Sectors(RING)) };
        journal.release(sectors(40));
        assert_eq!(journal.room.reserved, 0);
    }

    #[test]
    fn a_write_past_the_cache_waits_if_the_table_of_entries_is_full_even_if_the_ring_is_empty() {
        let mut journal = Journal::of_ring(Sectors(RING));
        journal.fill_table();
        assert!(journal.free() > RING / 2);
        assert_eq!(journal.reserve(sectors(8), 0), None);
    }

    #[test]
    fn writes_past_the_cache_reserve_an_entry_for_each_turn_and_leave_those_of_redo_alone() {
        let mut journal = Journal::of_ring(Sectors(RING));
        let places = journal.log.hosts_part();
        let need = LogRoom::new(8, 7);
        let mut writes = 0;
        while journal.reserve(need, 0).is_some() {
            writes += 1;
        }
        assert_eq!(writes, (places - 2) / 7, "two places are for a group");
        assert!(journal.is_short());
        let behind = journal.log.kept_for_redo() + writes * 7 + 7;
        assert_eq!(journal.entries_behind(), behind, "what a write waits for is kept from cached writes");
        journal.forget_asked();
        journal.release(need);
        assert_eq!(journal.reserve(need, 0), Some(need));
        let many = LogRoom::new(8, 4000);
        let mut journal = Journal::of_ring(Sectors(RING));
        let most = u32::try_from(places / RESERVED_SHARE).unwrap();
        assert_eq!(journal.reserve(many, 0), Some(LogRoom::new(8, most)), "a quarter of the hosts' places");
    }
}
