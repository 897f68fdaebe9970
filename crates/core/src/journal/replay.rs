//! Replay: before a set takes requests, its acknowledged data is loaded from the log as dirty lines, entry by entry, record
//! by record. The redo records that its members lack are noted, and written while the set serves: see
//! [`redo_backlog`](super::redo_backlog).
//!
//! Replay can start again at any time, because lines are loaded in the order of the log. While a set is loaded no data is
//! destaged, so that data which a later record revokes was not written before.

use alloc::vec::Vec;
use openraid_format::{JournalRecord, JournalRing, JournalSuperblock, RingSector, JOURNAL_ALIGN};
use openraid_units::{BlockSize, DriveLba, PoolOffset, Sectors, SetId, SetLba, Tag, TagKind};

use super::log_entries::Log;
use super::redo_backlog::{Newest, RedoBacklog, Source};
use super::{Journal, JournalState};
use crate::actions::JobKind;
use crate::array::metadata::Metadata;
use crate::array::set::Set;
use crate::array::sets::{Sets, Signal};
use crate::cache::lines::Mask;
use crate::cache::Cache;
use crate::call::Call;
use crate::events::CommandError;
use crate::geometry::cache_units::unit_at;
use crate::geometry::cache_units::{lines_of, LINE_SECTORS};
use crate::geometry::shape::Side;
use crate::io::state::command::ChannelCommand;
use crate::io::state::command::WindowUser;
use crate::journal::found_journal::{FoundEntry, FoundJournal, KeptEntry};
use crate::journal::window::SILENT;

/// Why a set is not started whose data does not fit.
const TOO_MUCH: &str =
    "the journal holds more for the array than the cache can take; give the server a larger --cache, no \
                        less than it had";

/// The set that is being loaded.
#[derive(Clone, Copy, Debug)]
struct Current {
    set: SetId,
    array: u8,
    /// Next entry, next record of it, sectors of that record that are done.
    entry: usize,
    record: usize,
    done: Sectors,
}

/// Replay of the log that was found when the journal was opened.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// The entries that were read, each with its place now.
    entries: Vec<KeptEntry>,
    queue: Vec<SetId>,
    current: Option<Current>,
    /// The device that the window is being read from.
    reading: Option<usize>,
    /// Sectors of it that are needed next. The rest is read ahead.
    least: Sectors,
    /// Copies out of the window that may not be complete.
    copies: u32,
    /// Why the set that is being loaded cannot be started.
    error: Option<&'static str>,
    /// The redo backlogs of the sets that were loaded.
    pub(super) backlogs: Vec<RedoBacklog>,
    /// An operation waits for rows whose redos have not begun.
    pub(super) is_asked: bool,
}

impl Replay {
    pub(crate) fn load(&mut self, found: &FoundJournal) {
        let ring = found.superblock.ring();
        // An entry that was copied may still be in the ring.
        let first = found.kept.last().map_or(0, |last| last.sequence + 1);
        let in_ring = |(sequence, entry): (u64, &FoundEntry)| {
            let at = ring.drive_lba(entry.position);
            (sequence >= first).then(|| KeptEntry { sequence, at, entry: entry.clone() })
        };
        let entries = (found.tail.sequence..).zip(&found.entries).filter_map(in_ring);
        self.entries = found.kept.iter().cloned().chain(entries).collect();
    }

    /// For the next journal, which has no redo records for these sets: rows of failed sets stay incomplete.
    pub(super) fn for_next_journal(&mut self) -> Self {
        self.backlogs.iter_mut().for_each(|backlog| backlog.left = 0);
        Self { backlogs: core::mem::take(&mut self.backlogs), ..Self::default() }
    }

    /// An entry was copied out of the ring to this place.
    pub(crate) fn entry_moved(&mut self, sequence: u64, to: DriveLba) {
        if let Ok(place) = self.entries.binary_search_by_key(&sequence, |entry| entry.sequence) {
            self.entries[place].at = to;
        }
    }

