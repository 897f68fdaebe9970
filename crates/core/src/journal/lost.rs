//! A journal without a working device protects no more writes. Data that it has acknowledged is still in the cache and goes
//! to the members without delay. Until the journal is back, writes are acknowledged when they are on the members.

use openraid_format::JOURNAL_BLOCK_BYTES;
use openraid_format::{journal_superblock_lba, ArrayState, SuperblockCopy};
use openraid_units::{ArrayId, SetId};

use super::commit::{JournalRead, JournalWork, JournalWrite};
use super::session::Session;
use super::superblocks::Written;
use super::{DeviceState, JournalLoss, JournalState};
use crate::actions::{Actions, Notice, NoticeKind, ReplyStatus};
use crate::array::sets::Change;
use crate::controller::{CommandError, Controller};
use crate::events::DriveError;
use crate::io::command::Owner;

impl Controller {
    /// Leave a notice about the journal.
    pub(super) fn journal_notice(
        &self,
        drive: Option<openraid_units::DriveId>,
        kind: NoticeKind,
        actions: &mut Actions,
    ) {
        actions.notice(Notice { at: self.now, array: ArrayId(0), slot: None, drive, kind });
    }

    /// A device of the journal has failed.
    pub(crate) fn drop_journal_device(&mut self, number: usize, actions: &mut Actions) {
        let Some(device) = self.journal.devices.get_mut(number) else { return };
        let (drive, state) = (device.drive, device.state);
        if !matches!(state, DeviceState::Works | DeviceState::Joins) {
            return;
        }
        device.state = DeviceState::Dropped;
        self.sets.look();
        if self.journal.devices.iter().any(|device| device.state.works()) {
            self.journal_notice(Some(drive), NoticeKind::JournalDegraded, actions);
            if state == DeviceState::Joins {
                self.leave_out();
            } else {
                self.journal.go_alone();
            }
        } else {
            self.journal_notice(Some(drive), NoticeKind::JournalLost, actions);
            self.lose_journal(JournalLoss::Device);
        }
        // Commands in the queue of a hung device would wait forever.
        while let Some(command) = self.channels.cancel_queued(drive) {
            let Owner::Journal(work) = command.owner() else { unreachable!("the drive is the journal's alone") };
            if let JournalWork::Read(JournalRead::Redo(op)) = work {
                self.ops[op].abandon_frames();
                self.ops.command_ended(op);
                continue;
            }
            self.on_journal_command(work, &command, Err(CommandError::Drive(DriveError::Gone)), actions);
        }
    }

    /// The journal protects no more writes, for this reason.
    pub(crate) fn lose_journal(&mut self, why: JournalLoss) {
        if matches!(self.journal.state, JournalState::Lost(_) | JournalState::None) {
            return;
        }
        self.journal.state = JournalState::Lost(why);
        self.leave_out();
        self.journal.full_notice = why == JournalLoss::Full;
        self.orphan_groups();
        self.sets.all_changed(Change::Session);
        self.wake_all_waiters();
    }

    /// A failed set is being forgotten: its entries stay in the journal until it is started again or they are discarded.
    /// False if there are none.
    pub(crate) fn preserve_entries(&mut self, id: SetId) -> bool {
        let uuid = self.sets.get(id).metadata.as_ref().map(|metadata| metadata.common().set_uuid);
        let known = self.journal.superblock.as_ref().zip(uuid).and_then(|(superblock, uuid)| superblock.index_of(uuid));
        if known.is_some_and(|index| self.journal.log.waiting_for(index) > 0) {
            return true;
        }
        self.wait_for_set_to_return(id)
    }

    /// A set has failed: the entries of its session wait until it is started again or they are discarded. False if none
    /// count.
    pub(crate) fn wait_for_set_to_return(&mut self, id: SetId) -> bool {
        let own = self.sets.get(id).journal;
        let promised = matches!(own.session(), Session::Marking | Session::On | Session::Leaving | Session::Unmarking);
        let Some(share) = own.share().filter(|_| promised) else { return false };
        let table = self.journal.superblock.as_ref().and_then(|s| s.arrays[usize::from(share.index)]);
        let uuid = self.sets.get(id).metadata.as_ref().map(|metadata| metadata.common().set_uuid);
        let since = table.filter(|array| Some(array.set_uuid) == uuid && array.state != ArrayState::Discarded);
        let (Some(array), true) = (since, self.journal.is_live()) else { return false };
        self.journal.log.wait_for_array(share.index, array.first_sequence);
        true
    }

