//! Group commit: records collect while the group before them is being written. Then they are written together.
//!
//! ```text
//!  open:    records and payload collect          (Collecting)
//!  flying:  checksum of the payload -> header and payload written -> durable -> replies
//! ```
//!
//! One group is written at a time, because an entry counts only if all entries before it do. Header and payload are written
//! at the same time; the checksum in the header shows whether both are complete.

use openraid_format::{EntryHeader, EntryKind, RingSector, JOURNAL_ALIGN};
use openraid_units::{Sectors, Tag, TagKind};

use super::Journal;
use crate::actions::{Actions, Data, JobColumn, JobKind, ParityJob};
use crate::array::sets::Change;
use crate::controller::{CommandError, Controller};
use crate::io::command::Command;
use crate::io::drive_io::DriveIo;
use crate::io::ended::EndedOps;
use crate::io::ops::Ops;
use crate::requests::piece::PieceEntry;
use crate::requests::Requests;
use crate::steps::What;
use crate::trace::Trace;

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

impl Journal {
    /// The piece waits until the open group is durable.
    pub(crate) fn add_piece(&mut self, piece: u32, requests: &mut Requests) {
        let waits = requests.piece_mut(piece);
        if waits.wait_for_entry(PieceEntry::Waits(self.open.sequence)) {
            waits.begin_op();
            self.open.pieces.push(piece);
        }
    }

    /// Begin to write the open group, if the group before it is durable; true if it began.
    pub(crate) fn seal_group(&mut self, trace: &mut Trace, io: &mut DriveIo) -> bool {
        if !io.has_room() {
            return false;
        }
        let Some(sectors) = self.seal() else { return false };
        let records = u32::try_from(self.flying.records.len()).expect("few records");
        trace.entry(self.flying.sequence, || What::Sealed { sectors, records });
        if let Some(filler) = self.filler_header() {
            self.write_header(&filler, io);
        }
        if self.flying.payload.is_zero() {
            self.write_entry_header(0, io);
        } else {
            self.sum_payload(io.actions());
        }
        true
    }

    /// Copies into the buffer may have been issued in the same round. Only a job that is issued after them is sure to see
    /// their bytes, and the write follows that job.
    fn sum_payload(&mut self, actions: &mut Actions) {
        let (at, payload) = (self.buffer(self.flying.buffer), self.flying.payload);
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
        self.flying.pending += 1;
    }

    /// The checksum of the payload is known: write payload and header, both at once.
    fn write_group(&mut self, crc: u32, io: &mut DriveIo) {
        self.flying.pending -= 1;
        if !self.is_live() {
            return;
        }
        let (at, payload) = (self.buffer(self.flying.buffer), self.flying.payload);
        let place = RingSector(self.flying.position.0 + JOURNAL_ALIGN.get());
        let lba = self.ring().drive_lba(place);
        let len = Sectors(payload.get().next_multiple_of(self.block_sectors()));
        self.write_to_devices(JournalWrite::Group, (lba, len), Data::Frames(at), io);
        self.write_entry_header(crc, io);
    }

    fn write_entry_header(&mut self, payload_crc: u32, io: &mut DriveIo) {
        let header = self.entry_header(payload_crc);
        self.flying.header_out = true;
        self.write_header(&header, io);
    }

    fn write_header(&mut self, header: &EntryHeader, io: &mut DriveIo) {
        let mut bytes = core::mem::take(&mut self.header);
        let records = if header.kind == EntryKind::Wrap { &[][..] } else { &self.flying.records };
        header.encode_over(&self.ring(), records, &mut bytes);
        self.write_block(JournalWrite::Group, self.ring().drive_lba(header.position), &bytes, io);
        self.header = bytes;
    }

    /// If the group that is being written is durable on every device, the operations and pieces that wait for it continue.
    /// True if it is, so that another group may be written.
    fn land_group(&mut self, ended: &mut EndedOps, ops: &mut Ops, trace: &mut Trace) -> bool {
        if !self.flying.is_used() || self.flying.pending > 0 {
            return false;
        }
        if !self.is_live() {
            self.orphan_groups(ops, trace);
            return false;
        }
        if !self.may_land() {
            return false;
        }
        trace.entry(self.land(), || What::Durable);
        self.flying.pieces.drain(..).for_each(|piece| ended.push_piece(piece));
        self.flying.ops.drain(..).for_each(|op| ops.entry_ended(op, trace));
        true
    }