    /// The present source of bytes that were at `at` in the ring when an entry was written; `None` if the tail had passed
    /// them. All entries that were needed then were in the ring at once, so each place belongs to one entry.
    fn find_referred(&self, ring: &JournalRing, by: &KeptEntry, at: RingSector) -> Option<Source> {
        let from = self.entries.partition_point(|entry| entry.sequence < by.entry.tail);
        let to = self.entries.partition_point(|entry| entry.sequence < by.sequence);
        let needed = &self.entries[from..to];
        let first = needed.first()?.entry.position;
        let distance = ring.distance(first, at);
        let behind = needed.partition_point(|entry| ring.distance(first, entry.entry.position) <= distance);
        let entry = &needed[behind - 1];
        let within = ring.distance(entry.entry.position, at);
        (within < entry.entry.sectors).then(|| Source { from: entry.at + within, sequence: entry.sequence })
    }

    /// The newest redo record for each place of the members of an array.
    ///
    /// At two kinds of places the members have newer bytes than the log, and older records do not count:
    ///
    /// - A redo record refers to an entry that the tail has passed. That operation was complete, and the member was flushed
    ///   since, so its bytes are on the member only. Redo records of older data may have been logged after that entry, and
    ///   still be in the log.
    /// - A write left the member out, because the slot had no member or one that was to be filled later. It has been filled
    ///   since.
    pub(super) fn newest(&self, superblock: &JournalSuperblock, log: &Log, array: u8, side: Side) -> Newest {
        let ring = superblock.ring();
        let mut newest = Newest::default();
        for entry in self.entries.iter().rev().filter(|entry| superblock.counts(array, entry.sequence)) {
            let place_of = |record: &JournalRecord| match *record {
                JournalRecord::Redo { slot, member_lba, sectors, payload_at, .. } => {
                    let source = Source { from: entry.at + JOURNAL_ALIGN + payload_at, sequence: entry.sequence };
                    Some((slot, (member_lba, sectors), Some(source)))
                }
                JournalRecord::RedoRef { slot, member_lba, sectors, at, .. } => {
                    let source = self.find_referred(&ring, entry, at).map(|source| {
                        let sequence = if log.holds(source.sequence) { source.sequence } else { entry.sequence };
                        Source { sequence, ..source }
                    });
                    Some((slot, (member_lba, sectors), source))
                }
                JournalRecord::Outdated { slot, member_lba, sectors, .. } => Some((slot, (member_lba, sectors), None)),
                _ => None,
            };
            // Within an entry, the records whose bytes are in the log count as the newer ones.
            for is_in_log in [true, false] {
                let records = entry.entry.records.iter().rev().filter(|record| record.array() == array);
                let places = records.filter_map(place_of).filter(|(.., source)| source.is_some() == is_in_log);
                places.for_each(|(slot, place, source)| newest.add((side, slot), place, source));
            }
        }
        newest
    }

    /// Is a set being loaded or waiting for that, or does one wait for its redos before it serves?
    pub(crate) fn is_loading(&self) -> bool {
        let starts = |backlog: &RedoBacklog| !backlog.serves && !backlog.is_over;
        self.current.is_some() || !self.queue.is_empty() || self.backlogs.iter().any(starts)
    }

    /// Is the log still needed by a set?
    pub(crate) fn is_active(&self) -> bool {
        self.is_loading() || self.backlogs.iter().any(|backlog| !backlog.is_over)
    }

    /// Was this entry, or a later one, read?
    pub(crate) fn holds(&self, sequence: u64) -> bool {
        self.entries.last().is_some_and(|last| last.sequence >= sequence)
    }

    /// A copy out of the window is done.
    pub(crate) fn copy_ended(&mut self) {
        self.copies -= 1;
    }

    /// A set waits for its part of the log.
    pub(crate) fn want(&mut self, set: SetId) {
        self.queue.push(set);
    }
}

