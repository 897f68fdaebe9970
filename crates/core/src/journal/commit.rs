//! Group commit: records collect while the group before them is being written. Then they are written together.
//!
//! ```text
//!  open:    records and payload collect          (Collecting)
//!  flying:  checksum of the payload -> header and payload written -> durable -> replies
//! ```
//!
//! One group is written at a time, because an entry counts only if all entries before it do. Header and payload are written
//! at the same time; the checksum in the header shows whether both are complete.

use alloc::vec::Vec;
use openraid_format::{
    journal_entry_sectors, EntryHeader, EntryKind, JournalRecord, LogPlace, RingSector, JOURNAL_ALIGN,
    JOURNAL_BLOCK_BYTES, JOURNAL_RECORDS_MAX,
};
use openraid_units::{DriveLba, PoolOffset, Sectors, SetId, SetLba, Tag, TagKind};

use super::log::Entry;
use crate::actions::{Actions, Data, DriveOp, IoClass, JobColumn, JobKind, MetadataRange, ParityJob};
use crate::controller::{CommandError, Controller};
use crate::io::command::{Command, Hold, Owner};
use crate::reason::Reason;
use crate::requests::piece::PieceEntry;
use crate::steps::What;

/// The purpose of a command of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JournalWork {
    /// A read, for this user.
    Read(JournalRead),
    /// A write, which must be durable when it ends.
    Write(JournalWrite),
}

/// A read from a device of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JournalRead {
    /// Payload for replay.
    Replay,
    /// Payload for this operation, which writes it to a member.
    Redo(u32),
    /// A piece of an entry that is copied out of the ring.
    Spill,
    /// A piece of the log for a device that joins.
    Join,
}

/// A write to a device of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JournalWrite {
    /// Payload or header of the group that is being written.
    Group,
    /// A superblock.
    Superblock,
    /// A piece of an entry that is copied out of the ring.
    Spill,
    /// A piece of the log, or a superblock, for a device that joins.
    Join,
}

/// A group of records: one entry.
#[derive(Debug)]
pub(crate) struct Group {
    /// Number of its entry; 0 if there is no group.
    pub(super) sequence: u64,
    /// Position of its header in the ring.
    pub(super) position: RingSector,
    /// Position of a filler before it, if the entry would have crossed the end of the ring.
    wrap: Option<RingSector>,
    /// The buffer with its payload.
    buffer: usize,
    pub(super) records: Vec<JournalRecord>,
    pub(super) payload: Sectors,
    /// Pieces and operations that wait until it is durable.
    pub(super) pieces: Vec<u32>,
    pub(super) ops: Vec<u32>,
    /// Commands under way, and whether the header was issued.
    pending: u32,
    header_out: bool,
}

impl Group {
    pub(crate) fn new(pieces: u32, ops: u32) -> Self {
        Self {
            sequence: 0,
            position: RingSector(0),
            wrap: None,
            buffer: 0,
            records: Vec::with_capacity(JOURNAL_RECORDS_MAX),
            payload: Sectors::ZERO,
            pieces: Vec::with_capacity(pieces as usize),
            ops: Vec::with_capacity(ops as usize),
            pending: 0,
            header_out: false,
        }
    }

    pub(crate) fn is_used(&self) -> bool {
        self.sequence != 0
    }

    /// Number of the first entry that is written with it: its filler's, or its own.
    pub(crate) fn first(&self) -> u64 {
        self.sequence - u64::from(self.wrap.is_some())
    }

    fn reset(&mut self) {
        self.records.clear();
        (self.sequence, self.payload, self.pending) = (0, Sectors::ZERO, 0);
        (self.header_out, self.wrap) = (false, None);
    }
}

