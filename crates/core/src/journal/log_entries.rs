//! The entries from the tail to the head, and what still needs each of them.
//!
//! An entry is needed by every cache line whose oldest dirty byte came with it, by every operation whose redo records it
//! holds until the members have them, and by every array that was not started yet and may have to be replayed.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Maximum number of entries that are kept outside of the ring.
pub(crate) const KEPT_MAX: usize = 4096;

/// An entry of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Position of its header, in sectors of the ring.
    pub(super) position: u64,
    /// Number of sectors of the ring that it takes; 0 until it is sealed.
    pub(super) sectors: u64,
    /// Number of lines and operations that need it.
    pub(super) pins: u32,
    /// Number of lines that its host data takes when it is replayed.
    pub(super) lines: u32,
    /// Arrays of the journal's table that may need it and were not started yet, one bit each.
    pub(super) waiting: u64,
}

/// An entry that was copied out of the ring.
#[derive(Clone, Copy, Debug)]
struct SpilledEntry {
    sequence: u64,
    pins: u32,
    lines: u32,
    waiting: u64,
}

/// The log.
#[derive(Debug)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    /// Entries that were copied out of the ring, in order. The newest may still be in the ring as well.
    kept: Vec<SpilledEntry>,
    /// Number of the first entry in the ring.
    pub(super) first: u64,
    /// Number of sectors of the ring that entries take.
    pub(super) used: u64,
    /// Number of lines that all host data of the log would take, kept entries included.
    pub(super) lines: u32,
    /// No entry before this one is needed.
    needed: u64,
    capacity: usize,
    /// Number of places in the table that host data leaves free for redo records.
    kept_for_redo: u64,
}

impl Log {
    /// A log with places for `of_hosts` entries of hosts. There are further places for redo records: dirty data is
    /// logged once more before it is destaged, in the worst case with one entry for each line, and sometimes a filler.
    pub(crate) fn new(of_hosts: u32, lines: u32, in_work: u32) -> Self {
        let kept_for_redo = u64::from(lines) + 2 * u64::from(in_work);
        let capacity = of_hosts as usize + lines as usize + 2 * in_work as usize;
        let kept = Vec::with_capacity(if capacity == 0 { 0 } else { KEPT_MAX });
        Self {
            entries: VecDeque::with_capacity(capacity),
            kept,
            first: 1,
            used: 0,
            lines: 0,
            needed: 1,
            capacity,
            kept_for_redo,
        }
    }

    /// Forget everything; the next entry is number `next`.
    pub(crate) fn clear(&mut self, next: u64) {
        self.entries.clear();
        self.kept.clear();
        (self.first, self.used, self.lines, self.needed) = (next, 0, 0, next);
    }

    /// The sequence number of the next entry.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Does the table have room for `count` more entries?
    pub(crate) fn has_room(&self, count: usize) -> bool {
        self.entries.len() + count <= self.capacity
    }

    /// Places that only redo records of cached data may use.
    pub(crate) const fn kept_for_redo(&self) -> u64 {
        self.kept_for_redo
    }

    /// Places for entries of hosts.
    pub(crate) const fn hosts_part(&self) -> u64 {
        self.capacity as u64 - self.kept_for_redo
    }

    /// Does the table have room for a group (a filler, and its entry), and for `kept` entries after it?
    pub(crate) fn takes_group(&self, kept: u64) -> bool {
        self.entries.len() as u64 + 2 + kept <= self.capacity as u64
    }

    /// Is more than this share of the hosts' part of the table in use, by entries of any kind?
    pub(crate) fn is_taken_to(&self, (part, whole): (u64, u64)) -> bool {
        self.entries.len() as u64 * whole > self.hosts_part() * part
    }

    /// Number of entries in the ring.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Append an entry.
    pub(crate) fn push(&mut self, entry: Entry) {
        debug_assert!(self.entries.len() < self.capacity);
        self.used += entry.sectors;
        self.lines += entry.lines;
        self.entries.push_back(entry);
    }

    #[allow(clippy::cast_possible_truncation)] // the table is in memory
    fn place(&self, sequence: u64) -> usize {
        assert!(sequence >= self.first && sequence < self.next(), "the log holds this entry");
        (sequence - self.first) as usize
    }

    pub(crate) fn get(&self, sequence: u64) -> &Entry {
        &self.entries[self.place(sequence)]
    }

    pub(crate) fn holds(&self, sequence: u64) -> bool {
        (sequence >= self.first && sequence < self.next()) || self.kept_place(sequence).is_some()
    }

    fn kept_place(&self, sequence: u64) -> Option<usize> {
        if self.kept.is_empty() {
            return None;
        }
        self.kept.binary_search_by_key(&sequence, |kept| kept.sequence).ok()
    }