impl Journal {
    /// Can all records of an array be written in blocks of this size? Records of an earlier array in the same place of
    /// the table do not count.
    pub(crate) fn is_in_blocks(&self, array: u8, block: BlockSize) -> bool {
        let block = block.sectors().get();
        let entries = self.replay.entries.iter().filter(|entry| self.table().counts(array, entry.sequence));
        let mut records = entries.flat_map(|entry| &entry.entry.records).filter(|record| record.array() == array);
        records.all(|record| match *record {
            JournalRecord::Data { set_lba, sectors, .. } => (set_lba.get() | sectors.get()).is_multiple_of(block),
            JournalRecord::Redo { member_lba, sectors, .. } | JournalRecord::RedoRef { member_lba, sectors, .. } => {
                (member_lba.get() | sectors.get()).is_multiple_of(block)
            }
            _ => true,
        })
    }

    /// Load the set that is being loaded, or the next one, as far as possible; true if something has changed.
    pub(crate) fn pump_replay(&mut self, sets: &mut Sets, cache: &mut Cache, call: &mut Call) -> bool {
        if matches!(self.state, JournalState::Lost(_)) {
            self.give_replay_up(sets);
        }
        if self.replay.current.is_none() {
            // The tail must not move while a replay begins, because it might pass entries that the replay needs.
            if !self.is_live() || self.replay.queue.is_empty() || !self.is_tail_at_rest() {
                return false;
            }
            let next = self.replay.queue.iter().position(|set| may_be_loaded(sets, *set));
            let Some(set) = next.map(|place| self.replay.queue.remove(place)) else { return false };
            let Some(entry) = sets.find(set) else { return true };
            let array = entry.journal.index();
            self.replay.current = Some(Current { set, array, entry: 0, record: 0, done: Sectors::ZERO });
            self.replay.error = None;
        }
        let mut moved = false;
        while self.replay.reading.is_none() && call.actions().has_room() && self.load_next(sets, cache, call) {
            moved = true;
        }
        moved
    }

    /// One step for the set that is being loaded; false if it waits, or if none is being loaded.
    fn load_next(&mut self, sets: &mut Sets, cache: &mut Cache, call: &mut Call) -> bool {
        let Some(mut current) = self.replay.current else { return false };
        let failed = sets.get(current.set).has_failed() || self.replay.error.is_some();
        let Some(entry) = self.replay.entries.get(current.entry).filter(|_| !failed) else {
            // Copies from the window into lines may be under way.
            let ends = self.replay.copies == 0;
            if ends {
                self.end_load(sets, current, failed, call);
            }
            return ends;
        };
        let (sequence, payload) = (entry.sequence, entry.at + JOURNAL_ALIGN);
        let superblock = self.superblock.as_ref();
        let counts =
            |array| array == current.array && superblock.is_some_and(|superblock| superblock.counts(array, sequence));
        match entry.entry.records.get(current.record).copied() {
            None => (current.entry, current.record) = (current.entry + 1, 0),
            Some(JournalRecord::Data { array, set_lba, sectors, payload_at })
                if counts(array) && current.done < sectors =>
            {
                if !self.window.take(WindowUser::Replay) {
                    return self.refuse_if_silent();
                }
                let (at, left) = (payload + payload_at + current.done, sectors - current.done);
                // A piece that is in the window as a whole, and in one line.
                let piece = left.min(Sectors(LINE_SECTORS));
                let Some(from) = self.window_holds(at, piece) else {
                    if self.replay.copies == 0 {
                        self.read_window(at, piece, left, call);
                    }
                    return false;
                };
                let part = lines_of(set_lba + current.done, piece).next().expect("not empty");
                if !self.load_line((sets, cache), current.set, part, (sequence, from), call) {
                    self.replay.error = Some(TOO_MUCH);
                    return false;
                }
                let taken = part.2 - part.1;
                self.counters.replayed_sectors += taken;
                current.done += Sectors(taken);
            }
            Some(record) => {
                if let JournalRecord::Revoke { array, set_lba, sectors } = record {
                    if counts(array) {
                        self.revoke_lines(sets.get_mut(current.set), cache, current.set, (set_lba, sectors));
                    }
                }
                (current.record, current.done) = (current.record + 1, Sectors::ZERO);
            }
        }
        self.replay.current = Some(current);
        true
    }

