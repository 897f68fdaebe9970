//! The name of a disk, `/dev/openraid/NAME`: by udev's rule of the package, and without udev or that rule by this program.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::attached_disks::{self, AttachedDisk};
use super::{in_sysfs, run};

/// Makes the link.
///
/// # Errors
/// `/dev` cannot be written.
pub fn make(disk: &AttachedDisk) -> Result<(), String> {
    announce(&disk.device);
    let (link, device) = (disk.link(), disk.path());
    if fs::canonicalize(&link).is_ok_and(|target| target == device) {
        return Ok(());
    }
    let _ = fs::remove_file(&link);
    let made =
        fs::create_dir_all(attached_disks::LINKS).and_then(|()| symlink(Path::new("..").join(&disk.device), &link));
    made.map_err(|error| format!("{}: {error}", link.display()))
}

/// Removes it, if it still leads to this device or nowhere.
pub fn remove(disk: &AttachedDisk) {
    announce(&disk.device);
    let link = disk.link();
    let is_its_own = fs::read_link(&link).is_ok_and(|target| target.file_name() == disk.path().file_name());
    if is_its_own {
        let _ = fs::remove_file(&link);
    }
}

/// Another disk that has the link of this array: two names can become one.
pub fn taken(name: &str) -> Option<AttachedDisk> {
    let mut others = attached_disks::all().into_iter().filter(AttachedDisk::is_alive);
    others.find(|disk| attached_disks::link_name(disk.record.name()) == attached_disks::link_name(name))
}

/// Lets udev look at the device again, if there is one.
fn announce(device: &str) {
    let block = in_sysfs(device);
    if Path::new("/run/udev/control").exists() && block.exists() {
        let _ = run("udevadm", &["trigger", "--settle", "--action=change", &block.display().to_string()]);
    }
}
