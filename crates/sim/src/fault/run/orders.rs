//! Orders of the administrator: tasks are held and go on, checks are stopped, the set is renamed, its bitmap removed or
//! made again between two starts.

use openraid_core::admin::{AdminCommand, Health};
use openraid_format::{superblock_lba, BitmapHeader, SetName, Superblock, BITMAP_HEADER_BYTES};
use openraid_units::DriveId;

use super::{Done, Run};
use crate::fault::scenario::{Action, End};
use crate::oracle::members::superblock_on;

/// Number of names that a run gives to a set.
const NAMES: u64 = 1000;

impl Run<'_> {
    pub(super) fn order(&mut self, action: Action) -> Done {
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

    fn rename(&mut self, set: usize) -> Done {
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
    pub(super) fn judge_name(&mut self, set: usize, starts: bool) -> Done {
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

    /// The server stops, and the bitmap of a whole set is removed or made again, as by `mdadm --grow --bitmap`.
    fn change_consistency(&mut self, number: usize) -> Done {
        let set = &self.sets[number];
        let fits = self.scenario.bitmap && self.bounded() && self.lost.is_empty() && !set.dirty && !set.unfit;
        if !fits || self.health(number) != Health::Optimal || self.sets.iter().any(|set| set.dirty) {
            return Ok(());
        }
        self.resume_all();
        self.drain()?;
        self.rest()?;
        if !self.whole(number) || self.sets[number].dirty {
            return Ok(());
        }
        if !self.stop() {
            return self.end(End::Stop, None);
        }
        let drives: Vec<DriveId> = self.sets[number].places().map(|place| place.drive).collect();
        let own = drives.first().and_then(|drive| superblock_on(&self.world, *drive));
        let removes = own.is_some_and(|own| own.bitmap_offset().is_some());
        self.log(|| format!("  the bitmap is {}", if removes { "removed" } else { "made again" }));
        for drive in drives {
            let Some(mut own) = superblock_on(&self.world, drive) else { continue };
            if removes {
                let offset = own.bitmap_offset();
                self.sets[number].bitmaps.insert(drive, offset);
                own.set_bitmap_offset(None);
            } else {
                // A drive that came later has the bitmap at the place of the others.
                let known = self.sets[number].bitmaps.get(&drive).copied().flatten();
                let others = self.sets[number].bitmaps.values().copied().flatten().next();
                own.set_bitmap_offset(known.or(others));
                self.put_bitmap(drive, &own);
            }
            self.put_superblock(drive, &own);
        }
        self.go_down(End::Stop)?;
        self.boot(None)
    }

    pub(super) fn put_superblock(&mut self, drive: DriveId, own: &Superblock) {
        let capacity = self.world.drive(drive).spec().capacity;
        let Some(lba) = superblock_lba(own.minor, capacity) else { return };
        let mut bytes = vec![0; own.encoded_len().next_multiple_of(4096)];
        own.encode(&mut bytes);
        bytes.truncate(own.encoded_len().next_multiple_of(512));
        self.world.drive_mut(drive).poke(lba, &bytes);
    }

    /// An empty bitmap.
    fn put_bitmap(&mut self, drive: DriveId, own: &Superblock) {
        let capacity = self.world.drive(drive).spec().capacity;
        let Some((start, room)) = own.bitmap_room(capacity) else { return };
        let Some(covers) = openraid_format::sync_size(own) else { return };
        let chunk = self.scenario.bitmap_chunk.unwrap_or(4096).max(4096);
        let header = BitmapHeader::new(own.set_uuid, own.events, covers, chunk);
        let sectors = header.geometry().sectors();
        assert!(sectors <= room, "the bitmap had room before");
        let mut bytes = vec![0; usize::try_from(sectors.bytes().get()).expect("a small bitmap").max(512)];
        header.encode(&mut bytes[..BITMAP_HEADER_BYTES]);
        self.world.drive_mut(drive).poke(start, &bytes);
    }
}