    fn pins_of(&mut self, sequence: u64) -> &mut u32 {
        if let Some(place) = self.kept_place(sequence) {
            return &mut self.kept[place].pins;
        }
        let place = self.place(sequence);
        &mut self.entries[place].pins
    }

    /// Note size and position of the entry that was opened last.
    pub(crate) fn seal(&mut self, sequence: u64, position: u64, sectors: u64) {
        let place = self.place(sequence);
        let entry = &mut self.entries[place];
        (entry.position, entry.sectors) = (position, sectors);
        self.used += sectors;
    }

    pub(crate) fn add_lines(&mut self, sequence: u64, lines: u32) {
        let place = self.place(sequence);
        self.entries[place].lines += lines;
        self.lines += lines;
    }

    pub(crate) fn pin(&mut self, sequence: u64) {
        *self.pins_of(sequence) += 1;
    }

    pub(crate) fn unpin(&mut self, sequence: u64) {
        *self.pins_of(sequence) -= 1;
    }

    /// As [`Log::unpin`], for an entry that may be gone because the journal was forgotten.
    pub(crate) fn unpin_if_held(&mut self, sequence: u64) {
        let index = usize::try_from(sequence.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        if let (true, Some(entry)) = (self.kept.is_empty(), self.entries.get_mut(index)) {
            entry.pins -= 1;
        } else if self.holds(sequence) {
            self.unpin(sequence);
        }
    }

    /// All entries that wait for an array, oldest first.
    fn all_waiting_for(&self, array: u8) -> impl DoubleEndedIterator<Item = u64> + '_ {
        let kept = self.kept.iter().map(|kept| (kept.sequence, kept.waiting));
        let in_ring = self.entries.iter().enumerate().map(|(at, entry)| (self.first + at as u64, entry.waiting));
        kept.chain(in_ring).filter(move |(_, waiting)| waiting >> array & 1 == 1).map(|(sequence, _)| sequence)
    }

    /// Number of entries that wait for an array.
    pub(crate) fn waiting_for(&self, array: u8) -> u64 {
        self.all_waiting_for(array).count() as u64
    }

    /// The last entry that waits for an array.
    pub(crate) fn last_waiting_for(&self, array: u8) -> Option<u64> {
        self.all_waiting_for(array).next_back()
    }

    /// Entries from this one on are needed until an array is started again.
    pub(crate) fn wait_for_array(&mut self, array: u8, since: u64) {
        self.needed = self.needed.min(since.max(self.first));
        let known = since.saturating_sub(self.first);
        let skip = usize::try_from(known).unwrap_or(usize::MAX);
        let kept_to = self.kept.last().map_or(0, |kept| kept.sequence);
        for (sequence, entry) in (self.first..).zip(&mut self.entries).skip(skip) {
            if sequence > kept_to {
                entry.waiting |= 1 << array;
            }
        }
        for kept in self.kept.iter_mut().filter(|kept| kept.sequence >= since) {
            kept.waiting |= 1 << array;
        }
    }

    /// An array was started, or its entries do not count: no entry waits for it any more.
    pub(crate) fn end_array_entries(&mut self, array: u8) {
        for entry in &mut self.entries {
            entry.waiting &= !(1 << array);
        }
        for kept in &mut self.kept {
            kept.waiting &= !(1 << array);
        }
    }

    /// The first entry that is needed, if it is below `end`, complete, and needed by absent arrays only.
    pub(crate) fn front_waiting(&mut self, end: u64) -> Option<u64> {
        let first = self.first_needed(end);
        if first >= end.min(self.next()) {
            return None;
        }
        let entry = self.get(first);
        (entry.pins == 0 && entry.sectors > 0).then_some(first)
    }

    /// May this entry be kept outside of the ring, if all kept entries together may have `lines_max` lines?
    pub(crate) fn may_keep(&self, entry: &Entry, lines_max: u32) -> bool {
        let lines: u32 = self.kept.iter().map(|kept| kept.lines).sum();
        self.kept.len() < KEPT_MAX && lines + entry.lines <= lines_max
    }

    /// An entry has a copy outside of the ring: its place in the ring is not needed any more.
    pub(crate) fn keep(&mut self, sequence: u64) {
        let place = self.place(sequence);
        let entry = &mut self.entries[place];
        assert!(entry.pins == 0 && self.kept.last().is_none_or(|last| last.sequence < sequence), "kept in their order");
        let (waiting, lines) = (core::mem::take(&mut entry.waiting), core::mem::take(&mut entry.lines));
        self.kept.push(SpilledEntry { sequence, pins: 0, lines, waiting });
    }

    /// Add an entry that was found outside of the ring.
    pub(crate) fn load_kept(&mut self, sequence: u64, entry: &Entry) {
        self.lines += entry.lines;
        self.kept.push(SpilledEntry { sequence, pins: 0, lines: entry.lines, waiting: entry.waiting });
    }