    /// Revoke dirty data that was loaded.
    fn revoke_lines(&mut self, set: &mut Set, cache: &mut Cache, id: SetId, (at, len): (SetLba, Sectors)) {
        for (number, first, last) in lines_of(at, len) {
            let Some(line) = cache.find_line(id, number) else { continue };
            let entries = cache.revoke(line, Mask::range(first, last));
            entries.into_iter().filter(|sequence| *sequence != 0).for_each(|sequence| self.log.unpin(sequence));
        }
        // Dirty units without a dirty line are free.
        while cache.free_empty_unit(id) {
            set.dirty.forget_unit();
        }
    }

    /// Load a line, or a part of one, like a write of a host; false if the cache has no line.
    fn load_line(
        &mut self,
        (sets, cache): (&mut Sets, &mut Cache),
        set: SetId,
        (number, first, last): (u64, u64, u64),
        (sequence, from): (u64, PoolOffset),
        call: &mut Call,
    ) -> bool {
        let Some(line) = cache.line_for(set, number) else { return false };
        let (start, sectors) = unit_at(sets.get(set).shape(), SetLba(number * LINE_SECTORS + first));
        let unit = cache.dirty_unit_of(sets, (set, start), call.now(), call.limits().destage_zones);
        let mask = Mask::range(first, last);
        cache.log_line(&mut self.log, line, mask, None, sequence);
        cache.mark_dirty(line, mask, unit, sectors.get());
        self.replay.copies += 1;
        let (tag, len) = (Tag::new(TagKind::Journal, 1, 0), Sectors(last - first).bytes());
        call.actions().push_job(tag, JobKind::Copy, (cache.frame_of(line, first), from), len);
        true
    }

    /// The set is loaded, or cannot be started.
    fn end_load(&mut self, sets: &mut Sets, Current { set, array, .. }: Current, failed: bool, call: &Call) {
        self.replay.current = None;
        self.window.give_back(WindowUser::Replay);
        let error = self.replay.error.take();
        if failed {
            refuse_start(sets, set, error);
        } else if !self.note_backlog(sets.get_mut(set), (set, array), call.limits().rows_max) {
            self.begin_to_serve(sets, set, array, call.now());
        }
        sets.look();
    }

    /// Without a device of the journal its entries cannot be read.
    fn give_replay_up(&mut self, sets: &mut Sets) {
        const WHY: &str = "the journal has failed before it could be read: restart the server when it is there again";
        if self.replay.current.is_some() {
            self.replay.error.get_or_insert(WHY);
        }
        for id in self.replay.queue.drain(..) {
            let Some(set) = sets.find_mut(id) else { continue };
            set.journal.refuse(WHY);
            sets.look();
        }
    }

    /// The window is not free. If a hung device may never answer, the replay ends.
    fn refuse_if_silent(&mut self) -> bool {
        let is_silent = self.window.is_silent();
        if is_silent {
            self.replay.error = Some(SILENT);
        }
        is_silent
    }

    fn window_holds(&self, at: DriveLba, len: Sectors) -> Option<PoolOffset> {
        let (start, have) = self.window.holds?;
        let inside = at >= start && at + len <= start + have;
        inside.then(|| self.window_of(WindowUser::Replay) + (at - start).bytes())
    }

    /// Read a piece, and what follows as far as the window reaches.
    fn read_window(&mut self, at: DriveLba, piece: Sectors, left: Sectors, call: &mut Call) {
        let superblock = self.table();
        let block = superblock.block.sectors().get();
        let before = Sectors(at.get() % block);
        let start = DriveLba(at.get() - before.get());
        let end = superblock.ring_start + superblock.ring_sectors;
        let want = (left + before).get().next_multiple_of(block).max(self.buffer_sectors.get());
        let len = want.min(self.buffer_sectors.get()).min((end - start).get());
        self.window.holds = Some((start, Sectors(len)));
        self.replay.least = Sectors((piece + before).get().next_multiple_of(block));
        self.read_window_from(0, call);
    }

