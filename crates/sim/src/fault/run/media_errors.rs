//! Media errors: reported or silent.

use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, Health};
use openraid_core::check_results::ScrubMode;
use openraid_core::events::RequestKind;
use openraid_core::geometry::{Geometry, Mirror};
use openraid_format::superblock_lba;
use openraid_units::{DriveId, DriveLba, MemberLba, Sectors, Slot};

use super::members::drive_of;
use super::{Run, RunResult, Stop};
use crate::drive::{Defect, Trap, WrongAnswer};
use crate::fault::fault_names::Fault;
use crate::fault::judged_set::MemberPlace;
use crate::fault::row_set::SectorSet;
use crate::oracle::redundancy::superblock_on;
use crate::random::Random;

/// Limit of the tries to find a used place of a member.
const TRIES: u32 = 32;

/// A flipped sector: slot, drive, place on the drive, and the bytes with the flipped bits.
pub(super) type FlippedSector = (Slot, DriveId, DriveLba, [u8; 512]);

impl Run<'_> {
    pub(super) fn scrub(&mut self, repair: bool) -> RunResult {
        let set = self.some_set();
        let array = self.sets[set].array;
        let mode = if repair { ScrubMode::Repair } else { ScrubMode::Check };
        let _ = self.admin(AdminCommand::Scrub { array, mode });
        Ok(())
    }

    /// A place of a member that the layout uses.
    fn some_place(&mut self, set: usize, slot: Slot) -> Option<(DriveId, DriveLba, MemberLba)> {
        let MemberPlace { drive, start, .. } = self.sets[set].place_of(slot)?;
        let spec = *self.world.drive(drive).spec();
        let end = superblock_on(&self.world, drive).map_or(spec.capacity, |superblock| superblock.data_size);
        let block = spec.block.sectors().get();
        for _ in 0..TRIES {
            let row = MemberLba(self.random.below(end.get() / block) * block);
            let lba = start + row.offset();
            if (lba.get() + block) <= spec.capacity.get() && !self.sets[set].of_row(slot, row).is_empty() {
                return Some((drive, DriveLba(lba.get() / block * block), row));
            }
        }
        None
    }

    /// Make sectors of a member bad.
    pub(super) fn latent(&mut self, count: u64, defect: Defect) {
        let Some((set, slot, drive)) = self.victim() else { return };
        self.sets[set].note_places(&self.world);
        self.open_hole(set, slot);
        self.count(if defect == Defect::Permanent { Fault::Dead } else { Fault::Latent });
        for _ in 0..count {
            if let Some((_, lba, row)) = self.some_place(set, slot) {
                let block = self.world.drive(drive).spec().block.sectors();
                self.log(|| format!("  {}, sector {} of its data", self.name(drive), row.0));
                self.world.drive_mut(drive).faults.add_defects(lba, block, defect);
            }
        }
    }

    /// A place of a working member, both chosen at random.
    fn somewhere(&mut self) -> Option<(DriveId, DriveLba)> {
        let set = self.some_set();
        self.sets[set].note_places(&self.world);
        let slot = Slot(u16::try_from(self.random.index(usize::from(self.sets[set].slots()))).ok()?);
        self.some_place(set, slot).map(|(drive, lba, _)| (drive, lba))
    }

    /// Flip bits on a medium.
    pub(super) fn flip(&mut self) {
        let Some((drive, lba)) = self.somewhere() else { return };
        self.log(|| format!("  {}, sector {} of the drive", self.name(drive), lba.get()));
        self.count(Fault::Flip);
        let (byte, mask) = (self.random.index(512), self.random.between(1, 255));
        self.world.drive_mut(drive).flip(lba, byte, u8::try_from(mask).expect("a byte"));
    }

    /// Let a command answer wrongly without an error; `how` makes the effect from a random place of the drive.
    pub(super) fn trap(&mut self, fault: Fault, how: fn(DriveLba, &mut Random) -> WrongAnswer) {
        let (Some((drive, _)), Some((_, to))) = (self.somewhere(), self.somewhere()) else { return };
        let Some(superblock) = superblock_on(&self.world, drive) else { return };
        let block = self.world.drive(drive).spec().block.sectors().get();
        let to = DriveLba(to.get() / block * block).max(superblock.data_offset);
        let effect = how(to, &mut self.random);
        self.log(|| {
            let what = match effect {
                WrongAnswer::Lost => "the next write is lost".into(),
                WrongAnswer::Misdirected { to } => format!("the next write goes to sector {} of the drive", to.get()),
                WrongAnswer::Misread { from } => format!("the next read brings sector {} of the drive", from.get()),
                WrongAnswer::FlippedOnTheWay { .. } => "bits of the next read flip".into(),
            };
            format!("  {}: {what}", self.name(drive))
        });
        self.count(fault);
        let trap = Trap { from: superblock.data_offset, len: superblock.data_size, effect };
        self.world.drive_mut(drive).faults.trap = Some(trap);
    }

    /// Flip bits of a superblock.
    pub(super) fn flip_superblock(&mut self) {
        let Some((drive, _)) = self.somewhere() else { return };
        let capacity = self.world.drive(drive).spec().capacity;
        let Some(lba) = superblock_lba(self.scenario.metadata, capacity) else { return };
        if self.sets.iter().all(|set| set.uuid.is_none()) {
            return;
        }
        // The superblock is lost for the next controller, so the data read from it must be recorded.
        let of_drive = self.sets.iter().find(|set| set.places().any(|place| place.drive == drive));
        if of_drive.is_some_and(|set| self.scenario.stable_reads && set.dirty && !set.has_parity()) {
            return;
        }
        for set in &mut self.sets {
            set.note_current(&self.world);
        }
        self.log(|| format!("  {}", self.name(drive)));
        self.count(Fault::FlipSuperblock);
        let (byte, mask) = (self.random.index(256), self.random.between(1, 255));
        self.world.drive_mut(drive).flip(lba, byte, u8::try_from(mask).expect("a byte"));
    }

    /// Flip bits while the set is idle, on at most one member of each row, and run a repair; stories call that a patrol.
    pub(super) fn flip_and_repair(&mut self, places: u64) -> RunResult {
        let set = self.some_set();
        let quiet = self.sets[set].is_redundant() && self.whole(set);
        if !quiet {
            return Ok(());
        }
        self.resume_all();
        self.session.ask(&mut self.world, RequestKind::Flush, 0..0);
        self.rest()?;
        // The patrol is not judged by sectors that are wrong already, or that its own reads find wrong.
        let wrong_already = self.is_anything_wrong() || self.may_copies_differ(set);
        // Dirty data that stays in the cache longer than the wait for rest may overwrite the flipped bits before the
        // patrol.
        if !self.whole(set) || self.sets[set].dirty || wrong_already || !self.world.is_idle() {
            return Ok(());
        }
        let before = self.images(set);
        let flipped = self.flip_rows(set, places);
        let array = self.sets[set].array;
        if self.admin(AdminCommand::Scrub { array, mode: ScrubMode::Repair }).is_err() {
            return Err(Stop::Lost("a patrol of an array at rest is refused".into()));
        }
        self.world.run_until_idle();
        let corrects = corrects(&self.sets[set].geometry);
        self.judge_count(set, flipped.len() as u64)?;
        let named = self.world.take_notices().iter().filter(|n| matches!(n.kind, NoticeKind::RowMismatch(_))).count();
        if !corrects && named == 0 && !flipped.is_empty() {
            return Err(self.lost("a patrol found rows that do not fit, and no notice names one"));
        }
        self.judge_repaired(set, &before, &flipped)?;
        for (slot, drive, lba, flipped) in flipped.iter().copied() {
            let mut found = [0; 512];
            self.world.drive(drive).peek(lba, &mut found);
            let right = self.world.drive(drive).faults.wrong.iter().find(|wrong| wrong.lba == lba);
            let right = right.is_some_and(|wrong| *wrong.right == found);
            if corrects && !right {
                return Err(self.lost(format!("a patrol left slot {slot} (drive {drive}) wrong, sector {}", lba.get())));
            }
            if !corrects && found != flipped {
                let sector = lba.get();
                return Err(self.lost(format!(
                    "a patrol changed slot {slot} (drive {drive}), sector {sector}, and cannot know which copy is right"
                )));
            }
        }
        for (_, drive, ..) in flipped {
            self.world.drive_mut(drive).mend();
        }
        Ok(())
    }

    /// Whether a set is whole, idle, and without scars.
    pub(super) fn whole(&self, set: usize) -> bool {
        let Some(status) = self.world.status(self.sets[set].array) else { return false };
        status.health == Health::Optimal
            && status.task.is_none()
            && self.sets[set].absent(&self.world, &status).is_empty()
            && self.sets[set].scarred(&self.world).is_empty()
            && status.members.iter().all(|member| member.bad_blocks == 0)
    }

    /// Whether a drive has returned wrong data, or is about to.
    pub(super) fn is_anything_wrong(&self) -> bool {
        (0..self.world.drives_len()).any(|number| {
            let faults = &self.world.drive(super::drive_id(number)).faults;
            !faults.wrong.is_empty() || faults.trap.is_some()
        })
    }

    pub(super) fn flip_rows(&mut self, set: usize, places: u64) -> Vec<FlippedSector> {
        let (mut flipped, mut rows) = (Vec::new(), SectorSet::new(Sectors::mib(64)));
        self.sets[set].note_places(&self.world);
        let Some(status) = self.world.status(self.sets[set].array) else { return flipped };
        for _ in 0..places {
            let members = usize::from(self.sets[set].slots());
            let slot = Slot(u16::try_from(self.random.index(members)).expect("few members"));
            let Some(drive) = drive_of(&status, slot) else { continue };
            let Some((_, lba, row)) = self.some_place(set, slot) else { continue };
            // On a mirror, the other copies of a sector are at other places, so only one place is used.
            if rows.contains(row) || (!flipped.is_empty() && !self.sets[set].has_parity()) {
                continue;
            }
            rows.insert(row, Sectors(8));
            self.log(|| format!("  {}, sector {} of its data", self.name(drive), row.0));
            self.count(Fault::Flip);
            let (byte, mask) = (self.random.index(512), self.random.between(1, 255));
            self.world.drive_mut(drive).flip(lba, byte, u8::try_from(mask).expect("a byte"));
            let mut now = [0; 512];
            self.world.drive(drive).peek(lba, &mut now);
            flipped.push((slot, drive, lba, now));
        }
        flipped
    }
}

/// Whether a patrol can determine which member is wrong.
fn corrects(geometry: &Geometry) -> bool {
    match geometry {
        Geometry::Parity(parity) => parity.parities() == 2,
        Geometry::Mirror(mirror) => copies(mirror) >= 3,
        Geometry::Passthrough(_) | Geometry::Linear(_) | Geometry::Striped(_) => false,
    }
}

fn copies(mirror: &Mirror) -> usize {
    mirror.copies(openraid_units::SetLba(0)).count()
}