    /// Is an entry kept outside of the ring for an absent array?
    pub(crate) fn is_kept_for(&self, array: u8) -> bool {
        self.kept.iter().any(|kept| kept.waiting >> array & 1 == 1)
    }

    /// Does an array that is back still need an entry that is kept outside of the ring? Until that is on the members the
    /// tail must not pass newer entries.
    pub(crate) fn is_kept_pinned(&self) -> bool {
        self.kept.iter().any(|kept| kept.pins > 0)
    }

    /// Are there kept entries, none of which is needed?
    pub(crate) fn may_empty_kept(&self) -> bool {
        !self.kept.is_empty() && self.kept.iter().all(|kept| kept.pins == 0 && kept.waiting == 0)
    }

    /// Forget the entries that are kept outside of the ring.
    pub(crate) fn empty_kept(&mut self) {
        self.lines -= self.kept.drain(..).map(|kept| kept.lines).sum::<u32>();
    }

    /// The first entry that is needed, or `end`. The search continues from the last answer: only the newest entries get
    /// pinned, so an entry that was not needed once is not needed later.
    pub(crate) fn first_needed(&mut self, end: u64) -> u64 {
        self.needed = self.needed.max(self.first);
        while self.needed < end.min(self.next()) {
            let entry = self.get(self.needed);
            if entry.pins > 0 || entry.waiting != 0 {
                break;
            }
            self.needed += 1;
        }
        self.needed.min(end)
    }

    /// Is the entry at the tail not needed?
    pub(crate) fn may_shrink(&self) -> bool {
        self.entries.front().is_some_and(|entry| entry.pins == 0 && entry.waiting == 0 && entry.sectors > 0)
    }

    /// The tail has passed everything below this entry.
    pub(crate) fn drop_below(&mut self, sequence: u64) {
        while self.first < sequence {
            let Some(entry) = self.entries.pop_front() else {
                self.first = sequence;
                return;
            };
            debug_assert!(entry.pins == 0);
            self.used -= entry.sectors;
            self.lines -= entry.lines;
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log with `entries` entries of eight sectors and two lines each, the first at sector 0.
    fn log(entries: u64) -> Log {
        let mut log = Log::new(8, 2, 1);
        for at in 0..entries {
            log.push(Entry { position: at * 8, sectors: 8, pins: 0, lines: 2, waiting: 0 });
        }
        log
    }

    #[test]
    fn the_tail_stops_at_the_first_entry_that_a_line_an_operation_or_an_absent_array_needs() {
        let mut log = log(4);
        log.pin(3);
        assert_eq!(log.first_needed(10), 3);
        log.wait_for_array(5, 2);
        assert_eq!((log.first_needed(10), log.waiting_for(5), log.last_waiting_for(5)), (2, 3, Some(4)));
        assert_eq!(log.front_waiting(10), Some(2), "only the array needs it");
        log.end_array_entries(5);
        assert_eq!(log.first_needed(10), 3);
        log.unpin(3);
        assert_eq!((log.first_needed(4), log.first_needed(10)), (4, 5), "not past what was asked, nor past the last");
        log.drop_below(4);
        assert_eq!((log.len(), log.used, log.lines, log.next()), (1, 8, 2, 5));
        assert!(log.holds(4) && !log.holds(3) && !log.holds(5));
    }

    #[test]
    fn an_entry_that_is_kept_outside_frees_the_ring_and_is_still_found() {
        let mut log = log(3);
        log.wait_for_array(0, 1);
        log.keep(1);
        assert!(log.may_shrink() && log.is_kept_for(0));
        log.drop_below(2);
        assert!(log.holds(1));
        assert_eq!((log.lines, log.used, log.waiting_for(0)), (6, 16, 3), "its lines may be loaded again");
        // The array is started again, and a line needs the entry until it is clean.
        log.pin(1);
        log.end_array_entries(0);
        assert!(log.is_kept_pinned() && !log.may_empty_kept());
        log.unpin_if_held(1);
        assert!(log.may_empty_kept());
        log.empty_kept();
        assert_eq!((log.holds(1), log.lines), (false, 4));
        log.unpin_if_held(1);
    }

    #[test]
    fn host_data_leaves_the_last_places_to_redo_records() {
        // Eight places for hosts, and 2 + 2 x 1 more for redo records.
        for (entries, of_hosts, of_redo) in [(6, true, true), (7, false, true), (10, false, true), (11, false, false)] {
            let log = log(entries);
            assert_eq!(
                (log.takes_group(log.kept_for_redo()), log.takes_group(0)),
                (of_hosts, of_redo),
                "{entries} entries"
            );
        }
        assert!(log(5).is_taken_to((1, 2)) && !log(4).is_taken_to((1, 2)));
    }
}