    fn read_window_from(&mut self, first: usize, call: &mut Call) {
        let Some((start, len)) = self.window.holds else { return };
        let least = self.replay.least;
        // What follows the piece may not be part of an entry, so that it was not checked whether it can be read.
        let (device, len) = match self.working_from(first) {
            None if len > least => (self.working_from(0), least),
            device => (device, len),
        };
        self.replay.reading = device;
        let Some(number) = device else {
            self.window.holds = None;
            self.replay.error = Some("the journal's entries for the array cannot be read");
            return;
        };
        self.window.holds = Some((start, len));
        self.read_into_window(WindowUser::Replay, number, (start, len), call);
    }

    /// The window was read, or the other device is asked. True if the device is to be dropped.
    pub(super) fn replay_read_ended(
        &mut self,
        command: &ChannelCommand,
        result: Result<(), CommandError>,
        call: &mut Call,
    ) -> bool {
        self.replay.reading = None;
        match result {
            Ok(()) => {}
            Err(CommandError::Timeout) => self.replay.error = Some(SILENT),
            Err(CommandError::Drive(_)) => self.read_window_from(command.journal_device() + 1, call),
        }
        result == Err(CommandError::Timeout)
    }
}

/// The set is not started: data that was loaded for it stays in the journal alone. Otherwise destage would write it
/// without a session, and try again and again what members refuse.
pub(crate) fn refuse_start(sets: &mut Sets, id: SetId, error: Option<&'static str>) {
    let set = sets.get_mut(id);
    set.dirty.forget_all();
    set.journal.refuse(error.unwrap_or("the array has failed while its journal was replayed"));
    sets.signal(Signal::NotStarted(id));
}

/// Is it durable on the members of a set which of them are missing? A missing member that comes back must not count
/// with the content from before the redos.
fn may_be_loaded(sets: &Sets, set: SetId) -> bool {
    let Some(set) = sets.find(set) else { return true };
    set.has_failed() || set.metadata.as_ref().is_none_or(Metadata::is_all_durable)
}

#[cfg(test)]
mod tests {
    use openraid_format::Uuid;

    use super::*;

    fn loaded(sequence: u64, tail: u64, position: u64) -> KeptEntry {
        let entry = FoundEntry { tail, position: RingSector(position), sectors: Sectors(8), records: Vec::new() };
        KeptEntry { sequence, at: DriveLba(1000 + position), entry }
    }

    #[test]
    fn bytes_of_an_earlier_entry_are_found_where_the_entry_is_now_unless_the_tail_had_passed_it() {
        let ring = JournalRing { journal: Uuid([1; 16]), start: DriveLba(1000), sectors: Sectors(32) };
        // The ring has 32 sectors: the fourth entry begins at its start again.
        let entries = [loaded(5, 5, 8), loaded(6, 5, 16), loaded(7, 6, 24), loaded(8, 6, 0)];
        let mut replay = Replay { entries: entries.into(), ..Replay::default() };
        let find = |replay: &Replay, by: usize, at| {
            let found = replay.find_referred(&ring, &replay.entries[by], RingSector(at));
            found.map(|source| (source.sequence, source.from.get()))
        };
        assert_eq!(find(&replay, 3, 27), Some((7, 1027)));
        assert_eq!(find(&replay, 3, 18), Some((6, 1018)));
        assert_eq!(find(&replay, 3, 9), None, "the tail had passed entry 5 when entry 8 was written");
        assert_eq!(find(&replay, 1, 9), Some((5, 1009)));
        replay.entry_moved(6, DriveLba(16));
        assert_eq!(find(&replay, 3, 18), Some((6, 18)));
    }
}
