//! How a member fails, in the life of a member, and what its set does then.
//!
//! ```text
//!              Add                 a slot is vacant            all is restored and flushed
//!   (outside) -----> Spare ----------------------> Rebuilding ----------------------> InSync
//!                      |                               |                                |
//!                      |            an error, or the administrator                      |
//!                      v                               v                                v
//!                    Faulty <------------------------ Failing <-------------------------+
//!                      |       recorded on the others
//!                      v Remove
//!                  (outside)
//! ```
//!
//! A failed set may take back members whose failure is not recorded: see [`revival`](super::revival).

use openraid_units::{Instant, Nanos, SetId, Slot};

use super::member::{Seat, Trust};
use super::set::{Life, Set};
use crate::actions::{Fill, NoticeKind};
use crate::array::awaited_changes::AwaitedChange;
use crate::array::member::Comeback;
use crate::array::set::Remains;
use crate::array::sets::{Sets, Signal};
use crate::call::Call;
use crate::check_results::AbortReason;
use crate::reason::FailReason;
use crate::set_status::{MemberState, TaskKind};
use crate::slot_set::SlotSet;

/// Greatest time from the first error of a device to its removal: default `dev_loss_tmo` of Linux's Fibre Channel and SRP
/// transports (`scsi_transport_fc.c`, `scsi_transport_srp.c`). For SAS and SATA, it is less than a second.
const REMOVAL_MAX: Nanos = Nanos::from_secs(60);

/// May a device that is being removed be the cause of this failure?
const fn is_command_error(reason: FailReason) -> bool {
    match reason {
        FailReason::Timeout
        | FailReason::WriteError
        | FailReason::FlushFailed
        | FailReason::ErrorBudget
        | FailReason::Protocol
        | FailReason::ReadOnly
        | FailReason::BadBlockLogFull => true,
        FailReason::Administrator | FailReason::Replaced | FailReason::Gone | FailReason::NoSpace => false,
    }
}

