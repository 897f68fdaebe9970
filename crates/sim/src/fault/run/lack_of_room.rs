//! Members whose storage becomes full, and has room again.

use openraid_core::admin::{Health, MemberState, WriteCache};
use openraid_core::events::RequestKind;
use openraid_units::{DriveId, Nanos};

use super::{Run, RunResult};
use crate::drive::DriveRoom;
use crate::fault::fault_names::Fault;
use crate::oracle::redundancy::superblock_on;

/// Limit of the new room of a full member, in blocks of 4 KiB.
const LEFT_MOST: u64 = 12;
/// Much longer than the pause after which the engine tries full members again.
const LATER: Nanos = Nanos::from_secs(60);

impl Run<'_> {
    /// Some members of a set become full, at least one. In a bounded run hosts then send `count` requests, everything is
    /// read, and there is room again before the next action.
    pub(super) fn fill(&mut self, count: u64, seed: u64) -> RunResult {
        let set = self.some_set();
        if !self.bounded() {
            self.sets[set].note_places(&self.world);
            self.fill_some(set);
            return Ok(());
        }
        self.resume_all();
        self.session.ask(&mut self.world, RequestKind::Flush, 0..0);
        self.rest()?;
        // A set that needs redos of a journal waits for room.
        let bears = self.sets[set].is_redundant() && !self.sets[set].dirty && !self.sets[set].unfit;
        let through =
            !self.cached && self.scenario.journal.is_none() && self.policy.write_cache != WriteCache::Volatile;
        if !bears || !through || !self.whole(set) || self.sets[set].is_losing(&self.world) {
            return Ok(());
        }
        self.fill_some(set);
        let before = self.states(set);
        self.session.bears_no_room = true;
        self.ask(count, seed)?;
        if self.some_wait() && self.random.chance(1, 2) {
            // In time for what their storage has kept.
            self.make_room();
        }
        self.drain()?;
        self.look()?;
        if self.states(set) != before {
            return Err(self.lost("a member without room has failed"));
        }
        self.make_room();
        self.wait(LATER)?;
        self.session.bears_no_room = false;
        let array = self.sets[set].array;
        let Some(status) = self.world.status(array) else { return Ok(()) };
        let is_well = status.members.iter().all(|member| !member.is_full && member.bad_blocks == 0);
        match is_well && status.health == Health::Optimal {
            true => Ok(()),
            false => Err(self.lost("there is room again, and the array does not get well")),
        }
    }

    fn states(&self, set: usize) -> Vec<MemberState> {
        let status = self.world.status(self.sets[set].array);
        status.into_iter().flat_map(|status| status.members).map(|member| member.state).collect()
    }

    fn fill_some(&mut self, set: usize) {
        let drives: Vec<DriveId> = self.sets[set].places().map(|place| place.drive).collect();
        if drives.is_empty() {
            return;
        }
        self.count(Fault::NoRoom);
        let (sure, mut waits) = (self.random.index(drives.len()), false);
        for (number, drive) in drives.into_iter().enumerate() {
            let is_full = number == sure || self.random.chance(1, 2);
            let (seed, left) = (self.random.bits(), self.random.below(LEFT_MOST));
            let Some(superblock) = superblock_on(&self.world, drive).filter(|_| is_full) else { continue };
            self.log(|| format!("  {}: new room for {left} blocks of 4 KiB", self.name(drive)));
            let area = superblock.data_offset..superblock.data_offset + superblock.data_size;
            self.world.drive_mut(drive).faults.room = Some(DriveRoom::half(area, seed, left));
            waits |= self.world.drive(drive).spec().room_wait != Nanos::ZERO;
        }
        if waits {
            self.count(Fault::RoomWait);
        }
    }

    /// All drives have room again.
    pub(super) fn make_room(&mut self) {
        for drive in (0..self.world.drives_len()).map(super::drive_id) {
            self.world.give_room(drive);
        }
    }

    /// Whether the storage of some drives keeps writes for a time.
    fn some_wait(&self) -> bool {
        self.scenario.drive.room_wait != Nanos::ZERO
    }
}
