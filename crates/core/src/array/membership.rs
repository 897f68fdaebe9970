//! Members: the entry of a new one, and the set to which an array's members belong.

use alloc::boxed::Box;
use openraid_format::Superblock;
use openraid_units::{ArrayId, DriveId, DriveLba, SetId, Slot};

use super::bad::{BadList, BadRange};
use super::defects::Defects;
use super::set::{Counters, Life, Member, Seat, Trust};
use super::sets::Sets;
use super::volume::Volume;
use crate::admin::{AdminError, MemberState};
use crate::array::conditions::Comeback;
use crate::array::volume::Arrays;
use crate::call::Base;

impl Arrays {
    pub(crate) fn set_of(&self, sets: &Sets, id: ArrayId) -> Result<SetId, AdminError> {
        let set = self.direct_set_of(id)?;
        match sets.get(set).life {
            Life::Running => Ok(set),
            Life::Starting | Life::Stopping | Life::Failed => Err(AdminError::Offline),
        }
    }

    /// The same for an array in any state of its life.
    pub(crate) fn direct_set_of(&self, id: ArrayId) -> Result<SetId, AdminError> {
        let array = self.find(id).ok_or(AdminError::NoSuchArray(id))?;
        match array.volume {
            Volume::Direct(set) => Ok(set),
            Volume::Striped { .. } => {
                Err(AdminError::NotPossible("this is a nested array: name the span that the member belongs to"))
            }
        }
    }
}

impl Sets {
    /// Whether the waiting commands of a set's members are sorted by position depends on the policy and on the members.
    pub(crate) fn sort_members(&mut self, arrays: &mut Arrays, base: &mut Base, id: SetId) {
        let set = self.get_mut(id);
        let was_flash = core::mem::replace(&mut set.is_flash, true);
        for member in set.members.iter().filter(|member| !member.is_removed()) {
            base.channels.sort(member.drive, set.policy.sorting);
            set.is_flash &= base.channels.get(member.drive).is_some_and(|channel| !channel.info().rotational);
        }
        if set.is_flash != was_flash {
            self.reset_adaptive(arrays, base, id);
        }
    }
}

impl Member {
    /// Its number in the role table.
    pub(crate) fn number(&self) -> Option<u32> {
        self.superblock.as_ref().map(|s| s.dev_number)
    }

    /// It came back, and needs only what the bitmap marks if it gets this slot.
    pub(crate) fn returning_to(self, slot: Option<Slot>) -> Self {
        Self { seat: slot.map_or(Seat::None, Seat::Returns), ..self }
    }
}

pub(crate) fn new_member(
    drive: DriveId,
    slot: Option<Slot>,
    state: MemberState,
    data_offset: DriveLba,
    superblock: Option<Superblock>,
    known_bad: &[BadRange],
) -> Member {
    Member {
        drive,
        seat: slot.map_or(Seat::None, Seat::Holds),
        state,
        starts: [data_offset; 2],
        bad: BadList::new(superblock.as_ref(), data_offset, known_bad),
        lacks_room: None,
        failed_at: None,
        comeback: Comeback::No,
        superblock: superblock.map(Box::new),
        // Data that was written before this start may still be in the drive's cache.
        unflushed: true,
        trust: Trust::Sound,
        flushing: 0,
        media_errors: 0,
        defects: Defects::new(),
        counters: Counters::default(),
    }
}
