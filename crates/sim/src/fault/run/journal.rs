//! The journal of a run: opened, lost, returned, damaged.

use openraid_core::admin::{AdminCommand, FoundJournal, Health, JournalState, Session};
use openraid_core::array::assemble::{Candidate, PplArea};
use openraid_core::events::DriveError;
use openraid_core::journal::find_device::FindError;
use openraid_format::{FeatureMap, JournalError, JournalRecord};
use openraid_units::{DriveId, DriveLba, Sectors};

use super::power::LostDriveFate;
use super::{Run, RunResult, Stop};
use crate::drive::{Defect, DriveSpec, Latency};
use crate::fault::fault_names::Fault;
use crate::fault::scenario::{JournalSpec, Scenario};
use crate::oracle::redundancy::superblock_on;
use crate::oracle::versions::VersionId;
use crate::random::Random;
use crate::rig::Loss;
use crate::world::journal::{JournalFault, ResyncResult};
use crate::world::World;

/// Size of a device: the least size of a journal.
const CAPACITY: Sectors = Sectors::mib(8);
/// Limit of the wait until the data promised by a lost journal is on the members, in steps of [`DRAIN_STEP`].
const DRAIN_STEPS: u32 = 240;
/// A step of that wait.
const DRAIN_STEP: openraid_units::Nanos = openraid_units::Nanos::from_millis(250);

/// Sectors of one unreadable place.
const WOUND: Sectors = Sectors(8);

/// Events between the return of a device and its use, in which its unanswered commands end.
const RETURN_EVENTS: u64 = 20;

/// Limit of consecutive starts that end during the resync of a device.
const RESYNCS_CUT_MAX: u64 = 3;
/// The first stream number of the random draws for these cuts.
const HEAL: u64 = 1600;

/// The run's knowledge of its journal.
#[derive(Debug, Default)]
pub(super) struct RunJournal {
    /// The journal's devices; empty if there is no journal.
    devices: Vec<DriveId>,
    /// The devices that were complete at the last check.
    fresh: Vec<DriveId>,
    /// Whether a device has damaged sectors since the last controller began.
    hurt: bool,
    /// Damage since a device was last found complete.
    wounds: Vec<Wound>,
    /// Damage has destroyed the end of the log, which looks like an interrupted write. No write of the lost part began
    /// later than this one.
    pub(super) ends_early: VersionId,
    /// Whether writes failed that the journal may hold. They may be on the members after a replay.
    pub(super) holds_failed: bool,
    /// Whether bits have flipped in data that a controller had checked, and reads again.
    pub(super) read_wrong: bool,
    /// Number of power cuts during a device's resync, of the starts after one end.
    pub(super) resyncs_cut: u64,
}

/// Damage to a device.
#[derive(Clone, Copy, Debug)]
struct Wound {
    drive: DriveId,
    lba: DriveLba,
    /// The byte of the first sector with flipped bits, and the bits; `None` if the sector cannot be read.
    flipped: Option<(usize, u8)>,
}

impl RunJournal {
    /// A new journal, in use.
    pub(super) fn new(world: &mut World, scenario: &Scenario) -> Self {
        let Some(JournalSpec { mirrors, ring, spins, block, volatile }) = scenario.journal else {
            return Self::default();
        };
        let latency = if spins { Latency::SPINDLE } else { Latency::FLASH };
        let spec =
            DriveSpec { block, latency, rotational: spins, volatile_cache: volatile, ..DriveSpec::new(CAPACITY) };
        let devices = world.make_journal_on(&spec, mirrors, Some(ring));
        world.attach_journal(&devices).unwrap_or_else(|fault| panic!("a new journal is not taken: {fault}"));
        Self { fresh: devices.clone(), devices, ..Self::default() }
    }
}

impl RunJournal {
    /// The number of a device, if the drive is one.
    pub(super) fn number_of(&self, drive: DriveId) -> Option<usize> {
        self.devices.iter().position(|known| *known == drive)
    }
}

