//! Devices of an earlier moment: an older copy of the journal, or of a member, is there at a start.
//!
//! Superblocks say how far the journal had come, and their event counts move while arrays are written. An older device
//! that lacks an interval of that is refused or left out, and the right one is taken afterwards.

use openraid_core::admin::{AdminCommand, AdminError, MemberState};
use openraid_core::array::assemble::{self, AssembleOptions};
use openraid_format::FeatureMap;
use openraid_units::{DriveId, Slot};

use super::journal::BeginResult;
use super::power::LostDriveFate;
use super::{Run, RunResult, Stop};
use crate::drive::image::Image;
use crate::fault::fault_names::Fault;
use crate::fault::scenario::{Action, ControllerEnd};
use crate::oracle::redundancy::superblock_on;

/// Copies of devices.
#[derive(Clone, Debug)]
pub(super) struct Older {
    /// The devices of the journal.
    journal: Vec<Image>,
    /// The last entry of the journal that was durable then.
    durable: u64,
    member: Option<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    drive: DriveId,
    image: Image,
    /// The event count of its superblock.
    events: u64,
}

impl Run<'_> {
    /// Copy devices, or start with their content of an earlier moment.
    pub(super) fn earlier(&mut self, action: Action) -> RunResult {
        match action {
            Action::KeepImages => self.keep_images(),
            Action::OlderMember => self.older_member()?,
            Action::OlderJournal => self.older_journal()?,
            _ => self.older_version()?,
        }
        Ok(())
    }

    /// Copy the devices of the journal, and one member.
    fn keep_images(&mut self) {
        self.note_journal();
        let set = self.some_set();
        self.sets[set].note_places(&self.world);
        let full: Vec<DriveId> =
            self.sets[set].places().filter(|place| place.is_full()).map(|place| place.drive).collect();
        let drive = (!full.is_empty()).then(|| *self.random.pick(&full));
        let member = drive.and_then(|drive| {
            let events = superblock_on(&self.world, drive)?.events;
            Some(Member { drive, image: self.world.drive(drive).image().clone(), events })
        });
        let journal = self.journal_devices().iter().map(|drive| self.world.drive(*drive).image().clone());
        let journal = journal.collect();
        let durable = self.world.journal().map_or(0, |journal| journal.durable);
        self.older = Some(Older { journal, durable, member });
    }

    /// The power is cut, and the older copy of the journal is there at the next start. Afterwards the right one is.
    fn older_journal(&mut self) -> RunResult {
        let Some(older) = self.older.clone() else { return Ok(()) };
        let devices = self.journal_devices().to_vec();
        let works = |drive: &DriveId| !self.world.drive(*drive).faults.is_failing();
        let set = self.random.index(self.sets.len());
        if devices.is_empty() || !devices.iter().all(works) || self.is_journal_hurt() || self.sets[set].uuid.is_none() {
            return Ok(());
        }
        self.suspect();
        if !self.prepare_end(LostDriveFate::StayAway)? {
            return Ok(());
        }
        self.count_end(ControllerEnd::Cut);
        self.go_down(ControllerEnd::Cut)?;
        let right: Vec<Image> = devices.iter().map(|drive| self.world.drive(*drive).image().clone()).collect();
        let before = self.images(set);
        self.put_images(&devices, &older.journal);
        self.world.boot();
        self.try_older_journal(set, &devices, older.durable)?;
        self.world.cut_power();
        if self.bounded() && self.images(set) != before {
            return Err(Stop::Lost("an older copy of the journal has changed the members".into()));
        }
        self.put_images(&devices, &right);
        self.boot(None)
    }

    fn put_images(&mut self, drives: &[DriveId], images: &[Image]) {
        for (drive, image) in drives.iter().zip(images) {
            self.world.drive_mut(*drive).put_image(image);
        }
    }

    /// Start a set with the older journal, if its members have seen later entries, and a session was on.
    fn try_older_journal(&mut self, number: usize, devices: &[DriveId], durable: u64) -> RunResult {
        let uuid = self.sets[number].uuid;
        let mut candidates = self.world.candidates();
        candidates.retain(|candidate| Some(candidate.superblock.set_uuid) == uuid);
        let Ok(plan) = assemble::plan(&candidates, AssembleOptions::default()) else { return Ok(()) };
        // Without a session the journal has nothing of the set, whatever a superblock before the newest says.
        if plan.common.journal.is_none() {
            return Ok(());
        }
        let seen = plan.members.iter().filter_map(|member| member.superblock.journal_reached).max();
        let (Some(seen), Ok(_)) = (seen, self.world.attach_journal(devices)) else { return Ok(()) };
        let ends = self.world.journal().map_or(u64::MAX, |journal| journal.durable);
        if self.bounded() && ends < durable {
            return Err(self.lost("a copy of the journal has lost entries that were durable"));
        }
        if ends >= seen.entry {
            self.log(|| "  the copy lacks less than an interval: it is not tried".into());
            return Ok(());
        }
        self.count(Fault::OlderJournal);
        self.log(|| format!("  the copy ends with entry {ends}, and members have seen entry {}", seen.entry));
        match self.start(AdminCommand::StartSet(plan), &mut None)? {
            BeginResult::Refused(AdminError::OlderLog(_)) => Ok(()),
            BeginResult::Refused(error) => {
                Err(self.lost(format!("an older journal is refused by another name: {error}")))
            }
            BeginResult::Started(_) | BeginResult::Done | BeginResult::PowerGoes => {
                Err(self.lost("an older copy of the journal is taken"))
            }
        }
    }

    /// The power is cut, and a member with its own content of an earlier moment is there at the next start.
    fn older_member(&mut self) -> RunResult {
        let Some(member) = self.older.as_ref().and_then(|older| older.member.clone()) else { return Ok(()) };
        self.note_journal();
        self.suspect();
        if !self.prepare_end(LostDriveFate::StayAway)? {
            return Ok(());
        }
        let Some((set, slot)) = self.place_that_may_go(member.drive) else { return Ok(()) };
        let closed = self.is_journalled(set) || self.is_recorded(set);
        if self.bounded() && self.sets[set].has_parity() && !closed {
            return Ok(());
        }
        if self.is_recorded(set) {
            self.give_up_in_flight(set, slot);
        }
        self.count_end(ControllerEnd::Cut);
        self.lost.push(member.drive);
        self.go_down(ControllerEnd::Cut)?;
        self.sets[set].whole = false;
        let others = (0..self.world.drives_len()).map(super::drive_id).filter(|drive| *drive != member.drive);
        let others = others.filter(|drive| !self.world.drive(*drive).faults.gone);
        let others = others.filter_map(|drive| superblock_on(&self.world, drive));
        let newest = others
            .filter(|superblock| Some(superblock.set_uuid) == self.sets[set].uuid)
            .map(|superblock| superblock.events)
            .max();
        if newest.is_none_or(|newest| member.events + 1 >= newest) {
            self.log(|| "  the copy lacks less than an interval: the drive is not there".into());
            self.world.drive_mut(member.drive).faults.gone = true;
            return self.boot(None);
        }
        self.count(Fault::OlderMember);
        self.log(|| format!("  {} has its content of an earlier moment", self.name(member.drive)));
        self.world.drive_mut(member.drive).put_image(&member.image);
        self.boot(None)?;
        let status = self.world.status(self.sets[set].array);
        let mut members = status.iter().flat_map(|status| &status.members);
        let works = |state| matches!(state, MemberState::InSync | MemberState::Failing(_));
        if self.bounded() && members.any(|other| other.drive == Some(member.drive) && works(other.state)) {
            return Err(self.lost("a member of an earlier moment is taken as in sync"));
        }
        Ok(())
    }

    /// The power is cut. The superblocks are as a version wrote them that did not record how far the journal had come.
    fn older_version(&mut self) -> RunResult {
        self.suspect();
        if !self.prepare_end(LostDriveFate::StayAway)? {
            return Ok(());
        }
        self.count(Fault::OlderVersion);
        self.count_end(ControllerEnd::Cut);
        self.go_down(ControllerEnd::Cut)?;
        for drive in (0..self.world.drives_len()).map(super::drive_id) {
            let Some(mut superblock) = superblock_on(&self.world, drive) else { continue };
            if self.sets.iter().any(|set| set.uuid == Some(superblock.set_uuid))
                && superblock.journal_reached.take().is_some()
            {
                superblock.features.set(FeatureMap::JOURNAL_REACHED, false);
                self.put_superblock(drive, &superblock);
            }
        }
        self.boot(None)
    }

    /// The place of a drive, if the run may lose it now.
    fn place_that_may_go(&self, drive: DriveId) -> Option<(usize, Slot)> {
        let is_it = |set: &crate::fault::judged_set::RunSet| {
            set.places().find(|place| place.drive == drive && place.is_full()).map(|place| place.slot)
        };
        let (number, slot) = self.sets.iter().enumerate().find_map(|(number, set)| Some((number, is_it(set)?)))?;
        let status = self.world.status(self.sets[number].array)?;
        let absent = self.sets[number].absent(&self.world, &status);
        (!absent.contains(slot) && self.may_lose(number, slot, absent)).then_some((number, slot))
    }
}
