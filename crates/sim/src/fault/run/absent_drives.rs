//! A start without some drives and journal devices: any subset, after the server has stopped in order.

use openraid_core::admin::TaskKind;
use openraid_core::array::assemble::{self, AssembleOptions};
use openraid_core::slot_set::SlotSet;
use openraid_format::{journal_superblock_lba, JournalSuperblock, SuperblockCopy, JOURNAL_BLOCK_BYTES};
use openraid_units::{DriveId, Slot};

use super::{Run, RunResult, Stop};
use crate::fault::fault_names::Fault;
use crate::fault::scenario::ControllerEnd;
use crate::random::Random;

/// One drive in this number is absent.
const ABSENT_ONE_IN: u64 = 4;

impl Run<'_> {
    /// Stop, and start without the drives that `mask` chooses. A set that cannot do without them must be refused; its
    /// drives then come back before the start.
    pub(super) fn start_without(&mut self, mask: u64) -> RunResult {
        if self.sets.iter().any(|set| set.uuid.is_none()) {
            return Ok(());
        }
        self.drain()?;
        self.rest()?;
        // A stopped set has no status, and a member may have failed since the places were noted.
        self.sets.iter_mut().for_each(|set| set.note_places(&self.world));
        let dirty = self.sets.iter().any(|set| set.dirty || set.unfit);
        let resyncs = |run: &Self, set: usize| {
            let task = run.world.status(run.sets[set].array).and_then(|status| status.task);
            task.is_some_and(|task| task.kind == TaskKind::Resync)
        };
        if dirty || (0..self.sets.len()).any(|set| resyncs(self, set)) || !self.stop() {
            return self.end(ControllerEnd::Stop, None);
        }
        self.count(Fault::StartWithout);
        self.count_end(ControllerEnd::Stop);
        self.go_down(ControllerEnd::Stop)?;
        let mut random = Random::new(mask);
        for set in 0..self.sets.len() {
            self.leave_out_members(set, &mut random)?;
        }
        self.leave_out_devices(&mut random)?;
        self.boot(None)
    }

    fn leave_out_members(&mut self, number: usize, random: &mut Random) -> RunResult {
        let set = &self.sets[number];
        let scars = set.scarred(&self.world);
        let full: Vec<(Slot, DriveId)> = set
            .places()
            .filter(|place| place.is_full() && !self.world.drive(place.drive).faults.is_failing())
            .map(|place| (place.slot, place.drive))
            .collect();
        let some =
            |random: &mut Random| full.iter().copied().filter(|_| random.chance(1, ABSENT_ONE_IN)).collect::<Vec<_>>();
        let chosen = some(random);
        if chosen.is_empty() {
            return Ok(());
        }
        let there: SlotSet = full.iter().filter(|member| !chosen.contains(member)).map(|(slot, _)| *slot).collect();
        let missing = (SlotSet::first_n(set.slots()).minus(there)) | scars;
        let survives = set.survives(missing);
        let unsafe_scars = !scars.is_empty();
        for (_, drive) in &chosen {
            self.world.drive_mut(*drive).faults.gone = true;
        }
        let uuid = self.sets[number].uuid;
        let mut candidates = self.world.candidates();
        candidates.retain(|candidate| Some(candidate.superblock.set_uuid) == uuid);
        let plan = assemble::plan(&candidates, AssembleOptions::default());
        let names: Vec<String> = chosen.iter().map(|(_, drive)| self.name(*drive)).collect();
        self.log(|| format!("  not there: {}", names.join(", ")));
        // A drive that was out of the set may call itself a member of an older one, and no other drive contradicts it.
        let is_full = |drive: DriveId| full.iter().any(|(_, other)| *other == drive);
        let others = candidates.iter().any(|candidate| !is_full(candidate.drive));
        let is_taken = plan.is_ok();
        if self.bounded() && is_taken && !survives && !unsafe_scars && !others {
            return Err(self.lost("an array is started without members that it needs"));
        }
        if self.bounded() && !is_taken && survives {
            return Err(Stop::Lost("an array is refused that has all members that it needs".into()));
        }
        if is_taken && (survives || !self.bounded()) {
            self.sets[number].whole = false;
            self.lost.extend(chosen.iter().map(|(_, drive)| *drive));
            return Ok(());
        }
        self.log(|| "  it is refused without them: they are there again".into());
        for (_, drive) in chosen {
            self.world.drive_mut(drive).put_back();
        }
        Ok(())
    }

    /// The superblock of a device of the journal.
    fn journal_superblock(&self, drive: DriveId) -> Option<JournalSuperblock> {
        let mut bytes = [0; JOURNAL_BLOCK_BYTES];
        let lba = journal_superblock_lba(SuperblockCopy::First, self.world.drive(drive).spec().capacity)?;
        self.world.drive(drive).peek(lba, &mut bytes);
        JournalSuperblock::decode(&bytes, SuperblockCopy::First).ok()
    }

    /// All devices of the journal are absent. A driver uses one of two alone only if its superblock says that it is the
    /// only one.
    fn leave_out_devices(&mut self, random: &mut Random) -> RunResult {
        let devices: Vec<DriveId> = self.journal_devices().to_vec();
        let works = devices.iter().all(|drive| !self.world.drive(*drive).faults.is_failing());
        if devices.is_empty() || !works || !random.chance(1, ABSENT_ONE_IN) {
            return Ok(());
        }
        if devices.len() == 2 && random.chance(1, 2) {
            let says_two =
                |drive: &DriveId| self.journal_superblock(*drive).is_some_and(|superblock| superblock.mirrors == 2);
            if self.bounded() && self.are_both_fresh() && !devices.iter().all(says_two) {
                return Err(self.lost("a device of a journal with two says that it is the only one"));
            }
            return Ok(());
        }
        self.log(|| "  the journal is not there".into());
        for drive in devices {
            self.world.drive_mut(drive).faults.gone = true;
        }
        Ok(())
    }
}
