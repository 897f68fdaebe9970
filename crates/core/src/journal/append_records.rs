//! Records are appended to the open group.

use crate::journal::log_entries::Entry;
use crate::journal::Journal;
use crate::reason::Reason;
use openraid_format::{
    journal_entry_sectors, EntryHeader, EntryKind, JournalRecord, LogPlace, RingSector, JOURNAL_RECORDS_MAX,
};
use openraid_units::{Instant, PoolOffset, Sectors, SetLba};

impl Journal {
    /// Check that an open group has room for `records` and `sectors` more, and open one if needed. The error is the
    /// reason to wait for. Host data must leave `spare` sectors of the ring free, redo records none.
    pub(crate) fn group_takes(&mut self, records: usize, sectors: u64, spare: u64) -> Result<(), Reason> {
        if !self.is_live() {
            return Err(Reason::WaitedForJournal);
        }
        self.ring_takes_group(spare)?;
        if !self.open.is_used() {
            self.open_group()?;
        }
        let open = &self.open;
        let fits = open.records.len() + records <= JOURNAL_RECORDS_MAX
            && open.payload.get() + sectors <= self.buffer_sectors.get();
        fits.then_some(()).ok_or(Reason::WaitedForJournalWrite)
    }

    /// Check that the ring and the table of entries have room for a group. If not, a round is requested.
    pub(crate) fn ring_takes_group(&mut self, spare: u64) -> Result<(), Reason> {
        let fits = self.free() >= self.group_room() + spare;
        let kept = if spare > 0 { self.entries_behind() } else { 0 };
        if fits && (self.open.is_used() || self.log.takes_group(kept)) {
            return Ok(());
        }
        self.note_short();
        Err(Reason::WaitedForJournal)
    }

    pub(super) fn open_group(&mut self) -> Result<(), Reason> {
        // A buffer that a hung drive may still read is not used again before the drive has answered.
        let mut buffers = self.buffers.iter().zip(self.held);
        let Some(buffer) = buffers.position(|(free, held)| *free && held == 0) else {
            return Err(Reason::WaitedForJournalWrite);
        };
        let ring = self.ring();
        let (mut position, mut wrap) = (self.head, None);
        if ring.to_end(position).get() < self.entry_max() {
            let sectors = ring.to_end(position).get();
            self.log.push(Entry { position: position.0, sectors, pins: 0, lines: 0, waiting: 0 });
            (position, wrap) = (RingSector(0), Some(position));
        }
        self.buffers[buffer] = false;
        let sequence = self.log.next();
        self.log.push(Entry { position: position.0, sectors: 0, pins: 0, lines: 0, waiting: 0 });
        let open = &mut self.open;
        (open.sequence, open.position, open.wrap, open.buffer) = (sequence, position, wrap, buffer);
        Ok(())
    }

    /// Append a part of a write, at most one line, to the open group, which has room for it: as a record of its own, or
    /// (not `first`) as more of the last record. Returns its place in the payload, and where its bytes are to be copied.
    pub(crate) fn append_data(
        &mut self,
        array: u8,
        (at, len): (SetLba, Sectors),
        first: bool,
        now: Instant,
    ) -> (Sectors, PoolOffset) {
        let open = &mut self.open;
        let payload_at = open.payload;
        match open.records.last_mut() {
            Some(JournalRecord::Data { sectors, .. }) if !first => *sectors += len,
            _ => {
                open.records.push(JournalRecord::Data { array, set_lba: at, sectors: len, payload_at });
                self.counters.data_records += 1;
            }
        }
        open.payload += len;
        self.log.add_lines(open.sequence, 1);
        self.counters.data_sectors += len.get();
        self.last_append = now;
        (payload_at, self.buffer(self.open.buffer) + payload_at.bytes())
    }

    /// Append a record to the open group, which has room for it.
    pub(super) fn append_record(&mut self, record: JournalRecord, now: Instant) {
        self.open.records.push(record);
        self.counters.redo_records += 1;
        self.last_append = now;
    }

    /// Take room in the payload of the open group. Returns its place there and in the pool.
    pub(super) fn append_payload(&mut self, len: Sectors) -> (Sectors, PoolOffset) {
        let payload_at = self.open.payload;
        self.open.payload += len;
        self.counters.redo_sectors += len.get();
        (payload_at, self.buffer(self.open.buffer) + payload_at.bytes())
    }

    /// The present number of bytes of the open group's entry is final: it is the flying group now. Returns its length in the
    /// ring. False if it is empty, or if the group before it is not durable.
    pub(super) fn seal(&mut self) -> Option<Sectors> {
        if !self.is_live() || !self.open.is_used() || !self.open.has_records() || self.flying.is_used() {
            return None;
        }
        core::mem::swap(&mut self.open, &mut self.flying);
        let (sequence, position) = (self.flying.sequence, self.flying.position);
        let sectors = journal_entry_sectors(self.flying.payload);
        self.log.seal(sequence, position.0, sectors.get());
        self.head = self.ring().behind(position, sectors);
        self.counters.entries += 1;
        self.counters.sectors += sectors.get();
        Some(sectors)
    }