impl Run<'_> {
    /// Record which devices are complete.
    pub(super) fn note_journal(&mut self) {
        let Some(status) = self.world.journal() else { return };
        let fresh: Vec<DriveId> = status.devices.iter().filter(|(_, works)| *works).map(|(drive, _)| *drive).collect();
        let fresh: Vec<DriveId> = fresh.into_iter().filter(|drive| self.works(*drive)).collect();
        let kept = !matches!(status.state, JournalState::Lost(_)) && !fresh.is_empty();
        if kept {
            self.journal.fresh = fresh;
        }
    }

    /// Whether the journal has all data that a set is about to write, so that the power may be cut at any time. A
    /// journal that was lost, and lacks rows that were written without it, does not until its session has ended.
    pub(super) fn is_journalled(&self, set: usize) -> bool {
        let live = self.world.journal().is_some_and(|journal| journal.state == JournalState::Live);
        live && !self.is_journal_behind(set)
            && self.world.status(self.sets[set].array).is_some_and(|status| status.session == Session::On)
    }

    /// Whether superblocks of a set say that the journal lacks rows.
    fn is_journal_behind(&self, set: usize) -> bool {
        self.scenario.journal.is_some()
            && self.sets[set].places().any(|place| {
                let superblock = superblock_on(&self.world, place.drive);
                superblock.is_some_and(|superblock| superblock.features.contains(FeatureMap::JOURNAL_BEHIND))
            })
    }

    /// Whether the partial parity logs of a set record the writes under way, so that no row is in doubt after a cut.
    /// Logs written before the set was consistent do not. Unbounded runs do not rely on this.
    pub(super) fn is_recorded(&self, set: usize) -> bool {
        let set = &self.sets[set];
        let consistent = self.world.status(set.array).is_some_and(|status| status.consistent_to == Sectors::MAX);
        if !self.bounded() || !set.logged || !consistent || set.dirty {
            return false;
        }
        let armed = |candidate: Candidate| {
            let is_of_set = Some(candidate.superblock.set_uuid) == set.uuid;
            is_of_set && matches!(&candidate.ppl, Some(PplArea::Log(log)) if log.header.generation > 0)
        };
        // The log of one member says nothing about the others, because a superblock wave may be half done. Aimed runs
        // cut the power at that moment.
        set.armed || (!self.scenario.aimed && self.world.candidates().into_iter().any(armed))
    }

    /// At rest: record that the logs of a consistent and whole set are armed.
    pub(super) fn note_armed(&mut self) {
        for set in &mut self.sets {
            let Some(status) = self.world.status(set.array) else { continue };
            let consistent = status.consistent_to == Sectors::MAX && !set.dirty;
            set.armed |= self.scenario.aimed && set.logged && consistent && status.health == Health::Optimal;
        }
    }

    /// The journal's devices.
    pub(super) fn journal_devices(&self) -> &[DriveId] {
        &self.journal.devices
    }

    /// Wait in a bounded run while promised data is only in memory, or on devices that stay away: the power must not be
    /// cut. Returns whether it may be cut.
    pub(super) fn await_promises(&mut self, lost: LostDriveFate) -> Result<bool, Stop> {
        // A device that returns has all data that it promised.
        if lost == LostDriveFate::ComeBack && !self.journal.hurt {
            return Ok(true);
        }
        let kept = |run: &Self| {
            let lost = run.world.journal().is_some_and(|journal| journal.state != JournalState::Live)
                || !run.journal.fresh.iter().any(|drive| run.works(*drive));
            let holds = |set: &crate::fault::judged_set::RunSet| {
                run.world.status(set.array).is_some_and(|status| status.session != Session::Off)
            };
            run.journal.devices.is_empty() || !lost || !run.sets.iter().any(holds) && !run.is_second_array_in_session()
        };
        for _ in 0..DRAIN_STEPS {
            if kept(self) {
                return Ok(true);
            }
            self.wait(DRAIN_STEP)?;
        }
        Ok(kept(self))
    }

    /// Rows were written without the journal, and the superblocks say so. The journal has older data for the same rows,
    /// and a replay may write it to some members. A resync follows, or the administrator accepts the risk.
    fn doubt_older_redos(&mut self, found: &FoundJournal) {
        if self.bounded() {
            return;
        }
        let candidates = self.world.candidates();
        for set in &mut self.sets {
            let says = |candidate: &Candidate| {
                let superblock = &candidate.superblock;
                Some(superblock.set_uuid) == set.uuid && superblock.features.contains(FeatureMap::JOURNAL_BEHIND)
            };
            let behind = set.uuid.filter(|_| candidates.iter().any(says));
            let Some(index) = behind.and_then(|uuid| found.superblock.index_of(uuid)) else { continue };
            let kept = found.kept.iter().map(|kept| &kept.entry);
            for record in kept.chain(&found.entries).flat_map(|entry| &entry.records) {
                let (JournalRecord::Redo { array, member_lba, sectors, .. }
                | JournalRecord::RedoRef { array, member_lba, sectors, .. }) = *record
                else {
                    continue;
                };
                if array == index {
                    set.doubt.insert(member_lba, sectors);
                }
            }
        }
    }

    /// Open the journal in a new controller, if the journal is present. Returns false if the power must be cut after
    /// `events` events, and these have happened.
    pub(super) fn open_journal(&mut self, events: &mut Option<u64>) -> Result<bool, Stop> {
        let mut there: Vec<DriveId> =
            self.journal.devices.iter().copied().filter(|drive| !self.world.drive(*drive).faults.gone).collect();
        if !there.iter().any(|drive| self.journal.fresh.contains(drive)) {
            return Ok(true);
        }
        let mut looked = self.world.find_journal_until(&there, self.resync_cut());
        // One device said so as it failed, and the other one was used without it. The user names the one in use last.
        let is_split = matches!(looked, Err(JournalFault::Found(FindError::Mirrors(JournalError::BothAlone))));
        if is_split && self.bounded() && self.journal.fresh.len() == 1 {
            self.log(|| {
                "  both devices say that they carry the journal alone: the one in use last is named".to_owned()
            });
            there.clone_from(&self.journal.fresh);
            looked = self.world.find_journal_until(&there, None);
        }
        let found = match looked {
            Ok(ResyncResult::All(found)) => found,
            Ok(ResyncResult::Part { done, steps, stale }) => {
                let part = format!("{done} of {steps} steps");
                self.log(|| format!("  {} is brought up to date: {part}", self.name(stale)));
                self.count(Fault::CutInMirrorResync);
                self.journal.resyncs_cut += 1;
                return Ok(false);
            }
            Err(fault) if self.bounded() => return Err(Stop::Lost(format!("the journal is refused: {fault}"))),
            Err(fault) => {
                self.log(|| format!("  the journal is refused: {fault}"));
                return Ok(true);
            }
        };
        if found.devices.len() > 1 {
            self.journal.hurt = false;
            self.journal.wounds.clear();
        }
        self.compare_with_whole(&there, found.head.sequence);
        self.doubt_older_redos(&found);
        match self.start(AdminCommand::AttachJournal(*found), events)? {
            BeginResult::PowerGoes => Ok(false),
            BeginResult::Refused(error) if self.bounded() => {
                Err(Stop::Lost(format!("the journal is not taken: {error}")))
            }
            BeginResult::Refused(error) => {
                self.log(|| format!("  the journal is not taken: {error}"));
                Ok(true)
            }
            BeginResult::Done | BeginResult::Started(_) => Ok(true),
        }
    }

    /// The step at which the power is cut if this start finds a stale device. Only aimed runs aim at that moment. The
    /// draw is from a copy of the generator, so later draws do not change.
    fn resync_cut(&self) -> Option<u64> {
        let cuts = self.journal.resyncs_cut;
        if !self.scenario.aimed || cuts >= RESYNCS_CUT_MAX {
            return None;
        }
        let mut random = Random::derived(self.random.clone().bits(), HEAL + cuts);
        random.chance(1, 2).then(|| random.bits())
    }

    /// For a journal on one device: whether the log would continue at its end without the damage. The damage looks like
    /// an interrupted write, so the promise of the last entry no longer holds.
    fn compare_with_whole(&mut self, devices: &[DriveId], head: u64) {
        let [device] = *devices else { return };
        if self.lasting_wounds(device).is_empty() {
            return;
        }
        if self.find_whole(device).is_some_and(|whole| whole.head.sequence > head) {
            self.journal.ends_early = self.session.versions_mut().next_id();
        }
    }

    fn lasting_wounds(&self, device: DriveId) -> Vec<Wound> {
        let faults = &self.world.drive(device).faults;
        let lasts = |wound: &Wound| wound.flipped.is_some() || faults.first_defect(wound.lba, WOUND).is_some();
        let wounds = self.journal.wounds.iter().filter(|wound| wound.drive == device && lasts(wound));
        wounds.copied().collect()
    }

    /// The log of a device without its damage, if it can be determined.
    fn find_whole(&mut self, device: DriveId) -> Option<FoundJournal> {
        let wounds = self.lasting_wounds(device);
        wounds.iter().for_each(|wound| self.undo(wound));
        let whole = self.world.find_journal(&[device]);
        wounds.iter().for_each(|wound| self.hurt_again(wound));
        whole.ok()
    }

    fn undo(&mut self, wound: &Wound) {
        match wound.flipped {
            Some(bits) => self.turn(wound, bits),
            None => drop(self.world.drive_mut(wound.drive).faults.write_over(wound.lba, WOUND)),
        }
    }

    fn hurt_again(&mut self, wound: &Wound) {
        match wound.flipped {
            Some(bits) => self.turn(wound, bits),
            None => self.world.drive_mut(wound.drive).faults.add_defects(wound.lba, WOUND, Defect::UntilWritten),
        }
    }

    /// Flip bits of a device. The device's list of silent errors does not record it, because the result decides how the
    /// damage counts.
    fn turn(&mut self, wound: &Wound, (byte, mask): (usize, u8)) {
        let drive = self.world.drive_mut(wound.drive);
        drive.flip(wound.lba, byte, mask);
        drive.faults.wrong.clear();
    }

    /// A device of the journal fails.
    pub(super) fn lose_journal_device(&mut self, how: Loss) {
        self.note_journal();
        if self.bounded() && self.journal.hurt {
            return;
        }
        let working: Vec<DriveId> = self.working_devices();
        // Until rows of a crash are repaired, only the journal has them. It must not be lost before that.
        let is_redoing = self.world.journal().is_some_and(|journal| journal.pending_redos > 0);
        // A device that joins does not have the whole log yet.
        let complete = working.iter().filter(|drive| self.journal.fresh.contains(drive)).count();
        if working.is_empty() || (self.bounded() && is_redoing && complete <= 1) {
            return;
        }
        let drive = *self.random.pick(&working);
        self.log(|| format!("  {}", self.name(drive)));
        self.count(Fault::JournalLost);
        match how {
            Loss::Hanging => self.world.drive_mut(drive).faults.hang = true,
            Loss::ReadOnly => self.world.drive_mut(drive).faults.writes = Some(DriveError::ReadOnly),
            // A journal's device is never flushed: its writes are durable when they are answered.
            Loss::FlushFails => self.world.drive_mut(drive).faults.writes = Some(DriveError::FlushFailed),
            Loss::Failed | Loss::Pulled => self.world.pull(drive),
        }
        self.note_journal();
    }

    /// Whether a device has damage.
    pub(super) fn is_journal_hurt(&self) -> bool {
        self.journal.hurt
    }

    /// Whether there are two devices, and both are complete.
    pub(super) fn are_both_fresh(&self) -> bool {
        self.journal.fresh.len() == 2 && !self.journal.hurt
    }

    /// A dropped device joins again.
    pub(super) fn join_journal(&mut self) -> RunResult {
        self.note_journal();
        let Some(status) = self.world.journal().filter(|journal| journal.state == JournalState::Live) else {
            return Ok(());
        };
        let works = |drive: &DriveId| status.devices.iter().any(|(other, works)| other == drive && *works);
        let Some(drive) = self.journal.devices.iter().copied().find(|drive| !works(drive)) else { return Ok(()) };
        if self.bounded() && self.journal.hurt {
            return Ok(());
        }
        self.log(|| format!("  {}", self.name(drive)));
        self.world.release(drive);
        let device = self.world.drive_mut(drive);
        device.put_back();
        device.faults.writes = None;
        self.happen(RETURN_EVENTS)?;
        if self.world.journal().is_none_or(|journal| journal.state != JournalState::Live) {
            return Ok(());
        }
        match self.world.join_journal(drive) {
            Ok(_) => self.count(Fault::JournalJoined),
            Err(error) => self.log(|| format!("  refused: {error}")),
        }
        self.session.hear(&mut self.world);
        Ok(())
    }

    /// The journal leaves, and is taken again.
    pub(super) fn take_journal_again(&mut self) -> RunResult {
        let live = self.world.journal().is_some_and(|journal| journal.state == JournalState::Live);
        if !live || self.bounded() && self.journal.hurt || self.admin(AdminCommand::DetachJournal).is_err() {
            return Ok(());
        }
        let events = self.random.below(60);
        self.happen(events)?;
        let there: Vec<DriveId> = self.journal.fresh.iter().copied().filter(|drive| self.works(*drive)).collect();
        match self.world.attach_journal(&there) {
            Ok(_) => self.count(Fault::JournalBack),
            Err(fault) => self.log(|| format!("  the journal is not taken: {fault}")),
        }
        self.session.hear(&mut self.world);
        Ok(())
    }

    fn working_devices(&self) -> Vec<DriveId> {
        self.journal.devices.iter().copied().filter(|drive| self.works(*drive)).collect()
    }

    fn works(&self, drive: DriveId) -> bool {
        !self.world.drive(drive).faults.is_failing()
    }

    pub(super) fn repair_journal_drives(&mut self) {
        for drive in self.journal.devices.clone() {
            self.world.release(drive);
            let drive = self.world.drive_mut(drive);
            drive.put_back();
            drive.faults.writes = None;
        }
    }

    /// Make the devices work again. A lost journal is created again if no array waits for the old one.
    pub(super) fn return_journal(&mut self) -> RunResult {
        self.repair_journal_drives();
        let lost = self.world.journal().is_none_or(|journal| matches!(journal.state, JournalState::Lost(_)));
        if self.journal.devices.is_empty() || !lost {
            return Ok(());
        }
        self.count(Fault::JournalBack);
        self.happen(RETURN_EVENTS)?;
        if self.world.journal().is_some() && self.admin(AdminCommand::DetachJournal).is_err() {
            return Ok(());
        }
        let devices = self.journal.devices.clone();
        match self.world.attach_journal(&devices) {
            Ok(_) => self.journal.fresh = devices,
            Err(fault) => self.log(|| format!("  the journal is not taken: {fault}")),
        }
        self.session.hear(&mut self.world);
        Ok(())
    }

    /// Damage sectors of a device, with a read error or silently. A bounded run damages only one of two complete
    /// devices.
    pub(super) fn hurt_journal(&mut self, silent: bool) -> RunResult {
        self.note_journal();
        // If a journal was lost because it was full, a device may have failed unnoticed since.
        let fresh = &self.journal.fresh;
        let whole = fresh.len() == 2 && fresh.iter().all(|drive| self.works(*drive)) && !self.journal.hurt;
        // Entries are checked when a controller starts. A second read of an entry has no checksum of its own.
        let read_again = self
            .world
            .journal()
            .is_some_and(|journal| journal.pending_redos > 0 || journal.arrays.iter().any(|a| a.waiting > 0));
        let read_wrong = silent && read_again;
        if self.journal.devices.is_empty() || self.bounded() && (!whole || read_wrong) {
            return Ok(());
        }
        let drive = *self.random.pick(&self.journal.devices);
        let used = self.world.journal().map_or(Sectors(0), |journal| journal.used).get().max(64);
        let ring = Sectors::mib(1).get();
        let places = [0, ring + self.random.below(used), ring + self.random.below(Sectors::mib(4).get())];
        let lba = DriveLba(*self.random.pick(&places) / 8 * 8);
        self.log(|| format!("  {}, sector {}", self.name(drive), lba.get()));
        if read_wrong {
            let Some(log) = self.find_whole(drive) else {
                self.log(|| "    its log does not say any more what stands there: left as it is".to_owned());
                return Ok(());
            };
            self.suspect_what_is_read_again(&log, lba);
        }
        self.count(Fault::JournalHurt);
        self.journal.hurt = true;
        let bits = silent.then(|| (self.random.index(512), self.random.between(1, 255)));
        let flipped = bits.map(|(byte, mask)| (byte, u8::try_from(mask).expect("a byte")));
        let wound = Wound { drive, lba, flipped };
        self.hurt_again(&wound);
        self.journal.wounds.push(wound);
        Ok(())
    }
}

/// The result of a command that begins an activity.
pub(super) enum BeginResult {
    /// An array runs.
    Started(openraid_units::ArrayId),
    /// Another command was carried out.
    Done,
    /// The command is refused.
    Refused(openraid_core::admin::AdminError),
    /// The power must be cut now.
    PowerGoes,
}