impl Sets {
    /// A member has failed. True if the array continues without it. False if the array needs it and keeps it; then the
    /// error belongs to the operation that met it.
    pub(crate) fn fail_member(&mut self, (id, index): (SetId, u32), reason: FailReason, call: &mut Call) -> bool {
        let set = self.get(id);
        let member = &set.members[index as usize];
        let (state, slot, drive) = (member.state, member.slot(), member.drive);
        match state {
            MemberState::Failing(_) | MemberState::Faulty(_) | MemberState::Missing => {
                return set.life != Life::Failed;
            }
            MemberState::Spare | MemberState::Rebuilding { .. } | MemberState::InSync => {}
        }
        let is_lasting =
            matches!(reason, FailReason::Gone | FailReason::Timeout | FailReason::Protocol | FailReason::Administrator);
        if self.is_needed(id, index) {
            if is_lasting {
                self.lose_array((id, index), reason, call);
            } else if reason == FailReason::FlushFailed {
                self.distrust_member((id, index), Trust::FlushFailed, call);
            }
            return false;
        }
        call.notice(self, (id, slot), Some(drive), NoticeKind::Fail(reason));
        let set = self.get_mut(id);
        let entry = &mut set.members[index as usize];
        (entry.state, entry.failed_at) = (MemberState::Failing(reason), Some(call.now()));
        let replaced = if let Seat::Replaces(slot) = entry.seat { Some(slot) } else { None };
        let was_full = state == MemberState::InSync && replaced.is_none();
        entry.comeback = if was_full { Comeback::after(reason) } else { Comeback::No };
        if let Some(slot) = replaced {
            entry.seat = Seat::Left(slot);
            set.places[slot.index()].end_replacement();
        }
        let task = set.tasks.current().map(|t| (t.kind(), t.slot()));
        let stops = match task {
            Some((TaskKind::Rebuild | TaskKind::Replace, filled)) => filled == slot,
            Some((TaskKind::Resync | TaskKind::Check | TaskKind::Repair, _)) => state == MemberState::InSync,
            Some((TaskKind::Reshape, _)) | None => false,
        };
        if stops {
            set.cancel_task(AbortReason::MemberFailed);
        }
        let was_filled = replaced.is_none() && set.tasks.forget_fill(slot);
        set.refresh();
        set.metadata.as_mut().expect("redundant sets have metadata").request_failure();
        self.changed(id, AwaitedChange::Marks);
        if was_filled {
            call.notice(self, (id, slot), None, NoticeKind::RebuildAborted(Fill::Rebuild));
        }
        if was_full {
            self.forget_lost_copy(id);
            let tolerated = self.losses_tolerated(id);
            call.notice(self, (id, slot), Some(drive), NoticeKind::Degraded { tolerated });
        }
        self.signal(Signal::DriveLost(drive));
        true
    }
    /// The driver says that the drive of a member is gone. A set that failed keeps its last good state.
    pub(crate) fn lose_member(&mut self, (id, index): (SetId, u32), call: &mut Call) {
        let set = self.get(id);
        match set.members[index as usize].state {
            MemberState::Failing(_) | MemberState::Faulty(_) => self.explain_failure((id, index), call),
            _ if set.has_failed() => {}
            _ => _ = self.fail_member((id, index), FailReason::Gone, call),
        }
    }
    /// A failed member is gone. If errors of commands failed it a moment ago, they were the beginning of its removal: Linux
    /// answers the commands of a device that is being removed with EIO.
    fn explain_failure(&mut self, (id, index): (SetId, u32), call: &mut Call) {
        let entry = &mut self.get_mut(id).members[index as usize];
        if entry.failed_at.is_none_or(|at| call.now().since(at) > REMOVAL_MAX) {
            return;
        }
        match &mut entry.state {
            MemberState::Failing(reason) | MemberState::Faulty(reason) if is_command_error(*reason) => {
                *reason = FailReason::Gone;
            }
            _ => return,
        }
        let (slot, drive) = (entry.slot().or(entry.left()), entry.drive);
        call.notice(self, (id, slot), Some(drive), NoticeKind::Fail(FailReason::Gone));
    }
    /// A copy is lost. If copies may differ, the cache has data that it read from one of them. Reads from the cache
    /// must not return data that later reads from the other copies, and a rebuild, do not return.
    fn forget_lost_copy(&mut self, id: SetId) {
        let set = self.get(id);
        if set.shape.is_mirror() && !set.is_consistent_everywhere() {
            self.signal(Signal::CopyLost(id));
        }
    }
    /// A flush failed on a member that the array needs, or its metadata is stale: from now on no flush can succeed. This
    /// lasts until the array is assembled again, because the next flush of the drive may succeed although the drive dropped the data of the
    /// failed one.
    fn distrust_member(&mut self, (id, index): (SetId, u32), trust: Trust, call: &mut Call) {
        let set = self.get_mut(id);
        set.suspect = true;
        let member = &mut set.members[index as usize];
        let before = member.trust;
        member.trust = before.max(trust);
        if before != Trust::Sound {
            return;
        }
        let (slot, drive) = (member.slot(), member.drive);
        // No session begins any more: wake the operations that wait for one.
        self.changed(id, AwaitedChange::Life);
        self.signal(Signal::FlushFailed);
        call.notice(self, (id, slot), Some(drive), NoticeKind::FlushFailed);
    }
    /// The metadata of a member that the array needs could not be written: a mark that writes wait for, the failure of
    /// another member, or a journal session. Nothing that depends on such a record is acknowledged any more.
    pub(crate) fn note_stale_metadata(&mut self, id: SetId, index: u32, call: &mut Call) {
        if self.get(id).life == Life::Failed {
            return;
        }
        self.distrust_member((id, index), Trust::MetadataStale, call);
    }
    /// The array needs this member and it is gone: no metadata is written any more, so that the disks keep the last
    /// good state.
    pub(crate) fn lose_array(&mut self, (id, index): (SetId, u32), reason: FailReason, call: &mut Call) {
        let set = self.get_mut(id);
        let entry = &mut set.members[index as usize];
        (entry.state, entry.failed_at) = (MemberState::Faulty(reason), Some(call.now()));
        entry.comeback = Comeback::after(reason);
        let (slot, drive) = (entry.slot(), entry.drive);
        set.refresh();
        if set.is_redundant() {
            self.end_life(id, call.now());
        }
        self.changed(id, AwaitedChange::Life);
        // Writes may wait for something that will not happen any more, or until the journal may protect them.
        self.signal(Signal::Changed);
        call.notice(self, (id, slot), Some(drive), NoticeKind::Fail(reason));
        call.notice(self, (id, slot), Some(drive), NoticeKind::Failed);
        self.signal(Signal::DriveLost(drive));
    }
    /// Nothing of a set is written any more.
    fn end_life(&mut self, id: SetId, now: Instant) {
        let set = self.get_mut(id);
        set.cancel_task(AbortReason::MemberFailed);
        set.tasks.forget_fills();
        if let Some(task) = set.tasks.take_finished_scrub() {
            let events = set.events();
            set.tasks.end_scrub(&task, (events, now));
        }
        set.note_remains();
        set.life = Life::Failed;
        set.tasks.forget_rewrites();
        self.signal(Signal::Ended(id));
    }
    /// Rows of a set lack data that only the journal had and that cannot be read. The set counts as failed until it is
    /// started again, so that the content of these rows is not used.
    pub(crate) fn lose_rows(&mut self, id: SetId, call: &mut Call) {
        self.end_life(id, call.now());
        self.get_mut(id).remains = Remains::Unfit;
        self.changed(id, AwaitedChange::Life);
        self.signal(Signal::Changed);
        call.notice(self, (id, None), None, NoticeKind::Failed);
    }
    /// A generation of superblocks is durable: failures that it records are complete.
    pub(crate) fn on_generation_durable(&mut self, id: SetId) {
        let set = self.get_mut(id);
        if !set.metadata.as_ref().is_some_and(super::metadata::Metadata::failures_recorded) {
            return;
        }
        let mut vacated = false;
        for index in 0..set.members.len() {
            let member = &mut set.members[index];
            let MemberState::Failing(reason) = member.state else { continue };
            (member.state, member.comeback) = (MemberState::Faulty(reason), Comeback::No);
            let Some(slot) = member.slot() else { continue };
            member.seat = Seat::Left(slot);
            let place = &mut set.places[slot.index()];
            vacated = true;
            // A replacement that was being filled continues as the member of the slot.
            if let Some(heir) = place.succeed() {
                set.member_mut(heir).seat = Seat::Holds(slot);
                set.tasks.forget_replacement(slot);
            }
        }
        if vacated {
            set.refresh();
            if set.members.iter().any(|m| m.state == MemberState::Spare) {
                self.changed(id, AwaitedChange::Marks);
            }
        }
    }
    /// Is this a working member that the array cannot do without?
    pub(crate) fn is_needed(&self, id: SetId, index: u32) -> bool {
        let member = &self.get(id).members[index as usize];
        member.state == MemberState::InSync
            && !member.is_replacement()
            && !self.survives_without(id, member.slot().expect("a working member has a slot"))
    }
    /// Number of further members that may fail, whichever they are. It is 0 while the redundancy is not in sync.
    fn losses_tolerated(&self, id: SetId) -> u16 {
        let set = self.get(id);
        if !set.is_consistent_everywhere() {
            return 0;
        }
        set.shape.losses_survived_without(SlotSet::first_n(set.slots()).minus(set.in_sync))
    }
    /// Would the array still have all data if this slot were missing too?
    pub(crate) fn survives_without(&self, id: SetId, slot: Slot) -> bool {
        let set = self.get(id);
        let missing = SlotSet::first_n(set.slots()).minus(set.in_sync.without(slot));
        set.shape.survives(missing, set.joined.without(slot))
    }
}

impl Set {
    /// Abort a task, and record why.
    pub(crate) fn cancel_task(&mut self, why: AbortReason) {
        if !self.has_failed() {
            self.tasks.cancel(why);
        }
    }

    /// The event count of its superblocks.
    pub(crate) fn events(&self) -> u64 {
        self.metadata.as_ref().map_or(0, |metadata| metadata.common().events)
    }
}
