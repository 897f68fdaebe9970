//! Judges that look during a run, not only at its end: redundancy at each rest, the claims of the status, the cover of
//! rows in doubt at each cut, and what a repair changes.

use std::collections::BTreeMap;

use openraid_core::admin::{AdminCommand, Health, MemberState, ReshapeStage};
use openraid_core::check_results::{ScrubMode, ScrubOutcome};
use openraid_core::geometry::Geometry;
use openraid_format::{Superblock, BITMAP_HEADER_BYTES};
use openraid_units::{DriveId, DriveLba, MemberLba, Sectors, Slot};

use super::media_errors::FlippedSector;
use super::{Run, RunResult, Stop};
use crate::fault::fault_names::Fault;
use crate::fault::judged_set::{Differing, RunSet};
use crate::oracle::redundancy::{superblock_on, Misfit};

/// A member: its slot, its drive, the start of its data.
pub(super) type SoundMember = (Slot, DriveId, DriveLba);
/// The content of members' data areas.
pub(super) type Images = BTreeMap<DriveId, Vec<u8>>;

/// Does this superblock say that its member lacks something? If a change of shape has filled the member to the end, it does
/// not. After a cut at the end of the change, a start takes the member as in sync before its superblock says so.
fn is_being_filled(superblock: &Superblock) -> bool {
    let is_end = |to: MemberLba| {
        superblock.change().is_some_and(|change| to.offset() >= change.size.round_down(change.new.chunk))
    };
    superblock.recovery_offset().is_some_and(|to| !is_end(to))
}

