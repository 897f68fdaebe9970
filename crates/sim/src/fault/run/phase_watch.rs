//! Observation of the engine's phase, and waiting for one.

use openraid_core::actions::{DriveCommand, DriveOp, IoClass};
use openraid_core::admin::{ArrayStatus, JournalState, MemberState, ReshapeStage, Session};
use openraid_format::{FeatureMap, JOURNAL_RING_START};
use openraid_units::{DriveId, DriveLba, Sectors};

use super::{Run, RunResult};
use crate::fault::phase::{Phase, Phases};
use crate::oracle::redundancy::superblock_on;
use crate::world::World;

/// Limit of the events during a wait for a phase.
const EVENTS_MAX: u64 = 400;
/// Limit of the number of phase beginnings that are waited for.
const TIMES_MAX: u64 = 3;
/// Offsets of the event count and the position in a superblock of md: docs/on-disk.md.
const EVENTS_AT: usize = 200;
const POSITION_AT: usize = 152;

/// A range on a drive.
type Extent = (DriveLba, Sectors);

/// A member, and the place of its metadata.
#[derive(Clone, Copy, Debug)]
struct Seat {
    drive: DriveId,
    superblock: DriveLba,
    data: Extent,
    bitmap: Option<Extent>,
    log: Option<Extent>,
    is_replacement: bool,
}

impl Seat {
    fn of(world: &World, drive: DriveId, is_replacement: bool) -> Option<Self> {
        let superblock = superblock_on(world, drive)?;
        let bitmap = superblock.bitmap_room(world.drive(drive).spec().capacity);
        let data = (superblock.data_offset, superblock.data_size);
        Some(Self {
            drive,
            superblock: superblock.super_offset,
            data,
            bitmap,
            log: superblock.ppl_area(),
            is_replacement,
        })
    }

    /// A number in the member's superblock.
    fn number_at(&self, world: &World, at: usize) -> u64 {
        let mut bytes = [0; 512];
        world.drive(self.drive).peek(self.superblock, &mut bytes);
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    /// Number of set bits in the member's bitmap.
    fn bits(&self, world: &World) -> u32 {
        let Some((start, len)) = self.bitmap else { return 0 };
        let mut bytes = vec![0; usize::try_from(len.get().min(8) * 512).expect("a page")];
        world.drive(self.drive).peek(start, &mut bytes);
        bytes.iter().skip(openraid_format::BITMAP_HEADER_BYTES).map(|byte| byte.count_ones()).sum()
    }

    fn phase_of(&self, command: &DriveCommand) -> Option<Phase> {
        let within = |extent: Option<Extent>| {
            extent.is_some_and(|(start, len)| start <= command.lba && command.lba < start + len)
        };
        match (command.op, command.class) {
            (DriveOp::Read, _) => None,
            (DriveOp::Flush, _) => Some(Phase::FlushOut),
            (_, IoClass::Metadata) if command.lba == self.superblock => Some(Phase::SuperblockOut),
            (_, IoClass::Metadata) if within(self.log) => Some(Phase::PartialLogOut),
            (_, IoClass::Metadata) if within(Some(self.data)) => Some(Phase::WriteOut),
            (_, IoClass::Metadata) if within(self.bitmap) => Some(Phase::BitmapOut),
            (_, IoClass::Metadata) => Some(Phase::BadBlocksOut),
            (_, IoClass::Destage) => Some(Phase::DestageOut),
            (_, IoClass::Rebuild | IoClass::Scrub) => Some(Phase::FillOut),
            _ => Some(Phase::WriteOut),
        }
    }
}

/// The state recorded from one event to the next.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct PhaseState {
    bits: Vec<u32>,
    positions: Vec<u64>,
    tasks: usize,
    writes: u64,
}

/// The watched members.
#[derive(Debug)]
struct Watch {
    /// The members of each set.
    seats: Vec<Vec<Seat>>,
    seen: PhaseState,
}

