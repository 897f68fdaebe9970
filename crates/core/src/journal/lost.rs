//! A journal without a working device protects no more writes. Data that it has acknowledged is still in the cache and goes
//! to the members without delay. Until the journal is back, writes are acknowledged when they are on the members.

use openraid_format::ArrayState;

use super::commit::{JournalRead, JournalWork};
use super::session::Session;
use super::{Journal, JournalLoss, JournalState};
use crate::actions::{Actions, NoticeKind, ReplyStatus};
use crate::array::set::Set;
use crate::array::sets::{Change, Sets};
use crate::array::volume::Volume;
use crate::controller::{CommandError, Controller};
use crate::events::DriveError;
use crate::io::command::Owner;
use crate::io::drive_io::DriveIo;

impl Controller {
    /// A device of the journal has failed.
    pub(crate) fn drop_journal_device(&mut self, number: usize, actions: &mut Actions) {
        let Some((drive, continues)) = self.journal.drop_device(number) else { return };
        self.sets.look();
        let kind = if continues { NoticeKind::JournalDegraded } else { NoticeKind::JournalLost };
        DriveIo::new(&mut self.channels, self.now, actions).notice(Some(drive), kind);
        if !continues {
            self.lose_journal(JournalLoss::Device);
        }
        // Commands in the queue of a hung device would wait forever.
        while let Some(command) = self.channels.cancel_queued(drive) {
            let Owner::Journal(work) = command.owner() else { unreachable!("the drive is the journal's alone") };
            if let JournalWork::Read(JournalRead::Redo(op)) = work {
                self.ops[op].lose_redo();
                self.ops.command_ended(op);
                continue;
            }
            self.on_journal_command(work, &command, Err(CommandError::Drive(DriveError::Gone)), actions);
        }
    }

    /// The journal protects no more writes, for this reason.
    pub(crate) fn lose_journal(&mut self, why: JournalLoss) {
        if self.journal.lose(why) {
            self.journal.orphan_groups(&mut self.ops, &mut self.trace);
            self.sets.all_changed(Change::Session);
            self.wake_all_waiters();
        }
    }

    /// Pieces whose entry never became durable are answered when no data of their array is dirty any more and no session of
    /// it can still end: until then a crash would replay older entries over what they wrote. Other arrays are not waited
    /// for, because they may always be busy. True if pieces were answered.
    pub(crate) fn pump_loss(&mut self, actions: &mut Actions) -> bool {
        if core::mem::take(&mut self.journal.full_notice) {
            DriveIo::new(&mut self.channels, self.now, actions).notice(None, NoticeKind::JournalFull);
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
                _ => {
                    let volume = self.arrays.find(array).expect("requests belong to arrays").volume();
                    self.sets.end_of_orphans(volume)
                }
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
}

impl Journal {
    /// The journal protects no more writes, for this reason; false if it did not before.
    pub(super) fn lose(&mut self, why: JournalLoss) -> bool {
        if matches!(self.state, JournalState::Lost(_) | JournalState::None) {
            return false;
        }
        self.state = JournalState::Lost(why);
        self.leave_out();
        self.full_notice = why == JournalLoss::Full;
        true
    }

    /// A failed set is being forgotten: its entries stay in the journal until it is started again or they are discarded.
    /// False if there are none.
    pub(crate) fn preserve_entries(&mut self, set: &Set) -> bool {
        let known = self.superblock.as_ref().zip(set.uuid()).and_then(|(superblock, uuid)| superblock.index_of(uuid));
        known.is_some_and(|index| self.log.waiting_for(index) > 0) || self.wait_for_set_to_return(set)
    }

    /// A set has failed: the entries of its session wait until it is started again or they are discarded. False if none
    /// count.
    pub(crate) fn wait_for_set_to_return(&mut self, set: &Set) -> bool {
        let promised =
            matches!(set.journal.session(), Session::Marking | Session::On | Session::Leaving | Session::Unmarking);
        let Some(share) = set.journal.share().filter(|_| promised) else { return false };
        let table = self.superblock.as_ref().and_then(|s| s.arrays[usize::from(share.index)]);
        let since = table.filter(|array| Some(array.set_uuid) == set.uuid() && array.state != ArrayState::Discarded);
        let (Some(array), true) = (since, self.is_live()) else { return false };
        self.log.wait_for_array(share.index, array.first_sequence);
        true
    }
}

impl Sets {
    /// The result of pieces of an array whose entry never became durable, if it is known.
    pub(super) fn end_of_orphans(&self, volume: &Volume) -> Option<Option<ReplyStatus>> {
        let mut sets = (0..volume.set_count()).map(|n| self.get(volume.set(n)));
        let is_drained = |set: &Set| {
            let written = set.dirty.all() == 0 || set.dirty.is_refused();
            set.has_failed() || (written && !set.is_session_ending())
        };
        if !sets.clone().all(is_drained) {
            return None;
        }
        // A session that stays is replayed at the next start.
        let failed = sets.any(|set| set.has_failed() || set.dirty.has_failed() || set.journal.has_session());
        Some(failed.then_some(ReplyStatus::IoError))
    }
}