    /// Pieces whose entry never became durable are answered when no data of their array is dirty any more and no session of
    /// it can still end: until then a crash would replay older entries over what they wrote. Other arrays are not waited
    /// for, because they may always be busy. True if pieces were answered.
    pub(crate) fn pump_loss(&mut self, actions: &mut Actions) -> bool {
        if core::mem::take(&mut self.journal.full_notice) {
            self.journal_notice(None, NoticeKind::JournalFull, actions);
        }
        if self.journal.orphans.is_empty() {
            return false;
        }
        let mut orphans = core::mem::take(&mut self.journal.orphans);
        let before = orphans.len();
        // Most of them are of the same array.
        let mut last = None;
        orphans.retain(|piece| {
            let array = self.requests.of_piece(*piece).array();
            let end = match last {
                Some((same, end)) if same == array => end,
                _ => self.end_of_orphans(array),
            };
            last = Some((array, end));
            if let Some(end) = end {
                self.requests.piece_mut(*piece).note_error(end);
                self.ended.push_piece(*piece);
            }
            end.is_none()
        });
        let moved = orphans.len() < before;
        self.journal.orphans = orphans;
        moved
    }

    /// The result of an array's pieces whose entry never became durable, if it is known.
    fn end_of_orphans(&self, array: ArrayId) -> Option<Option<ReplyStatus>> {
        let volume = self.arrays.find(array).expect("requests belong to arrays").volume();
        let mut sets = (0..volume.set_count()).map(|n| volume.set(n));
        let is_drained = |id: SetId| {
            let set = self.sets.get(id);
            let written = set.dirty.all() == 0 || set.dirty.is_refused();
            set.has_failed() || (written && !set.is_session_ending())
        };
        if !sets.clone().all(is_drained) {
            return None;
        }
        let failed = sets.any(|id| {
            let set = self.sets.get(id);
            // A session that stays is replayed at the next start.
            set.has_failed() || set.dirty.has_failed() || set.journal.has_session()
        });
        Some(failed.then_some(ReplyStatus::IoError))
    }

    /// Write the superblocks if something has changed: all first copies, then all last ones, so that one of them is
    /// complete at any time.
    pub(crate) fn pump_journal_superblock(&mut self, actions: &mut Actions) -> bool {
        let journal = &mut self.journal;
        let lost = matches!(journal.state, JournalState::Lost(_) | JournalState::None);
        if lost || !journal.writing.is_due() || self.channels.room() < 16 {
            return false;
        }
        journal.writing.begin();
        journal.superblock.as_mut().expect("it was attached").generation += 1;
        journal.snapshot.clone_from(&journal.superblock);
        journal.devices.iter_mut().for_each(|device| device.written_as = device.mirror);
        journal.counters.superblocks += 1;
        self.write_superblocks(SuperblockCopy::First, actions);
        true
    }

    fn write_superblocks(&mut self, copy: SuperblockCopy, actions: &mut Actions) {
        let generation = self.journal.writing.writing();
        for number in 0..self.journal.devices.len() {
            let device = self.journal.devices[number];
            let joins = device.state == DeviceState::Joins && self.journal.join.takes_superblock(generation);
            if !(device.state.works() || joins) {
                continue;
            }
            let superblock = self.journal.snapshot.as_mut().expect("taken before");
            superblock.mirror = device.written_as;
            let mut bytes = [0; JOURNAL_BLOCK_BYTES];
            superblock.encode(copy, &mut bytes);
            let lba = journal_superblock_lba(copy, superblock.device_sectors).expect("checked when it was attached");
            self.write_block_to(number, JournalWrite::Superblock, lba, &bytes, actions);
        }
    }

    /// A superblock is written, or its device was dropped.
    pub(crate) fn superblock_written(&mut self, actions: &mut Actions) {
        let journal = &mut self.journal;
        if !journal.has_working_device() {
            return;
        }
        match journal.writing.advance(journal.snapshot.as_ref().expect("it was written").epoch) {
            Written::Waits => return,
            Written::Last => return self.write_superblocks(SuperblockCopy::Last, actions),
            Written::Durable => {}
        }
        if journal.state == JournalState::Opening {
            journal.state = JournalState::Live;
        }
        self.sets.all_changed(Change::Session);
        self.land_group();
        self.wake_all_waiters();
    }
}
