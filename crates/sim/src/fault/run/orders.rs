//! Orders of the administrator: tasks are held and go on, checks are stopped, the set is renamed, its consistency policy
//! changed between two starts.

use openraid_core::admin::{AdminCommand, Health, MemberState};
use openraid_format::{
    superblock_lba, BitmapHeader, FeatureMap, PplHeader, PplPlace, SetName, Superblock, BITMAP_HEADER_BYTES,
    PPL_HEADER_BYTES,
};
use openraid_units::{DriveId, DriveLba, Sectors};

use super::{Run, RunResult};
use crate::fault::scenario::{Action, ControllerEnd};
use crate::oracle::redundancy::superblock_on;

/// Number of names that a run gives to a set.
const NAMES: u64 = 1000;

/// The marks that tell of rows in doubt: the consistency policy of md.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Marks {
    /// Only the active mark of the superblock.
    Nothing,
    /// A write-intent bitmap.
    Bitmap,
    /// Partial parity logs.
    Logs,
}

impl Run<'_> {
    pub(super) fn order(&mut self, action: Action) -> RunResult {
        let set = self.some_set();
        let array = self.sets[set].array;
        let command = match action {
            Action::Pause => AdminCommand::Pause { array },
            Action::Resume => AdminCommand::Resume { array },
            Action::StopScrub => AdminCommand::StopScrub { array },
            Action::Rename => return self.rename(set),
            _ => return self.change_consistency(set),
        };
        // A check that does not run cannot be stopped.
        let _ = self.admin(command);
        Ok(())
    }

    /// All tasks go on.
    pub(super) fn resume_all(&mut self) {
        for array in self.sets.iter().map(|set| set.array).collect::<Vec<_>>() {
            let _ = self.admin(AdminCommand::Resume { array });
        }
    }

    fn rename(&mut self, set: usize) -> RunResult {
        if self.sets[set].uuid.is_none() {
            return Ok(());
        }
        let text = format!("name-{}", self.random.below(NAMES));
        let name = SetName::new(None, &text).expect("a short name");
        let array = self.sets[set].array;
        self.judge_name(set, false)?;
        if self.admin(AdminCommand::Rename { array, name }).is_ok() {
            self.log(|| format!("  {text}"));
            self.sets[set].names.push(name);
        }
        Ok(())
    }

    /// At rest only the last name is left. At a start, the superblocks may have any name since the last rest, and have
    /// that one from then on.
    pub(super) fn judge_name(&mut self, set: usize, starts: bool) -> RunResult {
        let is_at_rest = !starts && self.world.is_idle();
        let array = self.sets[set].array;
        let superblock = self.world.status(array).and_then(|status| status.superblock);
        let Some(superblock) = superblock.filter(|_| self.bounded()) else { return Ok(()) };
        let names = &mut self.sets[set].names;
        if names.is_empty() {
            names.push(superblock.set_name);
        }
        if is_at_rest {
            names.drain(..names.len() - 1);
        }
        match names.contains(&superblock.set_name) {
            true => {
                if starts {
                    *names = vec![superblock.set_name];
                }
                Ok(())
            }
            false => Err(self.lost(format!("the array has a name that no command gave it: {:?}", superblock.set_name))),
        }
    }

    /// The server stops, and a whole set gets another consistency policy, as by `mdadm --grow --consistency-policy`.
    fn change_consistency(&mut self, number: usize) -> RunResult {
        let set = &self.sets[number];
        let has_marks = self.scenario.bitmap || set.log_place.is_some();
        let fits = has_marks && self.bounded() && self.lost.is_empty() && !set.dirty && !set.unfit;
        if !fits || self.health(number) != Health::Optimal || self.sets.iter().any(|set| set.dirty) {
            return Ok(());
        }
        self.resume_all();
        self.drain()?;
        self.rest()?;
        if !self.whole(number) || self.sets[number].dirty {
            return Ok(());
        }
        // All drives of the set are changed, as by mdadm: a spare takes over with what its superblock says.
        let status = self.world.status(self.sets[number].array);
        let members = status.into_iter().flat_map(|status| status.members);
        let spares = members.filter(|member| member.state == MemberState::Spare).filter_map(|member| member.drive);
        let drives: Vec<DriveId> = self.sets[number].places().map(|place| place.drive).chain(spares).collect();
        if !self.stop() {
            return self.end(ControllerEnd::Stop, None);
        }
        let superblocks = drives.iter().filter_map(|drive| Some((*drive, superblock_on(&self.world, *drive)?)));
        let superblocks: Vec<(DriveId, Superblock)> = superblocks.collect();
        let policy = self.next_policy(number, &superblocks);
        self.log(|| format!("  the consistency policy is {policy:?} now"));
        for (drive, mut superblock) in superblocks {
            self.put_policy(number, drive, &mut superblock, policy);
            self.put_superblock(drive, &superblock);
        }
        let set = &mut self.sets[number];
        (set.logged, set.armed) = (policy == Marks::Logs, false);
        self.go_down(ControllerEnd::Stop)?;
        self.boot(None)
    }

    /// A policy that the set does not have, and has room for.
    fn next_policy(&mut self, number: usize, superblocks: &[(DriveId, Superblock)]) -> Marks {
        let first = superblocks.first().map(|(_, superblock)| superblock);
        let now = match first {
            Some(superblock) if superblock.bitmap_offset().is_some() => Marks::Bitmap,
            Some(superblock) if superblock.ppl().is_some() => Marks::Logs,
            _ => Marks::Nothing,
        };
        let Some(place) = self.sets[number].log_place else {
            return if now == Marks::Bitmap { Marks::Nothing } else { Marks::Bitmap };
        };
        let have_room = superblocks.iter().all(|(_, superblock)| has_room_for_log(superblock, place));
        let others = [Marks::Nothing, Marks::Bitmap, Marks::Logs].into_iter();
        let others: Vec<Marks> = others.filter(|one| *one != now && (have_room || *one != Marks::Logs)).collect();
        *self.random.pick(&others)
    }

    fn put_policy(&mut self, number: usize, drive: DriveId, superblock: &mut Superblock, policy: Marks) {
        let set = &mut self.sets[number];
        if let Some(offset) = superblock.bitmap_offset() {
            set.bitmaps.insert(drive, Some(offset));
        }
        superblock.features.set(FeatureMap::PPL | FeatureMap::MULTIPLE_PPLS, false);
        superblock.set_bitmap_offset(None);
        match policy {
            Marks::Nothing => {}
            Marks::Bitmap => {
                // A drive that came later has the bitmap at the place of the others.
                let known = set.bitmaps.get(&drive).copied().flatten();
                let others = set.bitmaps.values().copied().flatten().next();
                let log = set.log_place.map(|place| i32::from(place.offset));
                superblock.set_bitmap_offset(known.or(others).or(log));
                self.put_bitmap(drive, superblock);
            }
            Marks::Logs => {
                superblock.set_ppl(set.log_place.expect("the set had logs"));
                let (start, _) = superblock.ppl_area().expect("the place was examined");
                let mut bytes = vec![0; PPL_HEADER_BYTES];
                PplHeader::new(superblock.set_uuid, 0).encode(&mut bytes);
                self.world.drive_mut(drive).poke(start, &bytes);
            }
        }
    }

    pub(super) fn put_superblock(&mut self, drive: DriveId, superblock: &Superblock) {
        let capacity = self.world.drive(drive).spec().capacity;
        let Some(lba) = superblock_lba(superblock.minor, capacity) else { return };
        let mut bytes = vec![0; superblock.encoded_len().next_multiple_of(4096)];
        superblock.encode(&mut bytes);
        bytes.truncate(superblock.encoded_len().next_multiple_of(512));
        self.world.drive_mut(drive).poke(lba, &bytes);
    }

    /// An empty bitmap.
    fn put_bitmap(&mut self, drive: DriveId, superblock: &Superblock) {
        let capacity = self.world.drive(drive).spec().capacity;
        let Some((start, room)) = superblock.bitmap_room(capacity) else { return };
        let Some(covers) = openraid_format::sync_size(superblock) else { return };
        let chunk = self.scenario.bitmap_chunk.unwrap_or(4096).max(4096);
        let header = BitmapHeader::new(superblock.set_uuid, superblock.events, covers, chunk);
        let sectors = header.geometry().sectors();
        assert!(sectors <= room, "the bitmap had room before");
        let mut bytes = vec![0; usize::try_from(sectors.bytes().get()).expect("a small bitmap").max(512)];
        header.encode(&mut bytes[..BITMAP_HEADER_BYTES]);
        self.world.drive_mut(drive).poke(start, &bytes);
    }
}

/// Whether a member has room for a log at this place: neither its data nor its bad-block log are there.
fn has_room_for_log(superblock: &Superblock, place: PplPlace) -> bool {
    let mut with = superblock.clone();
    with.set_bitmap_offset(None);
    with.set_ppl(place);
    let Some((start, len)) = with.ppl_area() else { return false };
    let is_apart = |from: DriveLba, size: Sectors| from + size <= start || start + len <= from;
    let log =
        superblock.bad_block_log().and_then(|log| Some((superblock.place(log.offset)?, Sectors(u64::from(log.size)))));
    is_apart(superblock.data_offset, superblock.data_size) && log.is_none_or(|(from, size)| is_apart(from, size))
}