impl Controller {
    /// Check that an open group has room for `records` and `sectors` more, and open one if needed. The error is the
    /// reason to wait for. Host data must leave `spare` sectors of the ring free, redo records none.
    pub(crate) fn group_takes(&mut self, records: usize, sectors: u64, spare: u64) -> Result<(), Reason> {
        if !self.journal.is_live() {
            return Err(Reason::WaitedForJournal);
        }
        self.ring_takes_group(spare)?;
        if !self.journal.open.is_used() {
            self.open_group()?;
        }
        let open = &self.journal.open;
        let fits = open.records.len() + records <= JOURNAL_RECORDS_MAX
            && open.payload.get() + sectors <= self.journal.buffer_sectors.get();
        fits.then_some(()).ok_or(Reason::WaitedForJournalWrite)
    }

    /// Check that the ring and the table of entries have room for a group. If not, a round is requested.
    pub(crate) fn ring_takes_group(&mut self, spare: u64) -> Result<(), Reason> {
        let journal = &mut self.journal;
        let fits = journal.free() >= journal.group_room() + spare;
        let takes = fits && (journal.open.is_used() || journal.log.takes_group(spare > 0));
        journal.short |= !takes;
        takes.then_some(()).ok_or(Reason::WaitedForJournal)
    }

    fn open_group(&mut self) -> Result<(), Reason> {
        let journal = &mut self.journal;
        // A buffer that a hung drive may still read is not used again before the drive has answered.
        let mut buffers = journal.buffers.iter().zip(journal.held);
        let Some(buffer) = buffers.position(|(free, held)| *free && held == 0) else {
            return Err(Reason::WaitedForJournalWrite);
        };
        let ring = journal.ring();
        let (mut position, mut wrap) = (journal.head, None);
        if ring.to_end(position).get() < journal.entry_max() {
            let sectors = ring.to_end(position).get();
            journal.log.push(Entry { position: position.0, sectors, pins: 0, lines: 0, waiting: 0 });
            (position, wrap) = (RingSector(0), Some(position));
        }
        journal.buffers[buffer] = false;
        let sequence = journal.log.next();
        journal.log.push(Entry { position: position.0, sectors: 0, pins: 0, lines: 0, waiting: 0 });
        let open = &mut journal.open;
        (open.sequence, open.position, open.wrap, open.buffer) = (sequence, position, wrap, buffer);
        Ok(())
    }

    /// Append a part of a write, at most one line, to the open group, which has room for it: as a record of its own, or
    /// (not `first`) as more of the last record. Returns its place in the payload, and where its bytes are to be copied.
    pub(crate) fn append_data(
        &mut self,
        set: SetId,
        at: SetLba,
        len: Sectors,
        piece: u32,
        first: bool,
    ) -> (Sectors, PoolOffset) {
        let array = self.sets.get(set).journal.index();
        let journal = &mut self.journal;
        let open = &mut journal.open;
        let payload_at = open.payload;
        match open.records.last_mut() {
            Some(JournalRecord::Data { sectors, .. }) if !first => *sectors += len,
            _ => {
                open.records.push(JournalRecord::Data { array, set_lba: at, sectors: len, payload_at });
                journal.counters.data_records += 1;
            }
        }
        open.payload += len;
        if self.requests.piece_mut(piece).wait_for_entry(PieceEntry::Waits(open.sequence)) {
            self.requests.piece_mut(piece).begin_op();
            open.pieces.push(piece);
        }
        let sequence = open.sequence;
        journal.log.add_lines(sequence, 1);
        journal.counters.data_sectors += len.get();
        journal.last_append = self.now;
        (payload_at, journal.buffer(journal.open.buffer) + payload_at.bytes())
    }

    /// Append a record to the open group, which has room for it.
    pub(crate) fn append_record(&mut self, record: JournalRecord) {
        self.journal.open.records.push(record);
        self.journal.counters.redo_records += 1;
        self.journal.last_append = self.now;
    }

    /// Take room in the payload of the open group. Returns its place there and in the pool.
    pub(crate) fn append_payload(&mut self, len: Sectors) -> (Sectors, PoolOffset) {
        let journal = &mut self.journal;
        let payload_at = journal.open.payload;
        journal.open.payload += len;
        journal.counters.redo_sectors += len.get();
        (payload_at, journal.buffer(journal.open.buffer) + payload_at.bytes())
    }

