//! Members that leave, return, and are replaced.

use openraid_core::admin::{AdminCommand, ArrayStatus, Health, MemberState};
use openraid_core::events::DriveError;
use openraid_core::slot_set::SlotSet;
use openraid_units::{DriveId, Nanos, Slot};

use super::{Run, RunResult};
use crate::drive::LateCommands;
use crate::fault::fault_names::Fault;
use crate::rig::Loss;

/// Silence of a drive after which the controller may give it up.
const SILENCE_BORNE: Nanos = Nanos::from_secs(20);
/// Greatest delay of a late answer.
const LATE_MOST: Nanos = Nanos::from_millis(800);

impl Run<'_> {
    /// A set and a working slot of it that the run may lose now.
    pub(super) fn victim(&mut self) -> Option<(usize, Slot, DriveId)> {
        let set = self.some_set();
        let status = self.world.status(self.sets[set].array)?;
        let absent = self.sets[set].absent(&self.world, &status);
        let present: Vec<Slot> = (0..self.sets[set].slots()).map(Slot).filter(|s| !absent.contains(*s)).collect();
        if present.is_empty() {
            return None;
        }
        let mut slot = *self.random.pick(&present);
        if self.scenario.aimed {
            let ahead = |slot: &Slot| drive_of(&status, *slot).is_some_and(|drive| self.is_ahead(set, drive));
            slot = present.iter().copied().find(ahead).unwrap_or(slot);
        }
        let drive = drive_of(&status, slot)?;
        self.may_lose(set, slot, absent).then_some((set, slot, drive))
    }

    pub(super) fn may_lose(&self, set: usize, slot: Slot, absent: SlotSet) -> bool {
        let set = &self.sets[set];
        // Until copies match again, repeated reads may return different data if another member is read.
        if set.dirty && !set.has_parity() && self.scenario.stable_reads {
            return false;
        }
        if !self.bounded() {
            return true;
        }
        let gone = absent | set.scarred(&self.world) | SlotSet::one(slot);
        set.survives(gone) && !(set.dirty && set.has_parity())
    }

    /// Lose a member; by default it loses its power.
    pub(super) fn lose(&mut self, how: Option<Loss>) -> RunResult {
        let Some((set, slot, drive)) = self.victim() else { return Ok(()) };
        let array = self.sets[set].array;
        self.log(|| format!("  {}", self.name(drive)));
        self.open_hole(set, slot);
        self.lost.push(drive);
        self.count(match how {
            None => Fault::Vanished,
            Some(Loss::Failed) => Fault::Failed,
            Some(Loss::Pulled) => Fault::Pulled,
            Some(Loss::ReadOnly) => Fault::ReadOnly,
            Some(Loss::Hanging) => Fault::Hanging,
            Some(Loss::FlushFails) => Fault::FlushFailed,
        });
        match how {
            None => self.world.vanish(drive),
            Some(Loss::Failed) => {
                let _ = self.admin(AdminCommand::Fail { array, drive, unsynced: true });
            }
            Some(Loss::Pulled) => self.world.pull(drive),
            Some(Loss::ReadOnly) => self.world.drive_mut(drive).faults.writes = Some(DriveError::ReadOnly),
            Some(Loss::Hanging) => self.world.drive_mut(drive).faults.hang = true,
            Some(Loss::FlushFails) => self.world.drive_mut(drive).faults.flushes = true,
        }
        Ok(())
    }

    /// A drive that the controller has given up.
    fn given_up(&mut self) -> Option<DriveId> {
        let works = |run: &Self, drive: DriveId| {
            run.sets.iter().filter_map(|set| run.world.status(set.array)).any(|status| {
                let mut members = status.members.iter().filter(|member| member.drive == Some(drive));
                members.any(|member| !matches!(member.state, MemberState::Faulty(_) | MemberState::Missing))
            })
        };
        let lost: Vec<DriveId> = self.lost.iter().copied().filter(|drive| !works(self, *drive)).collect();
        (!lost.is_empty()).then(|| *self.random.pick(&lost))
    }

    /// End the faults of a drive, which keeps its content.
    pub(super) fn heal(&mut self, drive: DriveId) {
        self.world.release(drive);
        let drive = self.world.drive_mut(drive);
        drive.put_back();
        drive.faults.writes = None;
        drive.faults.flushes = false;
        drive.faults.refuse_next = None;
        drive.faults.clear_defects();
    }

    /// Return a lost drive without telling the controller: the next controller finds it.
    pub(super) fn put_back(&mut self) {
        let Some(drive) = self.given_up() else { return };
        self.log(|| format!("  {} is back", self.name(drive)));
        self.count(Fault::Stale);
        self.heal(drive);
        self.lost.retain(|lost| *lost != drive);
    }

    /// Add a lost drive to its array again.
    pub(super) fn readd(&mut self) -> RunResult {
        let Some(drive) = self.given_up() else { return Ok(()) };
        let Some(superblock) = crate::oracle::redundancy::superblock_on(&self.world, drive) else { return Ok(()) };
        let Some(set) = self.sets.iter().position(|set| set.uuid == Some(superblock.set_uuid)) else { return Ok(()) };
        let array = self.sets[set].array;
        self.log(|| format!("  {} comes back to {}", self.name(drive), self.set_name(set)));
        self.count(Fault::Stale);
        self.heal(drive);
        self.happen(20)?;
        let _ = self.admin(AdminCommand::Remove { array, drive });
        match self.world.re_add_member(array, drive) {
            Ok(_) => {
                self.lost.retain(|lost| *lost != drive);
                // The array writes to it all data that it lacks.
                self.world.drive_mut(drive).faults.forget_torn();
            }
            Err(error) => self.log(|| format!("  refused: {error}")),
        }
        Ok(())
    }

    /// Add a new drive to a set with a vacant slot.
    pub(super) fn add(&mut self) -> RunResult {
        let set = self.some_set();
        if self.sets[set].is_redundant() && self.health(set) == Health::Degraded {
            self.add_to(set);
        }
        Ok(())
    }

    /// Add a new drive to this set. Returns false if the controller refuses it.
    pub(super) fn add_to(&mut self, set: usize) -> bool {
        let array = self.sets[set].array;
        if self.world.status(array).is_none_or(|status| status.superblock.is_none()) {
            return false;
        }
        let Some(drive) = self.new_drive() else { return false };
        self.log(|| format!("  drive {drive} is added to {}", self.set_name(set)));
        let result = self.world.add_member(array, drive);
        if let Err(error) = &result {
            self.log(|| format!("  refused: {error}"));
        }
        result.is_ok()
    }

    pub(super) fn replace(&mut self) -> RunResult {
        let set = self.some_set();
        if !self.sets[set].is_redundant() || self.health(set) != Health::Optimal || !self.add_to(set) {
            return Ok(());
        }
        let slot = Slot(u16::try_from(self.random.index(usize::from(self.sets[set].slots()))).expect("few"));
        let array = self.sets[set].array;
        let _ = self.admin(AdminCommand::Replace { array, slot, with: None });
        Ok(())
    }

    /// Let answers of some drive be late from now on, or end that.
    pub(super) fn late(&mut self) {
        let drive = super::drive_id(self.random.index(self.world.drives_len()));
        let late = LateCommands { one_in: self.random.between(2, 8), most: LATE_MOST };
        let faults = &mut self.world.drive_mut(drive).faults;
        faults.late = if faults.late.is_some() { None } else { Some(late) };
        let word = if faults.late.is_some() { "late" } else { "in time" };
        self.log(|| format!("  {} is {word} from now on", self.name(drive)));
        self.count(Fault::Late);
    }

    /// Let the next write to a member be refused once. A member that the array can do without fails. One that it needs
    /// gets the write again.
    pub(super) fn refuse(&mut self) {
        let number = self.some_set();
        let Some(status) = self.world.status(self.sets[number].array) else { return };
        self.sets[number].note_places(&self.world);
        let set = &self.sets[number];
        let gone = set.absent(&self.world, &status);
        let needed: Vec<Slot> = (0..set.slots()).map(Slot).filter(|slot| !gone.contains(*slot)).collect();
        let needed = needed.into_iter().filter(|slot| !set.survives(gone | SlotSet::one(*slot)));
        let needed: Vec<Slot> = needed.collect();
        // The engine does not know of sectors that it has not read yet.
        let unscarred = set.scarred(&self.world).is_empty();
        let settled =
            unscarred && set.is_redundant() && !set.dirty && status.task.is_none() && !set.is_losing(&self.world);
        let chosen = match self.victim() {
            Some((set, slot, drive)) => {
                self.open_hole(set, slot);
                self.lost.push(drive);
                Some(drive)
            }
            None if needed.is_empty() || !settled => None,
            None => drive_of(&status, *self.random.pick(&needed)),
        };
        let Some(drive) = chosen else { return };
        let Some(superblock) = crate::oracle::redundancy::superblock_on(&self.world, drive) else { return };
        self.log(|| format!("  {}", self.name(drive)));
        self.count(Fault::Refused);
        self.world.drive_mut(drive).faults.refuse_next = Some((superblock.data_offset, superblock.data_size));
    }

    /// Let some drive refuse discards from now on, or end that.
    pub(super) fn refuse_discards(&mut self) {
        let drive = super::drive_id(self.random.index(self.world.drives_len()));
        let faults = &mut self.world.drive_mut(drive).faults;
        faults.discards = if faults.discards.is_some() { None } else { Some(DriveError::Unsupported) };
        let word = if faults.discards.is_some() { "refuses" } else { "takes" };
        self.log(|| format!("  {} {word} discards from now on", self.name(drive)));
        self.discards_refused = true;
        self.count(Fault::DiscardRefused);
    }

    /// Let the connection to a drive be away for less time than the engine waits for an answer.
    pub(super) fn reconnect(&mut self, time: Nanos) -> RunResult {
        let drive = super::drive_id(self.random.index(self.world.drives_len()));
        if self.world.drive(drive).faults.is_failing() {
            return Ok(());
        }
        self.hear_last_answers(drive)?;
        self.log(|| format!("  {}", self.name(drive)));
        self.count(Fault::Reconnected);
        self.world.disconnect(drive);
        self.wait(time.min(SILENCE_BORNE))?;
        self.world.release(drive);
        self.released = Some((drive, self.world.now()));
        Ok(())
    }

    /// Let a drive answer nothing for a while.
    pub(super) fn silence(&mut self, time: Nanos) -> RunResult {
        let drive = if time < SILENCE_BORNE {
            super::drive_id(self.random.index(self.world.drives_len()))
        } else {
            let Some((set, slot, drive)) = self.victim() else { return Ok(()) };
            self.open_hole(set, slot);
            self.lost.push(drive);
            drive
        };
        if self.world.drive(drive).faults.is_failing() {
            return Ok(());
        }
        self.hear_last_answers(drive)?;
        self.log(|| format!("  {}", self.name(drive)));
        self.count(Fault::Late);
        self.world.drive_mut(drive).faults.hang = true;
        self.wait(time)?;
        self.world.release(drive);
        self.released = Some((drive, self.world.now()));
        Ok(())
    }

    /// A drive that was just silent answers its old commands before it is silent again: no command waits for the sum of both
    /// times, which may be longer than the engine waits.
    fn hear_last_answers(&mut self, drive: DriveId) -> RunResult {
        match self.released {
            Some((last, at)) if last == drive && self.world.now() < at + LATE_MOST => self.wait(LATE_MOST),
            _ => Ok(()),
        }
    }
}

/// The drive in a slot.
pub(super) fn drive_of(status: &ArrayStatus, slot: Slot) -> Option<DriveId> {
    status.members.iter().find(|member| member.slot == Some(slot) && !member.replacement)?.drive
}