impl Run<'_> {
    /// Redundancy matches on the full members at each rest, unless the status says that it does not.
    pub(super) fn judge_rest(&mut self) -> RunResult {
        for set in 0..self.sets.len() {
            self.judge_name(set, false)?;
            if !self.claims_consistency(set) {
                continue;
            }
            let misfits = self.misfits(set);
            if !misfits.is_empty() {
                return Err(self.lost_by_members(set, &misfits));
            }
        }
        self.judge_members_of_second_array()
    }

    fn claims_consistency(&mut self, number: usize) -> bool {
        let set = &mut self.sets[number];
        set.suspect_what_went_wrong(&self.world);
        let set = &self.sets[number];
        let Some(status) = self.world.status(set.array) else { return false };
        let sound = self.world.is_idle()
            && status.consistent_to == Sectors::MAX
            && status.task.is_none()
            && !set.is_losing(&self.world)
            && !self.has_scars(set);
        let open = set.dirty || set.unfit || !self.bounded() && !set.suspect.is_empty();
        set.is_redundant() && sound && !open && status.health != Health::Failed
    }

    /// Mismatches, except where copies may differ after a discard.
    pub(super) fn misfits(&mut self, set: usize) -> Vec<Misfit> {
        if self.sets[set].members(&self.world).differing_rows().is_empty() {
            return Vec::new();
        }
        let misfits = self.sets[set].members(&self.world).misfits();
        let is_trimmed = |misfit: &Misfit| self.is_trimmed(set, |set| set.of_row(misfit.slot, misfit.row));
        misfits.into_iter().filter(|misfit| !is_trimmed(misfit)).collect()
    }

    /// Whether hosts have trimmed all of a row whose copies may differ then.
    fn is_trimmed(&self, set: usize, sectors: impl FnOnce(&RunSet) -> Vec<u64>) -> bool {
        let trimmed = |sector: u64| self.session.trims.iter().any(|range| range.contains(&(sector * 512)));
        self.may_copies_differ(set) && sectors(&self.sets[set]).into_iter().all(trimmed)
    }

    /// Whether copies may differ where hosts have trimmed: drives that read differently after a discard.
    pub(super) fn may_copies_differ(&self, set: usize) -> bool {
        let judged = &self.sets[set];
        !judged.has_parity() && (self.scenario.extras.mixed || self.discards_refused) && !self.session.trims.is_empty()
    }

    /// The status claims nothing that the drives contradict.
    pub(super) fn judge_claims(&self) -> RunResult {
        if !self.bounded() {
            return Ok(());
        }
        for set in self.sets.iter().filter(|set| set.uuid.is_some()) {
            let Some(status) = self.world.status(set.array) else { continue };
            // At the end of a change, a member that it has filled is in sync before its superblock says so.
            if status.reshape.is_some_and(|reshape| reshape.stage == ReshapeStage::Ending) {
                continue;
            }
            let in_slots = status.members.iter().filter(|member| !member.replacement && member.slot.is_some());
            for member in in_slots {
                let on_disk = member.drive.and_then(|drive| superblock_on(&self.world, drive));
                if member.state == MemberState::InSync && on_disk.is_some_and(|on_disk| is_being_filled(&on_disk)) {
                    return Err(self.lost("the status is wrong: a member is called in sync, and is being filled"));
                }
                let works = matches!(member.state, MemberState::InSync | MemberState::Failing(_));
                if status.health == Health::Optimal && !works {
                    return Err(self.lost("the status is wrong: optimal, and a member is not in sync"));
                }
            }
        }
        Ok(())
    }

    /// The members that work, and have no fault.
    pub(super) fn sound_members(&self, number: usize) -> Vec<SoundMember> {
        let set = &self.sets[number];
        let Some(status) = self.world.status(set.array) else { return Vec::new() };
        let works = |drive: DriveId| {
            let mut lines = status.members.iter().filter(|member| member.drive == Some(drive) && !member.replacement);
            lines.any(|member| member.state == MemberState::InSync)
        };
        let sound = set.places().filter(|place| {
            place.is_full() && works(place.drive) && !self.world.drive(place.drive).faults.is_failing()
        });
        sound.map(|place| (place.slot, place.drive, place.start)).collect()
    }

    /// After a cut: each row that does not match is covered by mark, bitmap or log of each member that may decide.
    ///
    /// At a start, the member with the highest event count decides. A member that has missed the last mark decides only
    /// where no member is that has the mark, so rows are compared among members that are not newer.
    pub(super) fn judge_cover(&self, number: usize, sound: &[SoundMember]) -> RunResult {
        let set = &self.sets[number];
        let here: Vec<SoundMember> =
            sound.iter().copied().filter(|(_, drive, _)| !self.world.drive(*drive).faults.gone).collect();
        if !self.bounded() || !set.is_redundant() || set.unfit || set.uuid.is_none() || self.has_scars(set) {
            return Ok(());
        }
        let rows_among =
            |members: &[SoundMember]| set.differing_rows(&self.world, members).map_err(|text| self.lost(text));
        let (all, logs) = (rows_among(&here)?, self.logged_stripes(number));
        for (_, drive, _) in &here {
            let Some(superblock) = superblock_on(&self.world, *drive) else { continue };
            // The next start replays the log, or examines all rows without it.
            if superblock.recovery_offset().is_some() || superblock.journal.is_some() {
                continue;
            }
            let is_newer =
                |other| superblock_on(&self.world, other).is_some_and(|other| other.events > superblock.events);
            let with: Vec<SoundMember> = here.iter().copied().filter(|(_, other, _)| !is_newer(*other)).collect();
            let rows = if with.len() == here.len() { all.clone() } else { rows_among(&with)? };
            let bits = self.bits_of(*drive, &superblock);
            let uncovered = rows.iter().find(|differing| {
                let place = set.place_of_mark(differing);
                let marked = match &bits {
                    Some((chunk, bits)) => {
                        let bit = usize::try_from(place / chunk).expect("a small bitmap");
                        bits.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
                    }
                    None => superblock.resync_position().is_some_and(|from| from.get() <= place),
                };
                let logged = set.logged && logs.contains(&self.stripe_of(number, differing.row));
                !marked && !logged && !self.is_trimmed(number, |set| set.sectors_with(differing))
            });
            if let Some(Differing { slot, row, .. }) = uncovered {
                return Err(self.lost(format!(
                    "a row in doubt is covered by nothing: row {} of slot {slot} does not match after the cut, and {} \
                     marks it nowhere",
                    row.0,
                    self.name(*drive)
                )));
            }
        }
        Ok(())
    }

    fn stripe_of(&self, number: usize, row: MemberLba) -> u64 {
        match &self.sets[number].geometry {
            Geometry::Parity(parity) => parity.stripe_at(row).map_or(u64::MAX, |(stripe, _)| stripe.0),
            _ => u64::MAX,
        }
    }

    /// Sectors of each bit of a member's bitmap, and the bits.
    fn bits_of(&self, drive: DriveId, superblock: &Superblock) -> Option<(u64, Vec<u8>)> {
        let candidate = self.world.candidates().into_iter().find(|candidate| candidate.drive == drive)?;
        superblock.bitmap_offset()?;
        let bytes = candidate.bitmap?;
        let header = openraid_format::BitmapHeader::decode(&bytes).ok()?;
        Some((u64::from(header.chunk) / 512, bytes[BITMAP_HEADER_BYTES..].to_vec()))
    }

    /// The stripes in the members' partial parity logs.
    fn logged_stripes(&self, number: usize) -> Vec<u64> {
        let Geometry::Parity(parity) = &self.sets[number].geometry else { return Vec::new() };
        let mut stripes = Vec::new();
        if !self.sets[number].logged {
            return stripes;
        }
        for candidate in self.world.candidates() {
            if let Some(openraid_core::array::assemble::PplArea::Log(log)) = &candidate.ppl {
                let entries =
                    log.header.entries().iter().filter(|entry| entry.data_sector.offset() < parity.capacity());
                stripes.extend(entries.map(|entry| parity.locate(entry.data_sector).0 .0));
            }
        }
        stripes
    }

    // Checks and repairs.

    /// The data areas of all full members.
    pub(super) fn images(&mut self, number: usize) -> Images {
        self.sets[number].note_places(&self.world);
        let set = &self.sets[number];
        let used = match &set.geometry {
            Geometry::Parity(parity) => parity.member_extent(),
            Geometry::Mirror(mirror) => mirror.member_extent(),
            Geometry::Passthrough(_) | Geometry::Linear(_) | Geometry::Striped(_) => Sectors::ZERO,
        };
        let len = usize::try_from(used.bytes().get()).expect("a small member");
        let read = |(drive, start): (DriveId, DriveLba)| {
            let mut bytes = vec![0; len];
            self.world.drive(drive).peek(start, &mut bytes);
            (drive, bytes)
        };
        set.places().filter(|place| place.is_full()).map(|place| read((place.drive, place.start))).collect()
    }

    /// A repair has changed no sector that was right. `before` is the content before bits flipped.
    pub(super) fn judge_repaired(&mut self, number: usize, before: &Images, flipped: &[FlippedSector]) -> RunResult {
        let after = self.images(number);
        let Some(status) = self.world.status(self.sets[number].array) else { return Ok(()) };
        let drives = status.members.iter().filter(|member| member.state == MemberState::InSync);
        for drive in drives.filter_map(|member| member.drive) {
            let (Some(old), Some(new)) = (before.get(&drive), after.get(&drive)) else { continue };
            let Some(start) = self.sets[number].places().find(|place| place.drive == drive).map(|place| place.start)
            else {
                continue;
            };
            let wrong = old.chunks(512).zip(new.chunks(512)).enumerate().find(|(sector, (old, new))| {
                let lba = start + Sectors(*sector as u64);
                old != new && !flipped.iter().any(|(_, of_drive, at, _)| *of_drive == drive && *at == lba)
            });
            if let Some((sector, _)) = wrong {
                let name = self.name(drive);
                return Err(self.lost(format!("a patrol changed a sector that was right: {name}, sector {sector}")));
            }
        }
        Ok(())
    }

    /// Bits flip on a degraded set that can still compare: a check counts each of them, and changes nothing.
    pub(super) fn check_degraded(&mut self, places: u64) -> RunResult {
        let number = self.some_set();
        self.resume_all();
        self.session.ask(&mut self.world, openraid_core::events::RequestKind::Flush, 0..0);
        self.rest()?;
        let Some(status) = self.world.status(self.sets[number].array) else { return Ok(()) };
        let set = &self.sets[number];
        let missing = set.absent(&self.world, &status);
        // With chunks, both copies of a place may be on two members of which one is missing.
        let compares = match &set.geometry {
            Geometry::Mirror(mirror) => mirror.chunk().is_none(),
            _ => set.has_parity(),
        };
        let fits = compares
            && self.claims_consistency(number)
            && !missing.is_empty()
            && self.sets[number].geometry.is_redundant_without(missing)
            && !self.is_anything_wrong()
            && !self.may_copies_differ(number);
        if !fits {
            return Ok(());
        }
        let flipped = self.flip_rows(number, places);
        let before = self.images(number);
        let array = self.sets[number].array;
        if self.admin(AdminCommand::Scrub { array, mode: ScrubMode::Check }).is_err() {
            return Err(Stop::Lost("a patrol of a degraded array is refused, although it can compare".into()));
        }
        self.world.run_until_idle();
        self.count(Fault::CheckDegraded);
        self.judge_count(number, flipped.len() as u64)?;
        self.judge_repaired(number, &before, &[])?;
        for (_, drive, ..) in flipped {
            self.world.drive_mut(drive).mend();
        }
        let _ = self.world.take_notices();
        Ok(())
    }

    /// The last check has found exactly this number of sectors.
    pub(super) fn judge_count(&self, set: usize, expected: u64) -> RunResult {
        let ended = self.world.status(self.sets[set].array).and_then(|status| status.last_scrub);
        let found = match ended.map(|ended| ended.outcome) {
            Some(ScrubOutcome::Mismatches { count, .. }) => count,
            Some(ScrubOutcome::Clean) => 0,
            Some(ScrubOutcome::Aborted { .. } | ScrubOutcome::NotComparable(_)) | None => {
                return Err(self.lost("a patrol of an array at rest did not end"));
            }
        };
        match found == expected {
            true => Ok(()),
            false => Err(self.lost(format!("a patrol found {found} rows that do not fit, and there are {expected}"))),
        }
    }
}