    /// Begin to write the open group, if the group before it is durable; true if it began.
    pub(crate) fn seal_group(&mut self, actions: &mut Actions) -> bool {
        let journal = &mut self.journal;
        let ready = journal.is_live() && journal.open.is_used() && !journal.open.records.is_empty();
        if !ready || journal.flying.is_used() || self.channels.room() < 16 {
            return false;
        }
        core::mem::swap(&mut journal.open, &mut journal.flying);
        let ring = journal.ring();
        let (sequence, position, payload) = (journal.flying.sequence, journal.flying.position, journal.flying.payload);
        let sectors = journal_entry_sectors(payload);
        journal.log.seal(sequence, position.0, sectors.get());
        self.journal.head = ring.behind(position, sectors);
        let journal = &mut self.journal;
        journal.counters.entries += 1;
        journal.counters.sectors += sectors.get();
        let records = u32::try_from(journal.flying.records.len()).expect("few records");
        self.trace.entry(sequence, || What::Sealed { sectors, records });
        let journal = &mut self.journal;
        if let Some(at) = journal.flying.wrap {
            self.write_wrap(sequence - 1, at, actions);
        }
        if payload.is_zero() {
            self.write_header(0, actions);
        } else {
            self.sum_payload(actions);
        }
        // Wake writes that found no room in the group.
        self.wake_journal_waiters();
        true
    }

    /// Copies into the buffer may have been issued in the same round. Only a job that is issued after them is sure to see
    /// their bytes, and the write follows that job.
    fn sum_payload(&mut self, actions: &mut Actions) {
        let flying = &self.journal.flying;
        let (at, payload) = (self.journal.buffer(flying.buffer), flying.payload);
        let columns_start = u32::try_from(actions.columns.len()).expect("the arena is small");
        actions.columns.push(JobColumn { index: 0, at, old: at });
        actions.jobs.push(ParityJob {
            tag: Tag::new(TagKind::Journal, 0, 0),
            kind: JobKind::Checksum,
            len: u32::try_from(payload.bytes().get()).expect("at most 1 MiB"),
            columns_start,
            columns_len: 1,
            p: None,
            q: None,
        });
        self.journal.flying.pending += 1;
    }

    /// The checksum of the payload is known: write payload and header, both at once.
    pub(crate) fn on_checksum(&mut self, crc: u32, actions: &mut Actions) {
        self.journal.flying.pending -= 1;
        if self.journal.is_live() {
            let flying = &self.journal.flying;
            let (at, payload) = (self.journal.buffer(flying.buffer), flying.payload);
            let place = RingSector(flying.position.0 + JOURNAL_ALIGN.get());
            let lba = self.journal.ring().drive_lba(place);
            let block = self.journal.superblock.as_ref().expect("it is live").block.sectors().get();
            let len = Sectors(payload.get().next_multiple_of(block));
            self.write_to_devices(JournalWrite::Group, lba, len, Data::Frames(at), actions);
            self.write_header(crc, actions);
        }
        self.land_group();
    }

    fn write_header(&mut self, payload_crc: u32, actions: &mut Actions) {
        let journal = &self.journal;
        let flying = &journal.flying;
        let header = EntryHeader {
            sequence: flying.sequence,
            epoch: journal.superblock.as_ref().expect("it is live").epoch,
            position: flying.position,
            promised: journal.durable,
            tail: self.tail_place(flying.sequence, flying.position),
            kind: EntryKind::Commit,
            payload: flying.payload,
            payload_crc,
        };
        let mut bytes = core::mem::take(&mut self.journal.header);
        header.encode_over(&self.journal.ring(), &self.journal.flying.records, &mut bytes);
        let at = self.journal.ring().drive_lba(header.position);
        self.journal.flying.header_out = true;
        self.write_block(JournalWrite::Group, at, &bytes, actions);
        self.journal.header = bytes;
    }

