//! Replay: before a set takes requests, its acknowledged data is loaded from the log as dirty lines, entry by entry, record
//! by record. The redo records that its members lack are noted, and written while the set serves: see
//! [`redo_backlog`](super::redo_backlog).
//!
//! Replay can start again at any time, because lines are loaded in the order of the log. While a set is loaded no data is
//! destaged, so that data which a later record revokes was not written before.

use alloc::vec::Vec;
use openraid_format::{JournalRecord, JournalRing, JournalSuperblock, RingSector, JOURNAL_ALIGN};
use openraid_units::{BlockSize, DriveLba, PoolOffset, Sectors, SetId, SetLba, Tag, TagKind};

use super::attach::{FoundEntry, FoundJournal};
use super::devices::Io;
use super::log::Log;
use super::redo_backlog::{Newest, RedoBacklog, Source};
use super::window::{WindowUser, SILENT};
use super::{Journal, JournalState};
use crate::actions::{Actions, JobColumn, JobKind, ParityJob};
use crate::array::set::{Life, Set};
use crate::cache::lines::{lines_of, Mask, LINE_SECTORS};
use crate::cache::{unit_at, unit_extent};
use crate::controller::{CommandError, Controller};
use crate::io::command::Command;
use crate::limits::FRAME_BYTES;

