//! Members whose storage is full or may become full, in words.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use openraid_units::Bytes;

use crate::quantity::human;

/// Bytes of a unit in which the kernel counts the space of files.
const SPACE_UNIT: u64 = 512;

/// A file system with less free space is full: a write of a host takes as much.
const FREE_MIN: u64 = 1 << 20;

/// The sparse members on one file system.
#[derive(Default)]
struct Sparse {
    members: Vec<String>,
    /// Bytes of them that have no space yet.
    lacks: u64,
}

/// The file systems without enough room for the sparse members on them, a sentence each.
pub fn short_of_room<'a>(members: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: BTreeMap<u64, Sparse> = BTreeMap::new();
    for member in members {
        let Ok(about) = std::fs::metadata(member) else { continue };
        let lacks = about.len().saturating_sub(about.blocks() * SPACE_UNIT);
        if about.is_file() && lacks > 0 {
            let sparse = all.entry(about.dev()).or_default();
            sparse.members.push(member.to_owned());
            sparse.lacks += lacks;
        }
    }
    all.into_values()
        .filter_map(|sparse| {
            let first = Path::new(&sparse.members[0]);
            let free = openraid_sys::free_bytes(first)?;
            shortage_text(&sparse, mount_point(first).as_deref(), free)
        })
        .collect()
}

/// Is there room for all of this member, so that it never needs more? Only known for a file.
pub fn has_all(member: &str) -> bool {
    std::fs::metadata(member).is_ok_and(|about| about.is_file()) && short_of_room([member].into_iter()).is_empty()
}

/// Nothing if this much free space is enough.
fn shortage_text(sparse: &Sparse, mount: Option<&Path>, free: u64) -> Option<String> {
    let place = mount.map_or_else(|| "of these members".into(), |mount| format!("at {}", mount.display()));
    (free < sparse.lacks).then(|| {
        format!(
            "the file system {place} has {} free, and {} of {} have no space yet, because sparse files take it when they are \
             written: when it is full, writes that need new space are refused; make room there, or have files that are made \
             with all their space (`create --file-size SIZE --allocate`)",
            human(Bytes(free)),
            human(Bytes(sparse.lacks)),
            sparse.members.join(", ")
        )
    })
}

/// The writes that are refused, and the place where room must be made: the mount point of the file system, if the member is a file.
pub fn full_text(member: &str) -> String {
    let place = match std::fs::metadata(member) {
        Ok(about) if about.file_type().is_block_device() => {
            let (file, pool) = (openraid_sys::backing_file(about.rdev()), openraid_sys::thin_pool(about.rdev()));
            format!("for the device {member}: {}", cause(file, pool))
        }
        Ok(_) => on_file_system(Path::new(member)),
        Err(_) => "on its server".into(),
    };
    format!("no room for {member}: writes that need new space are refused, reads continue; make room {place}")
}

/// The storage under a block device that ran out of room: the file of a loop device, a thin pool, or one that is not known.
fn cause(backing: Option<PathBuf>, pool: Option<String>) -> String {
    match (backing, pool) {
        (Some(file), _) => format!("its file {} is {}", file.display(), on_file_system(&file)),
        (None, Some(pool)) => format!("its thin pool {pool} is full"),
        (None, None) => "the storage under it is full".into(),
    }
}

fn on_file_system(file: &Path) -> String {
    let pool = file.metadata().ok().and_then(|about| openraid_sys::thin_pool(about.dev()));
    place_of_room(mount_point(file).as_deref(), openraid_sys::free_bytes(file).unwrap_or(0), pool)
}

/// A file system that has room is not what lacks it.
fn place_of_room(mount: Option<&Path>, free: u64, pool: Option<String>) -> String {
    let place =
        mount.map_or_else(|| "on its file system".into(), |mount| format!("on the file system at {}", mount.display()));
    if free < FREE_MIN {
        return place;
    }
    let under = pool.map_or_else(|| "the storage under it".into(), |pool| format!("its thin pool {pool}"));
    format!("{place}, or, as that has {} free now: a quota or {under} is full", human(Bytes(free)))
}

/// The highest folder over this file that is on the same file system.
fn mount_point(file: &Path) -> Option<PathBuf> {
    let file = file.canonicalize().ok()?;
    let device = file.metadata().ok()?.dev();
    let is_same = |folder: &&Path| folder.metadata().is_ok_and(|about| about.dev() == device);
    file.ancestors().skip(1).take_while(is_same).last().map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_members_are_named_if_their_file_system_has_less_room_than_they_lack() {
        let sparse = Sparse { members: vec!["a".into(), "b".into()], lacks: 96 << 20 };
        let mount = Some(Path::new("/srv"));
        let text = shortage_text(&sparse, mount, 8 << 20).expect("it is too little");
        assert!(
            text.starts_with("the file system at /srv has 8 MiB free, and 96 MiB of a, b have no space yet"),
            "{text}"
        );
        assert_eq!(shortage_text(&sparse, mount, 96 << 20), None);
        assert!(short_of_room(["/proc/self/status", "nbd://far/x"].into_iter()).is_empty());
    }

    #[test]
    fn the_mount_point_of_a_file_is_the_one_that_the_kernel_lists() {
        let mount = mount_point(Path::new("/proc/self/status")).expect("proc is mounted");
        assert_eq!(mount, Path::new("/proc"));
        assert!(full_text("/proc/self/status").ends_with("make room on the file system at /proc"));
        let backing = Some("/proc/self/status".into());
        assert_eq!(cause(backing, None), "its file /proc/self/status is on the file system at /proc");
        assert!(full_text("nbd://far/x").ends_with("make room on its server"));
    }

    #[test]
    fn the_thin_pool_that_is_full_is_named_and_a_file_system_with_room_is_not_blamed() {
        let pool = || Some("vg-pool-tpool".to_owned());
        assert_eq!(cause(None, pool()), "its thin pool vg-pool-tpool is full");
        assert_eq!(cause(None, None), "the storage under it is full");
        let mount = Some(Path::new("/srv"));
        let full = "on the file system at /srv";
        assert_eq!(place_of_room(mount, 4096, pool()), full, "it lacks room itself");
        let with_room = format!("{full}, or, as that has 2 GiB free now: a quota or");
        assert_eq!(place_of_room(mount, 2 << 30, pool()), format!("{with_room} its thin pool vg-pool-tpool is full"));
        assert_eq!(place_of_room(mount, 2 << 30, None), format!("{with_room} the storage under it is full"));
        // A member on a file system of this machine that has room.
        let file = std::env::temp_dir().join(format!("openraid-room-{}", std::process::id()));
        std::fs::write(&file, "x").expect("room");
        let text = full_text(&file.display().to_string());
        assert!(text.contains(" free now: a quota or "), "{text}");
        std::fs::remove_file(&file).expect("it is ours");
    }
}
