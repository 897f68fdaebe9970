//! Arrays with the lockless bitmap of Linux 6.18: they are not served, and `copy-out` reads them.

use openraid_format::{BitmapError, LocklessCounts, LocklessHeader, MdLevel, Superblock};
use openraid_runtime::member::ProbedMember;

use crate::model::{ArrayModel, HealthWord};
use crate::quantity::{counted, human};

/// The lockless bitmap of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lockless {
    pub header: LocklessHeader,
    /// Its chunks by state.
    pub counts: LocklessCounts,
}

/// The lockless bitmap of a member, if it has a readable one.
pub fn of_member(member: &ProbedMember) -> Option<Lockless> {
    let superblock = member.look.superblock.as_ref()?;
    member.look.bitmap_error.filter(|error| *error == BitmapError::Lockless)?;
    let area = member.look.bitmap.as_deref()?;
    let header = LocklessHeader::decode(area).ok().filter(|header| header.set_uuid == superblock.set_uuid)?;
    Some(Lockless { header, counts: header.count(area, superblock.events) })
}

/// Ranges of an array that cannot be trusted, by the bitmap of its newest member. `array` is a set, not a nested array.
pub fn doubts(members: &[ProbedMember], array: &ArrayModel) -> Option<String> {
    let is_member = |superblock: &Superblock| Some(superblock.set_uuid.to_string()) == array.uuid;
    let of_set = members.iter().filter(|member| member.look.superblock.as_ref().is_some_and(is_member));
    let newest = of_set.max_by_key(|member| member.look.superblock.as_ref().map(|superblock| superblock.events))?;
    let level = newest.look.superblock.as_ref()?.level;
    newest.look.bitmap_error.filter(|error| *error == BitmapError::Lockless)?;
    Some(match of_member(newest) {
        None => {
            format!("{}: its lockless bitmap cannot be read: parity or copies may not be in sync anywhere", array.name)
        }
        Some(bitmap) => format!("{}: {}", array.name, doubt(bitmap, level, array.health)),
    })
}

fn doubt(bitmap: Lockless, level: MdLevel, health: HealthWord) -> String {
    let LocklessCounts { chunks, unwritten, unsynced } = bitmap.counts;
    let all = format!("{} of {}", counted(chunks, "chunk", "chunks"), human(bitmap.header.chunk.bytes()));
    let found =
        format!("by its lockless bitmap {unsynced} of {all} are not in sync and {unwritten} were never written");
    let is_parity = matches!(level, MdLevel::Raid4 | MdLevel::Raid5 | MdLevel::Raid6);
    match (is_parity, health) {
        (_, HealthWord::Optimal) if unsynced == 0 => format!("{found}: all data can be trusted"),
        (true, HealthWord::Optimal) => format!("{found}: data are read from their own members, and parity is not used"),
        (true, _) if unsynced + unwritten == 0 => format!("{found}: recovered data can be trusted"),
        (true, _) => format!(
            "{found}: in these chunks data recovered for the missing member may be wrong, because the parity was never made or is \
             old"
        ),
        (false, _) if unsynced == 0 => format!("{found}: all data can be trusted"),
        (false, _) => format!("{found}: in these chunks the copies may differ, and one of them is read"),
    }
}