    /// The header of the flying group's entry, whose payload has this checksum.
    pub(super) fn entry_header(&self, payload_crc: u32) -> EntryHeader {
        let flying = &self.flying;
        EntryHeader {
            payload: flying.payload,
            payload_crc,
            ..self.header_at(flying.sequence, flying.position, EntryKind::Commit)
        }
    }

    /// The header of the filler before the flying group's entry, if there is one.
    pub(super) fn filler_header(&self) -> Option<EntryHeader> {
        Some(self.header_at(self.flying.sequence - 1, self.flying.wrap?, EntryKind::Wrap))
    }

    /// A header without payload.
    pub(super) fn header_at(&self, sequence: u64, position: RingSector, kind: EntryKind) -> EntryHeader {
        EntryHeader {
            sequence,
            epoch: self.table().epoch,
            position,
            promised: self.durable,
            tail: self.tail_place(sequence, position),
            kind,
            payload: Sectors::ZERO,
            payload_crc: 0,
        }
    }

    /// The first entry that is needed, as a header at this position states it. It is never ahead of the tail in the durable
    /// superblock: only the superblock says which entries are kept outside of the ring and which count for which array.
    pub(super) fn tail_place(&self, sequence: u64, position: RingSector) -> LogPlace {
        let tail = self.log.first;
        if tail >= sequence {
            return LogPlace { sequence, position };
        }
        LogPlace { sequence: tail, position: RingSector(self.log.get(tail).position) }
    }

    /// Is the flying group written on every device, and may it count? If a device was dropped or joins, its log could be
    /// taken for the right one until the superblocks of the others are durable.
    pub(super) fn may_land(&self) -> bool {
        self.flying.header_out && !self.is_epoch_pending()
    }