impl Run<'_> {
    /// The present phases of the engine, as far as one observation shows them.
    pub(super) fn phases(&self) -> Phases {
        let watch = self.watch();
        let mut phases = self.phases_of(&watch);
        self.hit.into_iter().for_each(|phase| phases.insert(phase));
        phases
    }

    /// Let time pass until the engine enters a phase; hosts continue to make requests if `busy`.
    pub(super) fn until(&mut self, phase: Phase, busy: bool, seed: u64) -> RunResult {
        let load = self.workload();
        self.session.reseed(seed);
        let mut watch = self.watch();
        let mut left = match phase {
            _ if phase.is_single() => 1,
            _ => self.random.between(1, TIMES_MAX),
        };
        let mut held = false;
        for _ in 0..EVENTS_MAX {
            if busy && self.session.outstanding() < load.depth && self.random.chance(1, 3) {
                self.session.ask_random(&mut self.world, &load);
                self.judge_reads()?;
            }
            if !self.event()? {
                // No remaining event could lead to the phase.
                self.session.ask_random(&mut self.world, &load);
                self.judge_reads()?;
            }
            let mut phases = self.phases_of(&watch);
            let before = watch.seen.clone();
            watch.seen = self.seen(&watch.seats);
            self.note_edges(&before, &watch.seen, &mut phases);
            let holds = phases.contains(phase);
            left -= u64::from(holds && !held);
            held = holds;
            if left == 0 {
                self.hit = Some(phase);
                self.log(|| format!("  now: {phase}"));
                break;
            }
            if phases.contains(Phase::TaskEnded) || phases.contains(Phase::Failing) {
                // Members may have changed.
                watch = self.watch();
            }
        }
        Ok(())
    }

    fn watch(&self) -> Watch {
        let seats_of = |array| {
            let status = self.world.status(array);
            let members = status.into_iter().flat_map(|status| status.members);
            let works =
                |state| matches!(state, MemberState::InSync | MemberState::Rebuilding { .. } | MemberState::Spare);
            let working = members.filter(|member| works(member.state));
            working.filter_map(|member| Seat::of(&self.world, member.drive?, member.replacement)).collect()
        };
        let seats: Vec<Vec<Seat>> = self.sets.iter().map(|set| seats_of(set.array)).collect();
        let seen = self.seen(&seats);
        Watch { seats, seen }
    }

    fn seen(&self, seats: &[Vec<Seat>]) -> PhaseState {
        let all = || seats.iter().flatten();
        let bits = if self.scenario.bitmap { all().map(|seat| seat.bits(&self.world)).collect() } else { Vec::new() };
        let tasks = self.sets.iter().filter_map(|set| self.world.status(set.array)?.task).count();
        let positions = all().map(|seat| seat.number_at(&self.world, POSITION_AT)).collect();
        PhaseState { bits, positions, tasks, writes: self.session.writes }
    }

    fn note_edges(&self, before: &PhaseState, now: &PhaseState, phases: &mut Phases) {
        let fewer = before.bits.iter().zip(&now.bits).any(|(before, now)| now < before);
        phases.insert_if(fewer, Phase::BitCleared);
        phases.insert_if(before.positions != now.positions, Phase::Checkpointed);
        phases.insert_if(now.tasks < before.tasks, Phase::TaskEnded);
        phases.insert_if(now.writes > before.writes, Phase::Answered);
    }

    fn phases_of(&self, watch: &Watch) -> Phases {
        let mut phases = Phases::default();
        for seats in &watch.seats {
            for seat in seats {
                for phase in self.world.drive(seat.drive).outstanding().filter_map(|command| seat.phase_of(command)) {
                    phases.insert(phase);
                }
            }
            let mut events = seats.iter().map(|seat| seat.number_at(&self.world, EVENTS_AT));
            let first = events.next();
            phases.insert_if(events.any(|events| Some(events) != first), Phase::BetweenWaves);
        }
        for drive in self.journal_devices() {
            let drives = self.world.drive(*drive);
            for command in drives.commands_that_change() {
                let in_ring = command.lba >= DriveLba(JOURNAL_RING_START.get());
                phases.insert(if in_ring { Phase::EntryOut } else { Phase::JournalSuperblockOut });
            }
        }
        let destages = phases.contains(Phase::EntryOut) && phases.contains(Phase::DestageOut);
        phases.insert_if(destages, Phase::EntryBesideDestage);
        let lost = self.world.journal().is_some_and(|journal| matches!(journal.state, JournalState::Lost(_)));
        phases.insert_if(lost && phases.contains(Phase::DestageOut), Phase::DestageWithoutJournal);
        phases.insert_if(phases.is_empty(), Phase::Rest);
        for status in self.sets.iter().filter_map(|set| self.world.status(set.array)) {
            let failing = status.members.iter().any(|member| matches!(member.state, MemberState::Failing(_)));
            phases.insert_if(failing, Phase::Failing);
            phases.insert_if(status.task.is_some(), Phase::TaskRuns);
            phases.insert_if(!matches!(status.session, Session::Off | Session::On), Phase::SessionMoves);
            self.note_change(&status, &mut phases);
        }
        phases
    }

    /// Add the phase of a change of shape.
    fn note_change(&self, status: &ArrayStatus, phases: &mut Phases) {
        let (Some(reshape), Some(common)) = (&status.reshape, &status.superblock) else { return };
        let is_marked = common.features.contains(FeatureMap::SHAPE_GUARD);
        match (reshape.stage, common.change()) {
            (ReshapeStage::Draining, _) => phases.insert(Phase::ShapeDrains),
            (ReshapeStage::Beginning, _) if is_marked => phases.insert(Phase::ShapeAnnounced),
            (ReshapeStage::Beginning, _) => phases.insert(Phase::ShapeBegins),
            (ReshapeStage::Ending, Some(_)) => phases.insert(Phase::ShapeSettles),
            (ReshapeStage::Ending, None) if is_marked => phases.insert(Phase::ShapeEndGuarded),
            (ReshapeStage::Ending, None) => phases.insert(Phase::ShapeEnds),
            (ReshapeStage::Moving, change) => {
                phases.insert_if(phases.contains(Phase::FillOut), Phase::ShapeMoves);
                phases.insert_if(phases.contains(Phase::FlushOut), Phase::ShapeFlushes);
                let Some(change) = change.filter(|_| phases.contains(Phase::SuperblockOut)) else { return };
                let drives =
                    status.members.iter().filter_map(|member| superblock_on(&self.world, member.drive?)?.change());
                let known: Vec<bool> = drives.map(|written| written.position == change.position).collect();
                let (some, all) = (known.contains(&true), !known.contains(&false));
                phases.insert_if(!some, Phase::ShapeWaveOne);
                phases.insert_if(some && !all, Phase::ShapeWaveTwo);
            }
        }
    }

    /// Whether the drive's superblock is newer than those of other members, so that a cut is between two waves.
    pub(super) fn is_ahead(&self, set: usize, drive: DriveId) -> bool {
        let watch = self.watch();
        let seats = &watch.seats[set];
        let events = |seat: &Seat| seat.number_at(&self.world, EVENTS_AT);
        let count = seats.iter().find(|seat| seat.drive == drive && !seat.is_replacement).map(events);
        count.is_some_and(|count| seats.iter().any(|seat| events(seat) < count))
    }
}