    /// The journal is lost: pieces that wait for a group now wait until their data is on the members.
    pub(super) fn orphan_groups(&mut self, ops: &mut Ops, trace: &mut Trace) {
        for group in [&mut self.flying, &mut self.open] {
            if group.is_used() && group.pending == 0 {
                group.reset();
                self.orphans.append(&mut group.pieces);
                group.ops.drain(..).for_each(|op| ops.entry_ended(op, trace));
            }
        }
    }
}

impl Ops {
    /// The entry that an operation waits for is durable, or will never be.
    pub(crate) fn entry_ended(&mut self, index: u32, trace: &mut Trace) {
        trace.op(self, index, || What::Durable);
        let op = &mut self[index];
        op.set_entry(op.entry().end_wait());
        if !op.has_pending() {
            self.wake(index);
        }
    }
}

impl Controller {
    /// The checksum of the payload of the group that is being written is known.
    pub(crate) fn on_checksum(&mut self, crc: u32, actions: &mut Actions) {
        self.journal.write_group(crc, &mut DriveIo::new(&mut self.channels, self.now, actions));
        self.land_group();
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
            JournalWork::Read(read) => {
                self.sets.look();
                let io = &mut DriveIo::new(&mut self.channels, self.now, actions);
                if self.journal.read_ended(read, command, result, io) {
                    self.drop_journal_device(command.journal_device(), actions);
                }
            }
            JournalWork::Write(write) => {
                if result.is_err() {
                    self.drop_journal_device(command.journal_device(), actions);
                }
                self.on_journal_write(write, command, result.is_ok(), actions);
            }
        }
    }

    fn on_journal_write(&mut self, write: JournalWrite, command: &Command, is_ok: bool, actions: &mut Actions) {
        let io = &mut DriveIo::new(&mut self.channels, self.now, actions);
        match write {
            JournalWrite::Group => {
                let (sequence, timeout) = (self.journal.flying.sequence, self.limits.command_timeout);
                self.trace.entry(sequence, || command.ended_step(timeout, is_ok));
                self.journal.flying.pending -= 1;
                self.land_group();
            }
            JournalWrite::Superblock => {
                if self.journal.superblock_written(io) {
                    self.sets.all_changed(Change::Session);
                    self.land_group();
                    self.wake_all_waiters();
                }
            }
            JournalWrite::Spill => {
                if self.journal.spill_written(io) {
                    self.sets.look();
                }
            }
            JournalWrite::Join => {
                self.journal.join_written();
                self.sets.look();
            }
        }
    }

    /// Copy the log to a device that joins, and entries out of the ring; true if that advanced.
    pub(crate) fn pump_copies(&mut self, actions: &mut Actions) -> bool {
        let io = &mut DriveIo::new(&mut self.channels, self.now, actions);
        self.journal.pump_join(&mut self.sets, io) || self.journal.pump_spill(self.cache.line_count(), io)
    }

    /// Begin to write the open group. Writes that found no room in it are called, because the next one has room.
    pub(crate) fn seal_group(&mut self, actions: &mut Actions) -> bool {
        let io = &mut DriveIo::new(&mut self.channels, self.now, actions);
        let is_sealed = self.journal.seal_group(&mut self.trace, io);
        if is_sealed {
            self.wake_journal_waiters();
        }
        is_sealed
    }

    fn land_group(&mut self) {
        if self.journal.land_group(&mut self.ended, &mut self.ops, &mut self.trace) {
            self.wake_journal_waiters();
        }
    }

    /// Wake writes that found no room in the journal.
    pub(crate) fn wake_journal_waiters(&mut self) {
        self.requests.wake_others();
        self.journal.call_waiting_ops(&mut self.ops, &mut self.sets);
    }

    /// A set has changed, or its relation to the journal: call all pieces and operations again that wait for either.
    pub(crate) fn wake_all_waiters(&mut self) {
        self.requests.wake_all();
        self.wake_journal_waiters();
    }
}

impl Journal {
    /// A read from a device has ended. True if the device is to be dropped, because it did not answer in time.
    fn read_ended(
        &mut self,
        read: JournalRead,
        command: &Command,
        result: Result<(), CommandError>,
        io: &mut DriveIo,
    ) -> bool {
        match read {
            JournalRead::Replay => self.replay_read_ended(command, result, io),
            JournalRead::Redo(_) => unreachable!("an operation reads for a redo"),
            JournalRead::Spill => self.spill_read_ended(command, result, io),
            JournalRead::Join => self.join_read_ended(command, result, io),
        }
    }
}
