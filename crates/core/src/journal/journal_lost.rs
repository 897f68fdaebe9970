//! A journal without a working device protects no more writes. Data that it has acknowledged is still in the cache and goes
//! to the members without delay. Until the journal is back, writes are acknowledged when they are on the members.

use openraid_format::JournalArrayState;

use super::{Journal, JournalLoss, JournalState};
use crate::actions::{NoticeKind, ReplyStatus};
use crate::array::awaited_changes::AwaitedChange;
use crate::array::set::Set;
use crate::array::sets::{Sets, Signal};
use crate::array::volume::Volume;
use crate::call::Call;
use crate::journal::devices::notice_journal;
use crate::journal::session::{is_session_ending, uuid_of};
use crate::journal::set_journal::Session;

impl Journal {
    /// A device of the journal has failed.
    pub(crate) fn drop_device(&mut self, number: usize, sets: &mut Sets, call: &mut Call) {
        let Some((drive, continues)) = self.take_out(number) else { return };
        sets.look();
        notice_journal(
            call,
            Some(drive),
            if continues { NoticeKind::JournalDegraded } else { NoticeKind::JournalLost },
        );
        if !continues {
            self.lose(JournalLoss::Device, sets);
        }
        // Commands in the queue of a hung device would wait forever.
        sets.signal(Signal::DriveLost(drive));
    }

    /// The journal protects no more writes, for this reason.
    pub(super) fn lose(&mut self, why: JournalLoss, sets: &mut Sets) {
        if matches!(self.state, JournalState::Lost(_) | JournalState::None) {
            return;
        }
        self.state = JournalState::Lost(why);
        self.leave_out();
        self.orphan_groups(sets);
        sets.all_changed(AwaitedChange::Session);
        sets.signal(Signal::Changed);
    }

    /// Has it neither orphans nor redo backlogs? Then only its own work is to be advanced.
    pub(crate) fn is_plain(&self) -> bool {
        self.orphans.is_empty() && !self.replay.is_redoing()
    }

    /// A piece is written without its entry, because the journal is lost.
    pub(crate) fn add_orphan(&mut self, piece: u32) {
        self.orphans.push(piece);
    }

    /// Pieces whose entry never became durable leave the journal, unless `stays`. True if some left.
    pub(crate) fn release_orphans(&mut self, mut stays: impl FnMut(u32) -> bool) -> bool {
        let before = self.orphans.len();
        self.orphans.retain(|piece| stays(*piece));
        self.orphans.len() < before
    }

    /// A failed set is being forgotten: its entries stay in the journal until it is started again or they are discarded.
    /// False if there are none.
    pub(crate) fn preserve_entries(&mut self, set: &Set) -> bool {
        let known = self.superblock.as_ref().zip(uuid_of(set)).and_then(|(superblock, uuid)| superblock.index_of(uuid));
        known.is_some_and(|index| self.log.waiting_for(index) > 0) || self.wait_for_set_to_return(set)
    }

    /// A set has failed: the entries of its session wait until it is started again or they are discarded. False if none
    /// count.
    pub(crate) fn wait_for_set_to_return(&mut self, set: &Set) -> bool {
        let promised =
            matches!(set.journal.session(), Session::Marking | Session::On | Session::Leaving | Session::Unmarking);
        let Some(share) = set.journal.share().filter(|_| promised) else { return false };
        let table = self.superblock.as_ref().and_then(|s| s.arrays[usize::from(share.index)]);
        let since =
            table.filter(|array| Some(array.set_uuid) == uuid_of(set) && array.state != JournalArrayState::Discarded);
        let (Some(array), true) = (since, self.is_live()) else { return false };
        self.log.wait_for_array(share.index, array.first_sequence);
        true
    }
}

/// The result of pieces of an array whose entry never became durable, if it is known: when no data of the array is dirty
/// any more, and no session of it can still end. Until then a crash would replay older entries over what they wrote.
pub(crate) fn end_of_orphans(sets: &Sets, volume: &Volume) -> Option<Option<ReplyStatus>> {
    let mut sets = (0..volume.set_count()).map(|n| sets.get(volume.set(n)));
    let is_drained = |set: &Set| {
        let written = set.dirty.all() == 0 || set.dirty.is_refused();
        set.has_failed() || (written && !is_session_ending(set))
    };
    if !sets.clone().all(is_drained) {
        return None;
    }
    // A session that stays is replayed at the next start.
    let failed = sets.any(|set| set.has_failed() || set.dirty.has_failed() || set.journal.has_session());
    Some(failed.then_some(ReplyStatus::IoError))
}