    /// The flying group is durable. Returns its entry. The pieces and operations that wait for it are still to be called.
    pub(super) fn land(&mut self) -> u64 {
        self.durable = self.flying.sequence;
        self.buffers[self.flying.buffer] = true;
        self.flying.reset();
        self.durable
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const NOW: Instant = Instant::ZERO;
    const RECORD: JournalRecord = JournalRecord::Revoke { array: 0, set_lba: SetLba(0), sectors: Sectors(8) };

    fn empty_journal() -> Journal {
        let mut journal = Journal::of_ring(Sectors(8192));
        journal.superblock.as_mut().unwrap().epoch = 3;
        journal
    }

    fn landed(journal: &mut Journal) -> (u64, Vec<u32>, Vec<u32>) {
        journal.flying.header_out = true;
        assert!(journal.may_land());
        let flying = &mut journal.flying;
        let (pieces, ops) = (core::mem::take(&mut flying.pieces), core::mem::take(&mut flying.ops));
        (journal.land(), pieces, ops)
    }

    #[test]
    fn parts_of_one_write_are_one_record_and_their_payload_is_in_order() {
        let mut journal = empty_journal();
        assert_eq!(journal.group_takes(1, 16, 0), Ok(()));
        let base = journal.buffer(journal.open.buffer);
        let at = SetLba(64);
        assert_eq!(journal.append_data(5, (at, Sectors(8)), true, NOW), (Sectors(0), base));
        let second = journal.append_data(5, (at + Sectors(8), Sectors(8)), false, NOW);
        assert_eq!(second, (Sectors(8), base + Sectors(8).bytes()));
        journal.append_record(RECORD, NOW);
        assert_eq!(journal.append_payload(Sectors(3)).0, Sectors(16));
        // It follows another record, so it begins a record of its own.
        journal.append_data(5, (at + Sectors(16), Sectors(8)), false, NOW);
        let data = |set_lba, sectors, payload_at| JournalRecord::Data { array: 5, set_lba, sectors, payload_at };
        let records = [data(at, Sectors(16), Sectors(0)), RECORD, data(at + Sectors(16), Sectors(8), Sectors(19))];
        assert_eq!(journal.open.records, records);
        assert_eq!((journal.open.payload, journal.log.lines), (Sectors(27), 3));
        let counters = journal.counters;
        assert_eq!((counters.data_records, counters.data_sectors), (2, 24));
        assert_eq!((counters.redo_records, counters.redo_sectors), (1, 3));
    }

    #[test]
    fn one_group_is_written_at_a_time_and_the_head_moves_by_its_length() {
        let mut journal = empty_journal();
        assert_eq!(journal.seal(), None, "there is none");
        assert_eq!(journal.group_takes(1, 20, 0), Ok(()));
        assert_eq!(journal.seal(), None, "it is empty");
        journal.append_record(RECORD, NOW);
        journal.append_payload(Sectors(20));
        journal.open.pieces.push(4);
        journal.open.ops.push(9);
        // A header of 8 sectors, and 20 sectors of payload in blocks of 8.
        assert_eq!((journal.seal(), journal.head, journal.log.used), (Some(Sectors(32)), RingSector(32), 32));
        assert_eq!(journal.group_takes(1, 0, 0), Ok(()));
        journal.append_record(RECORD, NOW);
        assert_eq!(journal.seal(), None, "the one before it is not durable");
        let header = journal.entry_header(77);
        assert_eq!((header.sequence, header.epoch, header.position), (1, 3, RingSector(0)));
        assert_eq!((header.promised, header.payload, header.payload_crc), (0, Sectors(20), 77));
        assert_eq!(header.tail, LogPlace { sequence: 1, position: RingSector(0) }, "itself");
        assert!(!journal.may_land(), "its header was not written");
        assert_eq!(landed(&mut journal), (1, alloc::vec![4], alloc::vec![9]));
        assert_eq!((journal.durable, journal.flying.is_used()), (1, false));
        assert_eq!(journal.seal(), Some(Sectors(8)));
        let header = journal.entry_header(0);
        assert_eq!((header.promised, header.position), (1, RingSector(32)));
        assert_eq!(
            header.tail,
            LogPlace { sequence: 1, position: RingSector(0) },
            "the first one is still in the ring"
        );
        assert_eq!(journal.filler_header(), None);
    }

    #[test]
    fn an_entry_that_would_cross_the_end_of_the_ring_has_a_filler_before_it() {
        let mut journal = empty_journal();
        // The largest entry has 136 sectors.
        for (head, wraps) in [(8192 - 136, false), (8192 - 128, true)] {
            journal.head = RingSector(head);
            let (next, used) = (journal.log.next(), journal.log.used);
            assert_eq!(journal.group_takes(1, 0, 0), Ok(()));
            journal.append_record(RECORD, NOW);
            let filler = u64::from(wraps);
            assert_eq!((journal.open.sequence, journal.open.first()), (next + filler, next));
            assert_eq!(journal.log.used - used, filler * 128);
            journal.seal();
            let header = journal.filler_header();
            assert_eq!(
                header.as_ref().map(|filler| (filler.sequence, filler.position)),
                wraps.then_some((next, RingSector(head)))
            );
            let at = if wraps { 0 } else { head };
            assert_eq!((journal.flying.position, journal.head), (RingSector(at), RingSector((at + 8) % 8192)));
            landed(&mut journal);
        }
    }

    #[test]
    fn a_group_takes_its_payload_and_its_records_and_no_more() {
        let mut journal = empty_journal();
        let full = Err(Reason::WaitedForJournalWrite);
        assert_eq!(journal.group_takes(JOURNAL_RECORDS_MAX, 128, 0), Ok(()));
        assert_eq!([journal.group_takes(1, 129, 0), journal.group_takes(JOURNAL_RECORDS_MAX + 1, 0, 0)], [full; 2]);
        journal.append_record(RECORD, NOW);
        journal.append_payload(Sectors(100));
        assert_eq!([journal.group_takes(1, 28, 0), journal.group_takes(1, 29, 0)], [Ok(()), full]);
        assert_eq!(journal.group_takes(JOURNAL_RECORDS_MAX, 0, 0), full);
        assert!(!journal.is_short(), "the ring has room");
    }

    #[test]
    fn no_group_opens_in_a_buffer_that_is_in_use_or_that_a_hung_drive_may_read() {
        let mut journal = empty_journal();
        journal.give_up_buffer(0);
        journal.buffers[1] = false;
        assert_eq!(journal.group_takes(1, 8, 0), Ok(()));
        assert_eq!(journal.open.buffer, 2);
        let mut journal = empty_journal();
        (0..3).for_each(|buffer| journal.give_up_buffer(buffer));
        assert_eq!(journal.group_takes(1, 8, 0), Err(Reason::WaitedForJournalWrite));
        journal.buffer_came_back(1);
        assert_eq!((journal.group_takes(1, 8, 0), journal.open.buffer), (Ok(()), 1));
    }

    #[test]
    fn host_data_leaves_spare_room_and_a_lack_of_room_asks_for_a_round() {
        let mut journal = empty_journal();
        // 280 sectors are for the open group.
        journal.log.push(Entry { position: 0, sectors: 8192 - 280 - 100, pins: 0, lines: 0, waiting: 0 });
        assert_eq!((journal.ring_takes_group(100), journal.is_short()), (Ok(()), false));
        assert_eq!(journal.group_takes(1, 8, 101), Err(Reason::WaitedForJournal));
        assert!(journal.is_short());
        assert_eq!(journal.group_takes(1, 8, 0), Ok(()), "redo records may use it");
        let mut journal = empty_journal();
        journal.fill_table();
        assert_eq!((journal.ring_takes_group(1), journal.ring_takes_group(0)), (Err(Reason::WaitedForJournal), Ok(())));
        journal.state = crate::journal::JournalState::Closing;
        assert_eq!(journal.group_takes(1, 8, 0), Err(Reason::WaitedForJournal));
    }
}
