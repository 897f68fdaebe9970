//! The administrator's commands about members: fail, lose, remove, add, replace, return.

use openraid_format::DeviceRole;
use openraid_units::ArrayId;
use openraid_units::DriveId;
use openraid_units::SetId;
use openraid_units::Slot;

use crate::actions::Actions;
use crate::admin_answer::AdminError;
use crate::admin_answer::AdminOutcome;
use crate::array::member::new_member;
use crate::array::member::Member;
use crate::array::metadata::Metadata;
use crate::array::new_array::NewMember;
use crate::array::set::Set;
use crate::array::sets::Signal;
use crate::array::suitable_drive::check_suits;
use crate::call::Call;
use crate::controller::Controller;
use crate::ppl::recovery::prepare_log;
use crate::reason::FailReason;
use crate::set_status::MemberState;
use crate::set_status::TaskKind;

impl Controller {
    pub(super) fn admin_fail(
        &mut self,
        array: ArrayId,
        drive: DriveId,
        unsynced: bool,
        actions: &mut Actions,
    ) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let set = self.sets.get(id);
        if !set.is_redundant() {
            return Err(AdminError::NoRedundancy);
        }
        let index = set.member_by_drive(drive).ok_or(AdminError::NoSuchDrive(drive))?;
        let member = set.member(index);
        if member.state() == MemberState::InSync && !member.is_replacement() {
            let slot = member.slot().expect("a working member has a slot");
            if !self.sets.survives_without(id, slot) {
                return Err(AdminError::WouldLoseArray);
            }
            if !unsynced && set.unsynced_need(slot) {
                return Err(AdminError::NeededByUnsynced);
            }
        }
        self.sets.fail_member((id, index), FailReason::Administrator, &mut Call::new(&mut self.base, actions));
        Ok(AdminOutcome::Done)
    }

    /// A drive is gone. Errors of its last commands may have failed it already.
    pub(super) fn admin_lose(&mut self, drive: DriveId, actions: &mut Actions) -> Result<AdminOutcome, AdminError> {
        self.base.channels.get(drive).ok_or(AdminError::NoSuchDrive(drive))?;
        // A drive belongs to one set at most.
        let uses = |(id, set): (SetId, &Set)| Some((id, set.member_by_drive(drive)?));
        let member = self.sets.iter().find_map(uses);
        if let Some(member) = member {
            self.sets.lose_member(member, &mut Call::new(&mut self.base, actions));
        }
        if let Some(number) = self.journal.device_of(drive) {
            self.sets.signal(Signal::JournalDeviceGone(number));
        }
        Ok(AdminOutcome::Done)
    }

    pub(super) fn admin_remove(&mut self, array: ArrayId, drive: DriveId) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let set = self.sets.get_mut(id);
        let index = set.member_by_drive(drive).ok_or(AdminError::NoSuchDrive(drive))?;
        match set.member(index).state() {
            MemberState::Faulty(_) | MemberState::Spare | MemberState::Missing => {}
            MemberState::InSync | MemberState::Rebuilding { .. } | MemberState::Failing(_) => {
                return Err(AdminError::MemberInUse(drive));
            }
        }
        if set.take_out(index) {
            set.metadata.as_mut().ok_or(AdminError::NoRedundancy)?.request();
        }
        self.base.channels.release(&[drive]);
        Ok(AdminOutcome::Done)
    }

    pub(super) fn admin_add(
        &mut self,
        array: ArrayId,
        new: NewMember,
        actions: &mut Actions,
    ) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        if self.sets.get(id).shape().is_linear() {
            return Err(AdminError::NotPossible(
                "linear has no spares; `openraid reshape ARRAY --members DRIVE` gives it another drive at its end",
            ));
        }
        // A mirror of one member becomes one of more when it has spares.
        let common = self.sets.get(id).metadata.as_ref().map(Metadata::common);
        if !common.is_some_and(|common| common.level.is_redundant()) {
            return Err(AdminError::NoRedundancy);
        }
        let info = self.base.channels.get(new.drive).ok_or(AdminError::NoSuchDrive(new.drive))?.info();
        let set = self.sets.get(id);
        check_suits(set, &new, info)?;
        self.base.channels.claim(&[new.drive], id)?;
        let by_bitmap = self.sets.slot_by_bitmap(id, &new.superblock).filter(|_| new.returning);
        let set = self.sets.get_mut(id);
        // Superblocks that are being written state the roles of the time when they began. A new member with the number
        // of a missing member would get the role of the missing member.
        let under_way = set.metadata.as_ref().and_then(Metadata::being_written);
        let called = |n| under_way.is_some_and(|written| matches!(written.roles.get(n), DeviceRole::Active(_)));
        let used = |n: u32| called(n) || set.members().iter().any(|m| !m.is_removed() && m.number() == Some(n));
        let former = new.superblock.dev_number;
        let number = if by_bitmap.is_some() && !used(former) {
            former
        } else {
            let first = u32::from(set.slots());
            (first..).find(|n| !used(*n)).expect("numbers do not run out")
        };
        let mut superblock = new.superblock;
        superblock.dev_number = number;
        // A member that left in the middle of a change comes as one that knows of none.
        superblock.forget_change();
        superblock.set_recovery_offset(None);
        let member = new_member(new.drive, None, MemberState::Spare, superblock.data_offset, Some(superblock), &[])
            .returning_to(by_bitmap);
        let metadata = set.metadata.as_mut().expect("redundant sets have metadata");
        metadata.grow_roles(number);
        metadata.request();
        // If a removed drive still has unanswered commands, their ends are reported by its place in the table.
        let (set, channels) = (self.sets.get(id), &self.base.channels);
        let is_free =
            |other: &Member| other.is_removed() && !other.is_flushing() && channels.outstanding(other.drive()) == 0;
        let vacant = set.find_member(is_free);
        let index = self.sets.get_mut(id).add_member(member, vacant);
        prepare_log(&mut self.sets, id, index as usize, &mut Call::new(&mut self.base, actions));
        self.sets.sort_members(&mut self.arrays, &mut self.base, id);
        Ok(AdminOutcome::Done)
    }

    pub(super) fn admin_replace(
        &mut self,
        array: ArrayId,
        slot: Slot,
        with: Option<DriveId>,
    ) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let set = self.sets.get(id);
        if slot.0 >= set.slots() || !set.in_sync().contains(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        if set.tasks.reshape().is_some() {
            return Err(AdminError::TaskRuns(TaskKind::Reshape));
        }
        if set.place(slot).replacement().is_some() {
            return Err(AdminError::NotPossible("this member is being replaced already"));
        }
        if set.is_kept_by_journal() {
            return Err(AdminError::NotPossible(
                "a flush of a member failed, and only the journal has the data that this member may have dropped: \
                 restart the server, which writes that data again, before anything is copied",
            ));
        }
        let suits = |m: &Member| {
            m.state() == MemberState::Spare && !m.is_removed() && with.is_none_or(|drive| m.drive() == drive)
        };
        let spare = set
            .find_member(suits)
            .ok_or(AdminError::NotPossible("there is no spare to replace it with; add one first"))?;
        if set.ppl.as_ref().is_some_and(|ppl| ppl.is_preparing()) {
            return Err(AdminError::PreparingLog);
        }
        let drive = set.member(spare).drive();
        if self.base.channels.outstanding(drive) > 0 {
            return Err(AdminError::CommandsOutstanding(drive));
        }
        self.sets.get_mut(id).begin_replacement(slot, spare);
        Ok(AdminOutcome::Done)
    }

    /// A member that was out of reach answers again, and has everything that it acknowledged.
    pub(crate) fn admin_return(
        &mut self,
        array: ArrayId,
        drive: DriveId,
        actions: &mut Actions,
    ) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.direct_set_of(array)?;
        if self.arrays.find(array).is_some_and(|array| array.is_stopping()) {
            return Err(AdminError::Offline);
        }
        let set = self.sets.get_mut(id);
        let index = set.member_by_drive(drive).ok_or(AdminError::NoSuchDrive(drive))?;
        let member = set.member_mut(index);
        if !member.may_come_back() || !member.is_sound() {
            return Err(AdminError::NotPossible("the member has not failed, or may lack writes: add it again"));
        }
        if self.base.channels.outstanding(drive) > 0 {
            return Err(AdminError::CommandsOutstanding(drive));
        }
        member.come_back();
        let done = self.sets.revive(id, &mut Call::new(&mut self.base, actions));
        done.map(|()| AdminOutcome::Done).map_err(AdminError::NotPossible)
    }
}
