//! Members whose storage is full or may become full, in words.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use openraid_units::Bytes;

use crate::quantity::human;

/// Bytes of a unit in which the kernel counts the space of files.
const SPACE_UNIT: u64 = 512;

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
            format!("for the device {member}: {}", cause(openraid_sys::backing_file(about.rdev())))
        }
        Ok(_) => on_file_system(Path::new(member)),
        Err(_) => "on its server".into(),
    };
    format!("no room for {member}: writes that need new space are refused, reads continue; make room {place}")
}

/// The storage under a block device that ran out of room.
fn cause(backing: Option<PathBuf>) -> String {
    match backing {
        Some(file) => format!("its file {} is {}", file.display(), on_file_system(&file)),
        None => "the storage under it is full, as the pool of a thin volume may be".into(),
    }
}

fn on_file_system(file: &Path) -> String {
    match mount_point(file) {
        Some(mount) => format!("on the file system at {}", mount.display()),
        None => "on its file system".into(),
    }
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
        assert_eq!(cause(backing), "its file /proc/self/status is on the file system at /proc");
        assert_eq!(cause(None), "the storage under it is full, as the pool of a thin volume may be");
        assert!(full_text("nbd://far/x").ends_with("make room on its server"));
    }
}
