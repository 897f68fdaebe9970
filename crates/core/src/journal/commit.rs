//! Group commit: records collect while the group before them is being written. Then they are written together.
//!
//! ```text
//!  open:    records and payload collect          (Collecting)
//!  flying:  checksum of the payload -> header and payload written -> durable -> replies
//! ```
//!
//! One group is written at a time, because an entry counts only if all entries before it do. Header and payload are written
//! at the same time; the checksum in the header shows whether both are complete.

use openraid_format::{EntryHeader, EntryKind, RingSector, JOURNAL_ALIGN, JOURNAL_BLOCK_BYTES};
use openraid_units::{DriveLba, PoolOffset, Sectors, SetId, SetLba, Tag, TagKind};

use crate::actions::{Actions, Data, DriveOp, IoClass, JobColumn, JobKind, MetadataRange, ParityJob};
use crate::controller::{CommandError, Controller};
use crate::io::command::{Command, Hold, Owner};
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

impl Controller {
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
        let sequence = self.journal.open.sequence;
        if self.requests.piece_mut(piece).wait_for_entry(PieceEntry::Waits(sequence)) {
            self.requests.piece_mut(piece).begin_op();
            self.journal.open.pieces.push(piece);
        }
        self.journal.append_data(array, (at, len), first, self.now)
    }

    /// Begin to write the open group, if the group before it is durable; true if it began.
    pub(crate) fn seal_group(&mut self, actions: &mut Actions) -> bool {
        if self.channels.room() < 16 {
            return false;
        }
        let Some(sectors) = self.journal.seal() else { return false };
        let flying = &self.journal.flying;
        let records = u32::try_from(flying.records.len()).expect("few records");
        self.trace.entry(flying.sequence, || What::Sealed { sectors, records });
        if let Some(filler) = self.journal.filler_header() {
            self.write_header(&filler, actions);
        }
        if self.journal.flying.payload.is_zero() {
            self.write_entry_header(0, actions);
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
            self.write_entry_header(crc, actions);
        }
        self.land_group();
    }

    fn write_entry_header(&mut self, payload_crc: u32, actions: &mut Actions) {
        let header = self.journal.entry_header(payload_crc);
        self.journal.flying.header_out = true;
        self.write_header(&header, actions);
    }

    fn write_header(&mut self, header: &EntryHeader, actions: &mut Actions) {
        let mut bytes = core::mem::take(&mut self.journal.header);
        let journal = &self.journal;
        let records = if header.kind == EntryKind::Wrap { &[][..] } else { &journal.flying.records };
        header.encode_over(&journal.ring(), records, &mut bytes);
        self.write_block(JournalWrite::Group, journal.ring().drive_lba(header.position), &bytes, actions);
        self.journal.header = bytes;
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
            JournalWrite::Superblock => self.journal.writing.issued(),
            JournalWrite::Spill => self.journal.spill.issued(),
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
                self.journal.writing.ended();
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
        if !self.journal.may_land() {
            return;
        }
        let (sequence, mut pieces, mut ops) = self.journal.land();
        self.trace.entry(sequence, || What::Durable);
        for piece in pieces.drain(..) {
            self.ended.push_piece(piece);
        }
        for op in ops.drain(..) {
            self.logged_is_durable(op);
        }
        self.journal.keep_waiters(pieces, ops);
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
        self.journal.room.forget_asked();
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