    fn write_wrap(&mut self, sequence: u64, position: RingSector, actions: &mut Actions) {
        let journal = &self.journal;
        let header = EntryHeader {
            sequence,
            epoch: journal.superblock.as_ref().expect("it is live").epoch,
            position,
            promised: journal.durable,
            tail: self.tail_place(sequence, position),
            kind: EntryKind::Wrap,
            payload: Sectors::ZERO,
            payload_crc: 0,
        };
        let mut bytes = core::mem::take(&mut self.journal.header);
        header.encode_over(&self.journal.ring(), &[], &mut bytes);
        let at = self.journal.ring().drive_lba(position);
        self.write_block(JournalWrite::Group, at, &bytes, actions);
        self.journal.header = bytes;
    }

    /// The first entry that is needed, as a header at this position states it. It is never ahead of the tail in the durable
    /// superblock: only the superblock says which entries are kept outside of the ring and which count for which array.
    fn tail_place(&self, sequence: u64, position: RingSector) -> LogPlace {
        let tail = self.journal.log.first;
        if tail >= sequence {
            return LogPlace { sequence, position };
        }
        LogPlace { sequence: tail, position: RingSector(self.journal.log.get(tail).position) }
    }

    /// Write one block to all devices that work.
    pub(crate) fn write_block(&mut self, work: JournalWrite, at: DriveLba, bytes: &[u8], actions: &mut Actions) {
        for number in 0..self.journal.devices.len() {
            if self.journal.is_written(number) {
                self.write_block_to(number, work, at, bytes, actions);
            }
        }
    }

    pub(crate) fn write_block_to(
        &mut self,
        number: usize,
        work: JournalWrite,
        at: DriveLba,
        bytes: &[u8],
        actions: &mut Actions,
    ) {
        let start = u32::try_from(actions.metadata.len()).expect("the arena is small");
        actions.metadata.extend_from_slice(bytes);
        assert_eq!(bytes.len(), JOURNAL_BLOCK_BYTES, "the journal is written in blocks");
        let len = u32::try_from(JOURNAL_BLOCK_BYTES).expect("a page");
        let range = MetadataRange { start, len };
        self.write_to_device(number, work, (at, JOURNAL_ALIGN), Data::Metadata(range), actions);
    }

    pub(super) fn write_to_devices(
        &mut self,
        work: JournalWrite,
        at: DriveLba,
        len: Sectors,
        data: Data,
        actions: &mut Actions,
    ) {
        for number in 0..self.journal.devices.len() {
            if self.journal.is_written(number) {
                self.write_to_device(number, work, (at, len), data, actions);
            }
        }
    }

    pub(super) fn write_to_device(
        &mut self,
        number: usize,
        work: JournalWrite,
        (lba, len): (DriveLba, Sectors),
        data: Data,
        actions: &mut Actions,
    ) {
        let drive = self.journal.devices[number].drive;
        let member = u32::try_from(number).expect("two at most");
        let owner = Owner::Journal(JournalWork::Write(work));
        match work {
            JournalWrite::Group => self.journal.flying.pending += 1,
            JournalWrite::Superblock => self.journal.writing.pending += 1,
            JournalWrite::Spill => self.journal.spill.pending += 1,
            JournalWrite::Join => self.journal.join.pending += 1,
        }
        let op = DriveOp::Write { fua: true };
        let buffer = self.journal.flying.buffer;
        let hold = match (work, data) {
            (_, Data::None | Data::Metadata(_)) => None,
            (JournalWrite::Group, Data::Frames(_)) => Some(Hold::Journal(buffer)),
            (_, Data::Frames(_)) => Some(Hold::Window),
        };
        let class = if work == JournalWrite::Join { IoClass::Rebuild } else { IoClass::Metadata };
        let command =
            Self::journal_command(owner, member, drive).doing(op, (lba, len), data).of_class(class).holding(hold);
        self.channels.push(self.now, &command, actions);
    }

    pub(crate) fn journal_command(owner: Owner, member: u32, drive: openraid_units::DriveId) -> Command {
        Command::to_journal(owner, member, drive)
    }

