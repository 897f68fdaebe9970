//! Bad ranges of members are recorded, and their logs are full.

use crate::actions::NoticeKind;
use crate::array::bad_blocks::DriveRange;
use crate::array::sets::Sets;
use crate::call::Call;
use crate::geometry::shape::Side;
use openraid_units::{DriveLba, MemberLba, Sectors, SetId};

impl Sets {
    /// A write over known bad sectors succeeded: they are good again.
    pub(crate) fn clear_bad(&mut self, id: SetId, member: u32, from: DriveLba, len: Sectors) {
        let set = self.get_mut(id);
        let entry = &mut set.members[member as usize];
        if !entry.bad.remove(from.get(), from.get() + len.get()) {
            return;
        }
        set.refresh_bad();
        set.metadata.as_mut().expect("it has a log").request();
        self.look();
    }
    /// This range of a member is lost, or must not be believed: enter it in the member's bad-block log. False if
    /// that is not possible: the member keeps no log, or it is full.
    #[must_use]
    pub(crate) fn record_bad(&mut self, (id, side): (SetId, Side), member: u32, at: MemberLba, len: Sectors) -> bool {
        let set = self.get_mut(id);
        let entry = &mut set.members[member as usize];
        let range = DriveRange::of(entry.on_drive(side, at), len);
        if entry.bad.covers(range) {
            return true;
        }
        let recorded = entry.bad.insert(range);
        if recorded {
            set.has_bad = true;
            // Like a failed member: what depends on it is acknowledged when it is on disk.
            set.metadata.as_mut().expect("it has a log").request_distrust();
        }
        self.look();
        recorded
    }

    /// Enter a range that no redundancy is left to restore.
    #[must_use]
    pub(crate) fn record_lost(
        &mut self,
        (id, side): (SetId, Side),
        member: u32,
        at: MemberLba,
        len: Sectors,
        call: &mut Call,
    ) -> bool {
        let entry = self.get(id).member(member);
        let (slot, drive, lba) = (entry.slot(), entry.drive, entry.on_drive(side, at));
        if !entry.bad.covers(DriveRange::of(lba, len)) {
            call.notice(self, (id, slot), Some(drive), NoticeKind::SectorLost(lba));
        }
        self.record_bad((id, side), member, at, len)
    }
}