#[derive(Clone, Debug)]
struct Loaded {
    sequence: u64,
    /// The first entry that was needed when it was written.
    tail: u64,
    /// Its position in the ring when it was written, and its length.
    position: RingSector,
    sectors: Sectors,
    /// Its place now.
    at: DriveLba,
    records: Vec<JournalRecord>,
}

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
    entries: Vec<Loaded>,
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
        let loaded = |sequence, at, entry: &FoundEntry| Loaded {
            sequence,
            tail: entry.tail,
            position: entry.position,
            sectors: entry.sectors,
            at,
            records: entry.records.clone(),
        };
        let kept = found.kept.iter().map(|kept| loaded(kept.sequence, kept.at, &kept.entry));
        let entries = (found.tail.sequence..).zip(&found.entries);
        // An entry that was copied may still be in the ring.
        let first = found.kept.last().map_or(0, |last| last.sequence + 1);
        let entries = entries.filter(|(sequence, _)| *sequence >= first);
        self.entries = kept.chain(entries.map(|(n, entry)| loaded(n, ring.drive_lba(entry.position), entry))).collect();
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
    fn find_referred(&self, ring: &JournalRing, by: &Loaded, at: RingSector) -> Option<Source> {
        let from = self.entries.partition_point(|entry| entry.sequence < by.tail);
        let to = self.entries.partition_point(|entry| entry.sequence < by.sequence);
        let needed = &self.entries[from..to];
        let first = needed.first()?.position;
        let distance = ring.distance(first, at);
        let behind = needed.partition_point(|entry| ring.distance(first, entry.position) <= distance);
        let entry = &needed[behind - 1];
        let within = ring.distance(entry.position, at);
        (within < entry.sectors).then(|| Source { from: entry.at + within, sequence: entry.sequence })
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
    pub(super) fn newest(&self, superblock: &JournalSuperblock, log: &Log, array: u8) -> Newest {
        let ring = superblock.ring();
        let mut newest = Newest::default();
        for entry in self.entries.iter().rev().filter(|entry| superblock.counts(array, entry.sequence)) {
            let own = || entry.records.iter().rev().filter(|record| record.array() == array);
            let referred = |record: &JournalRecord| match *record {
                JournalRecord::RedoRef { at, .. } => self.find_referred(&ring, entry, at),
                _ => None,
            };
            for record in own() {
                match *record {
                    JournalRecord::Redo { slot, member_lba, sectors, payload_at, .. } => {
                        let source = Source { from: entry.at + JOURNAL_ALIGN + payload_at, sequence: entry.sequence };
                        newest.add(slot, (member_lba, sectors), Some(source));
                    }
                    JournalRecord::RedoRef { slot, member_lba, sectors, .. } => {
                        let Some(source) = referred(record) else { continue };
                        let held = if log.holds(source.sequence) { source.sequence } else { entry.sequence };
                        newest.add(slot, (member_lba, sectors), Some(Source { sequence: held, ..source }));
                    }
                    _ => {}
                }
            }
            for record in own() {
                match *record {
                    JournalRecord::RedoRef { slot, member_lba, sectors, .. } if referred(record).is_none() => {
                        newest.add(slot, (member_lba, sectors), None);
                    }
                    JournalRecord::Outdated { slot, member_lba, sectors, .. } => {
                        newest.add(slot, (member_lba, sectors), None);
                    }
                    _ => {}
                }
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

    /// Can all records of an array be written in blocks of this size?
    pub(crate) fn is_in_blocks(&self, array: u8, block: BlockSize) -> bool {
        let block = block.sectors().get();
        let mut records = self.entries.iter().flat_map(|entry| &entry.records).filter(|own| own.array() == array);
        records.all(|record| match *record {
            JournalRecord::Data { set_lba, sectors, .. } => (set_lba.get() | sectors.get()).is_multiple_of(block),
            JournalRecord::Redo { member_lba, sectors, .. } | JournalRecord::RedoRef { member_lba, sectors, .. } => {
                (member_lba.get() | sectors.get()).is_multiple_of(block)
            }
            _ => true,
        })
    }

    /// A set waits for its part of the log.
    pub(crate) fn want(&mut self, set: SetId) {
        self.queue.push(set);
    }
}

/// The next need of a record.
enum Need {
    /// Nothing: it is done.
    Done,
    /// These sectors of the device, from the window.
    Payload(DriveLba, Sectors),
}

impl Controller {
    /// Advance the loading of sets; true if something has changed.
    pub(crate) fn pump_replay(&mut self, actions: &mut Actions) -> bool {
        if matches!(self.journal.state, JournalState::Lost(_)) {
            self.give_replay_up();
        }
        self.pump_load(actions)
    }

    fn pump_load(&mut self, actions: &mut Actions) -> bool {
        if self.journal.replay.current.is_none() {
            // The tail must not move while a replay begins, because it might pass entries that the replay needs.
            if !self.journal.is_live() || self.journal.replay.queue.is_empty() || !self.journal.is_tail_at_rest() {
                return false;
            }
            let Some(place) = self.journal.replay.queue.iter().position(|set| self.may_replay(*set)) else {
                return false;
            };
            let set = self.journal.replay.queue.remove(place);
            let Some(entry) = self.sets.find(set) else { return true };
            let array = entry.journal.index();
            let current = Current { set, array, entry: 0, record: 0, done: Sectors::ZERO };
            (self.journal.replay.current, self.journal.replay.error) = (Some(current), None);
        }
        let mut moved = false;
        while self.journal.replay.reading.is_none() && actions.has_room() && self.replay_step(actions) {
            moved = true;
        }
        moved
    }

    /// Is it durable on the members of a set which of them are missing? A missing member that comes back must not count
    /// with the content from before the redos.
    fn may_replay(&self, set: SetId) -> bool {
        let Some(set) = self.sets.find(set) else { return true };
        set.has_failed() || set.metadata.as_ref().is_none_or(crate::array::metadata::Metadata::is_all_durable)
    }

    /// Without a device of the journal its entries cannot be read.
    fn give_replay_up(&mut self) {
        const WHY: &str = "the journal has failed before it could be read: restart the server when it is there again";
        if self.journal.replay.current.is_some() {
            self.journal.replay.error.get_or_insert(WHY);
        }
        for id in core::mem::take(&mut self.journal.replay.queue) {
            let Some(set) = self.sets.find_mut(id) else { continue };
            set.journal.refuse(WHY);
            self.sets.look();
        }
    }

    /// One step for the set that is being loaded; false if it has to wait.
    fn replay_step(&mut self, actions: &mut Actions) -> bool {
        let Some(mut current) = self.journal.replay.current else { return false };
        let failed = self.sets.get(current.set).has_failed() || self.journal.replay.error.is_some();
        let entries = self.journal.replay.entries.len();
        if current.entry >= entries || failed {
            // Copies from the window into lines may be under way.
            return self.journal.replay.copies == 0 && self.end_load(current, failed);
        }
        let loaded = &self.journal.replay.entries[current.entry];
        let sequence = loaded.sequence;
        let record = loaded.records.get(current.record).copied();
        let counts = record.is_some_and(|r| {
            r.array() == current.array
                && self.journal.superblock.as_ref().is_some_and(|s| s.counts(r.array(), sequence))
        });
        let Some(record) = record.filter(|_| counts) else {
            if current.record >= self.journal.replay.entries[current.entry].records.len() {
                (current.entry, current.record) = (current.entry + 1, 0);
            } else {
                current.record += 1;
            }
            self.journal.replay.current = Some(current);
            return true;
        };
        let (need, left) = self.journal.replay_need(&record, current.entry, current.done);
        if let Need::Payload(at, len) = need {
            if !self.journal.window.take(WindowUser::Replay) {
                return self.journal.end_if_silent();
            }
            let Some(from) = self.journal.window_holds(at, len) else {
                if self.journal.replay.copies == 0 {
                    self.journal.read_window(at, len, left, &mut Io::new(&mut self.channels, self.now, actions));
                }
                return false;
            };
            let Some(taken) = self.replay_record(&record, sequence, current, (from, len), actions) else {
                return false;
            };
            current.done += taken;
        } else {
            self.replay_plain(&record, current.set);
            (current.record, current.done) = (current.record + 1, Sectors::ZERO);
        }
        self.journal.replay.current = Some(current);
        true
    }

    /// Apply a record without payload.
    fn replay_plain(&mut self, record: &JournalRecord, set: SetId) {
        if let JournalRecord::Revoke { set_lba, sectors, .. } = *record {
            self.revoke_lines(set, set_lba, sectors);
        }
    }

    fn revoke_lines(&mut self, set: SetId, at: SetLba, len: Sectors) {
        for (number, first, last) in lines_of(at, len) {
            let Some(line) = self.cache.find_line(set, number) else { continue };
            let [one, other] = self.cache.revoke(line, Mask::range(first, last));
            for sequence in [one, other] {
                if sequence != 0 {
                    self.journal.log.unpin(sequence);
                }
            }
        }
        self.free_empty_units(set);
    }

    /// Free dirty units without a dirty line.
    fn free_empty_units(&mut self, set: SetId) {
        while self.cache.free_empty_unit(set) {
            self.sets.get_mut(set).dirty.forget_unit();
        }
    }

    /// Load a piece of a record. Returns its sectors, or `None` if it has to wait.
    fn replay_record(
        &mut self,
        record: &JournalRecord,
        sequence: u64,
        current: Current,
        (from, len): (PoolOffset, Sectors),
        actions: &mut Actions,
    ) -> Option<Sectors> {
        let JournalRecord::Data { set_lba, .. } = *record else { unreachable!("the others have no bytes for hosts") };
        let (number, first, last) = lines_of(set_lba + current.done, len).next().expect("not empty");
        let sectors = Sectors(last - first);
        if !self.load_line(current.set, (number, first, last), sequence, from, actions) {
            self.journal.replay.error =
                Some("the journal holds more for the array than the cache can take; give the server a larger --cache, no less than it had");
            return None;
        }
        self.journal.counters.replayed_sectors += sectors.get();
        Some(sectors)
    }

    /// Load a line, or a part of one, like a write of a host; false if the cache has no line.
    fn load_line(
        &mut self,
        set: SetId,
        (number, first, last): (u64, u64, u64),
        sequence: u64,
        from: PoolOffset,
        actions: &mut Actions,
    ) -> bool {
        let Some(line) = self.cache.line_for(set, number) else { return false };
        let at = SetLba(number * LINE_SECTORS + first);
        let geometry = self.sets.get(set).geometry();
        let (unit_number, _) = unit_at(geometry, at);
        let (_, unit_sectors) = unit_extent(geometry, unit_number);
        let Self { cache, sets, .. } = self;
        let unit = cache.dirty_unit_of(sets, (set, unit_number), self.now, self.limits.destage_zones);
        let mask = Mask::range(first, last);
        self.cache.log_line(&mut self.journal.log, line, mask, None, sequence);
        self.cache.mark_dirty(line, mask, unit, unit_sectors.get());
        let columns_start = u32::try_from(actions.columns.len()).expect("the arena is small");
        self.journal.replay.copies += 1;
        actions.columns.push(JobColumn { index: 0, at: self.cache.frame_of(line, first), old: from });
        actions.jobs.push(ParityJob {
            tag: Tag::new(TagKind::Journal, 1, 0),
            kind: JobKind::Copy,
            len: u32::try_from(Sectors(last - first).bytes().get().min(FRAME_BYTES)).expect("a line"),
            columns_start,
            columns_len: 1,
            p: None,
            q: None,
        });
        true
    }

    /// A copy out of the window is done.
    pub(crate) fn on_replay_copy(&mut self) {
        self.journal.replay.copies -= 1;
        self.sets.look();
    }

    fn end_load(&mut self, current: Current, failed: bool) -> bool {
        let Current { set, array, .. } = current;
        self.journal.replay.current = None;
        self.sets.look();
        self.journal.window.give_back(WindowUser::Replay);
        let error = self.journal.replay.error.take();
        if failed {
            self.refuse_start(set, error);
        } else if !self.note_backlog(set, array) {
            self.begin_to_serve(set, array);
        }
        true
    }

    /// The set takes requests from now on. Its lines and redos pin the entries that it still needs.
    pub(crate) fn begin_to_serve(&mut self, id: SetId, array: u8) {
        let set = self.sets.get_mut(id);
        // The set may already be stopping.
        if set.life() == Life::Starting {
            set.enter(Life::Running);
        }
        self.journal.log.end_array_entries(array);
        self.sets.resume_session(id, self.now);
        self.wake_all_waiters();
    }

    pub(crate) fn refuse_start(&mut self, id: SetId, error: Option<&'static str>) {
        self.forget_loaded(id);
        let why = error.unwrap_or("the array has failed while its journal was replayed");
        self.sets.get_mut(id).journal.refuse(why);
    }

    /// The set is not started: data that was loaded for it stays in the journal alone. Otherwise destage would write it
    /// without a session, and try again and again what members refuse.
    fn forget_loaded(&mut self, id: SetId) {
        let log = &mut self.journal.log;
        self.cache.forget_set(id, |sequence| log.unpin_if_held(sequence));
        self.sets.get_mut(id).dirty.forget_all();
        self.requests.wake_all();
    }
}

impl Journal {
    /// What the rest of a record needs, and how much of the log may be read with it.
    fn replay_need(&self, record: &JournalRecord, entry: usize, done: Sectors) -> (Need, Sectors) {
        let JournalRecord::Data { payload_at, sectors, .. } = *record else { return (Need::Done, Sectors::ZERO) };
        if done >= sectors {
            return (Need::Done, Sectors::ZERO);
        }
        let at = self.replay.entries[entry].at + JOURNAL_ALIGN + payload_at;
        let left = sectors - done;
        // A piece that is in the window as a whole, and in one line.
        let piece = left.min(Sectors(LINE_SECTORS));
        (Need::Payload(at + done, piece), left)
    }

    fn window_holds(&self, at: DriveLba, len: Sectors) -> Option<PoolOffset> {
        let (start, have) = self.window.holds?;
        let inside = at >= start && at + len <= start + have;
        inside.then(|| self.window_of(WindowUser::Replay) + (at - start).bytes())
    }

    /// The window is not free. True if that ends the replay, because a hung device may never answer.
    fn end_if_silent(&mut self) -> bool {
        let silent = self.window.is_silent();
        if silent {
            self.replay.error = Some(SILENT);
        }
        silent
    }

    /// Read a piece, and what follows as far as the window reaches.
    fn read_window(&mut self, at: DriveLba, piece: Sectors, left: Sectors, io: &mut Io) {
        let superblock = self.superblock.as_ref().expect("it is live");
        let block = superblock.block.sectors().get();
        let before = Sectors(at.get() % block);
        let start = DriveLba(at.get() - before.get());
        let end = superblock.ring_start + superblock.ring_sectors;
        let want = (left + before).get().next_multiple_of(block).max(self.buffer_sectors.get());
        let len = want.min(self.buffer_sectors.get()).min((end - start).get());
        self.window.holds = Some((start, Sectors(len)));
        self.replay.least = Sectors((piece + before).get().next_multiple_of(block));
        self.read_window_from(0, io);
    }

    fn read_window_from(&mut self, first: usize, io: &mut Io) {
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
        self.read_into_window(WindowUser::Replay, number, (start, len), io);
    }

    /// The window was read, or the other device is asked. True if the device is to be dropped.
    pub(super) fn replay_read_ended(
        &mut self,
        command: &Command,
        result: Result<(), CommandError>,
        io: &mut Io,
    ) -> bool {
        self.replay.reading = None;
        match result {
            Ok(()) => {}
            Err(CommandError::Timeout) => self.replay.error = Some(SILENT),
            Err(CommandError::Drive(_)) => self.read_window_from(command.journal_device() + 1, io),
        }
        result == Err(CommandError::Timeout)
    }
}

impl Set {
    /// Does it wait for its part of the log?
    pub(crate) fn is_replaying(&self) -> bool {
        self.journal.is_replaying()
    }
}

#[cfg(test)]
mod tests {
    use openraid_format::Uuid;

    use super::*;

    fn loaded(sequence: u64, tail: u64, position: u64) -> Loaded {
        let at = DriveLba(1000 + position);
        Loaded { sequence, tail, position: RingSector(position), sectors: Sectors(8), at, records: Vec::new() }
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
