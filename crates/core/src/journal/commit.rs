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
use crate::actions::{Actions, Data, JobKind};
use crate::array::awaited_changes::AwaitedChange;
use crate::array::sets::{Sets, Signal};
use crate::call::Call;
use crate::events::CommandError;
use crate::io::state::command::ChannelCommand;
use crate::io::state::command::WindowUser;
use crate::io::state::command::{JournalWork, JournalWrite};
use crate::io::state::ops::Ops;
use crate::journal::devices::has_room;
use crate::planted::Flaw;
use crate::request_steps::StepEvent;
use crate::trace::Trace;

impl Journal {
    /// The piece waits until the open group is durable.
    pub(crate) fn add_piece(&mut self, piece: u32) {
        self.open.pieces.push(piece);
    }

    /// Begin to write the open group, if the group before it is durable; true if it began. The next group has room for
    /// writes that found none.
    pub(crate) fn seal_group(&mut self, sets: &mut Sets, call: &mut Call) -> bool {
        if !has_room(call) {
            return false;
        }
        let Some(sectors) = self.seal() else { return false };
        if call.planted().has(Flaw::AnswerBeforeEntry) {
            self.open.pieces.append(&mut self.flying.pieces);
            sets.signal(Signal::EntriesEnded);
        }
        let records = u32::try_from(self.flying.records.len()).expect("few records");
        call.trace().entry(self.flying.sequence, || StepEvent::Sealed { sectors, records });
        if let Some(filler) = self.filler_header() {
            self.write_header(&filler, call);
        }
        if self.flying.payload.is_zero() {
            self.write_entry_header(0, call);
        } else {
            self.sum_payload(call.actions());
        }
        sets.signal(Signal::JournalRoom);
        true
    }

    /// Copies into the buffer may have been issued in the same round. Only a job that is issued after them is sure to see
    /// their bytes, and the write follows that job.
    fn sum_payload(&mut self, actions: &mut Actions) {
        let (at, payload) = (self.buffer(self.flying.buffer), self.flying.payload);
        actions.push_job(Tag::new(TagKind::Journal, 0, 0), JobKind::Checksum, (at, at), payload.bytes());
        self.flying.pending += 1;
    }

    /// The checksum of the payload is known: write payload and header, both at once.
    fn write_group(&mut self, crc: u32, call: &mut Call) {
        self.flying.pending -= 1;
        if !self.is_live() {
            return;
        }
        let (at, payload) = (self.buffer(self.flying.buffer), self.flying.payload);
        let place = RingSector(self.flying.position.0 + JOURNAL_ALIGN.get());
        let lba = self.ring().drive_lba(place);
        let len = Sectors(payload.get().next_multiple_of(self.block_sectors()));
        self.write_to_devices(JournalWrite::Group, (lba, len), Data::Frames(at), call);
        self.write_entry_header(crc, call);
    }

    fn write_entry_header(&mut self, payload_crc: u32, call: &mut Call) {
        let header = self.entry_header(payload_crc);
        self.flying.header_out = true;
        self.write_header(&header, call);
    }

    fn write_header(&mut self, header: &EntryHeader, call: &mut Call) {
        let mut bytes = core::mem::take(&mut self.header);
        let records = if header.kind == EntryKind::Wrap { &[][..] } else { &self.flying.records };
        header.encode_over(&self.ring(), records, &mut bytes);
        self.write_block(JournalWrite::Group, self.ring().drive_lba(header.position), &bytes, call);
        self.header = bytes;
    }

    /// If the group that is being written is durable on every device, the operations and pieces that wait for it continue,
    /// and another group may be written.
    fn land_group(&mut self, sets: &mut Sets, trace: &mut Trace) {
        if !self.flying.is_used() || self.flying.pending > 0 {
            return;
        }
        if !self.is_live() {
            return self.orphan_groups(sets);
        }
        if self.may_land() {
            trace.entry(self.land(), || StepEvent::Durable);
            sets.signal(Signal::EntriesEnded);
            sets.signal(Signal::JournalRoom);
        }
    }

    /// The journal is lost: pieces that wait for a group now wait until their data is on the members.
    pub(super) fn orphan_groups(&mut self, sets: &mut Sets) {
        for group in [&mut self.flying, &mut self.open] {
            if group.is_used() && group.pending == 0 {
                group.reset();
                self.orphans.append(&mut group.pieces);
            }
        }
        sets.signal(Signal::EntriesEnded);
    }

    /// Give out the pieces and operations whose entry is durable, or will never be.
    pub(crate) fn give_out_ended(&mut self, mut piece: impl FnMut(u32), mut op: impl FnMut(u32)) {
        for group in [&mut self.flying, &mut self.open].into_iter().filter(|group| !group.is_used()) {
            group.pieces.drain(..).for_each(&mut piece);
            group.ops.drain(..).for_each(&mut op);
        }
    }

    /// The checksum of the payload of the group that is being written is known.
    pub(crate) fn checksum_known(&mut self, crc: u32, sets: &mut Sets, call: &mut Call) {
        self.write_group(crc, call);
        self.land_group(sets, call.trace());
    }

    /// A command of the journal has ended. True if its device is to be dropped, because it did not answer in time.
    pub(crate) fn command_ended(
        &mut self,
        work: JournalWork,
        command: &ChannelCommand,
        result: Result<(), CommandError>,
        sets: &mut Sets,
        call: &mut Call,
    ) -> bool {
        let user = match work {
            JournalWork::Redo(_) => unreachable!("an operation reads for a redo"),
            JournalWork::Window(user) => user,
            JournalWork::Write(write) => {
                self.write_ended(write, command, result.is_ok(), sets, call);
                return false;
            }
        };
        sets.look();
        match user {
            WindowUser::Replay => self.replay_read_ended(command, result, call),
            WindowUser::Spill => self.spill_read_ended(command, result, call),
            WindowUser::Join => self.join_read_ended(command, result, call),
        }
    }

    fn write_ended(
        &mut self,
        write: JournalWrite,
        command: &ChannelCommand,
        is_ok: bool,
        sets: &mut Sets,
        call: &mut Call,
    ) {
        match write {
            JournalWrite::Group => {
                call.trace().entry(self.flying.sequence, || command.ended_step(is_ok));
                self.flying.pending -= 1;
                self.land_group(sets, call.trace());
            }
            JournalWrite::Superblock => {
                if self.superblock_written(call) {
                    sets.all_changed(AwaitedChange::Session);
                    self.land_group(sets, call.trace());
                    sets.signal(Signal::Changed);
                }
            }
            JournalWrite::Spill => {
                if self.spill_written(call) {
                    sets.look();
                }
            }
            JournalWrite::Join => {
                self.join_written();
                sets.look();
            }
        }
    }
}

/// The entry that an operation waits for is durable, or will never be.
pub(crate) fn entry_ended(ops: &mut Ops, index: u32, trace: &mut Trace) {
    trace.op(ops, index, || StepEvent::Durable);
    let op = &mut ops[index];
    op.set_entry(op.entry().end_wait());
    if !op.has_pending() {
        ops.wake(index);
    }
}
