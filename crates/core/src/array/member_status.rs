//! The status of a set's members.

use alloc::vec::Vec;
use openraid_format::DeviceFlags;
use openraid_units::{DriveId, Sectors, Slot};

use super::bad_blocks::{BadRange, DriveRange};
use super::member::Member;
use super::set::Set;
use crate::geometry::shape::Side;
use crate::set_status::{MemberState, MemberStatus, TaskKind};

impl Set {
    /// The rows of its table of members: the slots in order, then the members without a slot. `outstanding` is the number
    /// of commands at a drive.
    pub(crate) fn member_table(&self, outstanding: impl Fn(DriveId) -> u32) -> Vec<MemberStatus> {
        let mut table = Vec::new();
        for (slot, place) in (0..self.slots()).map(Slot).zip(&self.places) {
            table.push(
                place.member().map_or_else(|| missing(slot), |index| self.member_status(index as usize, &outstanding)),
            );
            table.extend(place.replacement().map(|index| self.member_status(index as usize, &outstanding)));
        }
        for (index, member) in self.members.iter().enumerate() {
            if member.slot().is_none() && !member.is_removed() {
                table.push(self.member_status(index, &outstanding));
            }
        }
        table
    }

    fn member_status(&self, index: usize, outstanding: &impl Fn(DriveId) -> u32) -> MemberStatus {
        let member = &self.members[index];
        let mut state = member.state;
        if let (MemberState::Rebuilding { to }, Some(task)) = (&mut state, self.tasks.current()) {
            let mine = task.slot() == member.slot();
            if mine && (member.is_replacement() == (task.kind() == TaskKind::Replace)) {
                *to = task.done_sectors();
            }
        }
        let unrecorded = self.unrecorded_fill().filter(|fill| fill.slot() == member.slot() && !member.is_replacement());
        if let (MemberState::InSync, Some(fill)) = (state, unrecorded) {
            state = MemberState::Rebuilding { to: Sectors(fill.total()) };
        }
        MemberStatus {
            slot: member.slot(),
            left: member.left(),
            drive: Some(member.drive()),
            device: member.superblock.as_ref().map(|superblock| superblock.device_uuid),
            state,
            replacement: member.is_replacement(),
            flags: member.superblock.as_ref().map_or(DeviceFlags::default(), |superblock| superblock.device_flags),
            is_full: member.is_full(),
            media_errors: member.media_errors,
            bad_blocks: u32::try_from(member.bad.ranges().len()).expect("bounded"),
            outstanding: outstanding(member.drive()),
            sectors_read: member.counters.sectors_read,
            sectors_written: member.counters.sectors_written,
            reads: member.counters.reads,
            writes: member.counters.writes,
            flushes: member.counters.flushes,
        }
    }

    /// Known bad ranges of its members: slot and range.
    pub(crate) fn bad_ranges(&self) -> Vec<(Option<Slot>, BadRange)> {
        let in_data = |m: &Member, bad: &DriveRange| {
            Some((m.slot(), BadRange { at: m.range_in_data(Side::Old, *bad)?, len: bad.len() }))
        };
        self.members.iter().flat_map(|m| m.bad.ranges().iter().filter_map(move |b| in_data(m, b))).collect()
    }
}

fn missing(slot: Slot) -> MemberStatus {
    MemberStatus {
        slot: Some(slot),
        left: None,
        drive: None,
        device: None,
        state: MemberState::Missing,
        replacement: false,
        flags: DeviceFlags::default(),
        is_full: false,
        media_errors: 0,
        bad_blocks: 0,
        outstanding: 0,
        sectors_read: 0,
        sectors_written: 0,
        reads: 0,
        writes: 0,
        flushes: 0,
    }
}