    /// A command of the journal has ended.
    pub(crate) fn on_journal_command(
        &mut self,
        work: JournalWork,
        command: &Command,
        result: Result<(), CommandError>,
        actions: &mut Actions,
    ) {
        match work {
            JournalWork::Read(JournalRead::Replay) => self.on_replay_read(command, result, actions),
            JournalWork::Read(JournalRead::Redo(_)) => unreachable!("an operation reads for a redo"),
            JournalWork::Read(JournalRead::Spill) => self.on_spill_read(command, result, actions),
            JournalWork::Read(JournalRead::Join) => self.on_join_read(command, result, actions),
            JournalWork::Write(write) => self.on_journal_write(write, command, result, actions),
        }
    }

    fn on_journal_write(
        &mut self,
        write: JournalWrite,
        command: &Command,
        result: Result<(), CommandError>,
        actions: &mut Actions,
    ) {
        if result.is_err() {
            self.drop_journal_device(command.journal_device(), actions);
        }
        match write {
            JournalWrite::Group => {
                let (sequence, timeout) = (self.journal.flying.sequence, self.limits.command_timeout);
                self.trace.entry(sequence, || command.ended_step(timeout, result.is_ok()));
                self.journal.flying.pending -= 1;
                self.land_group();
            }
            JournalWrite::Superblock => {
                self.journal.writing.pending -= 1;
                self.superblock_written(actions);
            }
            JournalWrite::Spill => self.on_spilled_piece(actions),
            JournalWrite::Join => self.on_joined_piece(),
        }
    }

    /// If the group that is being written is durable on every device, wake the operations and pieces that wait for it.
    pub(crate) fn land_group(&mut self) {
        let flying = &self.journal.flying;
        if !flying.is_used() || flying.pending > 0 {
            return;
        }
        if !self.journal.is_live() {
            return self.orphan_groups();
        }
        // If a device was dropped or joins, its log could be taken for the right one until the superblocks of the others
        // are durable.
        if !flying.header_out || self.journal.is_epoch_pending() {
            return;
        }
        let journal = &mut self.journal;
        journal.durable = journal.flying.sequence;
        let sequence = journal.durable;
        self.trace.entry(sequence, || What::Durable);
        let journal = &mut self.journal;
        journal.buffers[journal.flying.buffer] = true;
        let mut pieces = core::mem::take(&mut journal.flying.pieces);
        let mut ops = core::mem::take(&mut journal.flying.ops);
        journal.flying.reset();
        for piece in pieces.drain(..) {
            self.ended.push_piece(piece);
        }
        for op in ops.drain(..) {
            self.logged_is_durable(op);
        }
        (self.journal.flying.pieces, self.journal.flying.ops) = (pieces, ops);
        self.wake_journal_waiters();
    }

    /// The journal is lost: pieces that wait for a group now wait until their data is on the members.
    pub(crate) fn orphan_groups(&mut self) {
        for flying in [true, false] {
            let journal = &mut self.journal;
            let group = if flying { &mut journal.flying } else { &mut journal.open };
            if !group.is_used() || group.pending > 0 {
                continue;
            }
            journal.orphans.append(&mut group.pieces);
            group.reset();
            let mut ops = core::mem::take(&mut group.ops);
            for op in ops.drain(..) {
                self.logged_is_durable(op);
            }
            let journal = &mut self.journal;
            let group = if flying { &mut journal.flying } else { &mut journal.open };
            group.ops = ops;
        }
    }

    /// Wake writes that found no room in the journal.
    pub(crate) fn wake_journal_waiters(&mut self) {
        self.journal.asked = 0;
        self.requests.wake_others();
        self.ops.wake_for_journal();
        self.wake_replay();
    }

    /// A set has changed, or its relation to the journal: call all pieces and operations again that wait for either.
    pub(crate) fn wake_all_waiters(&mut self) {
        self.requests.wake_all();
        self.wake_journal_waiters();
    }
}
