//! Members whose storage is full, in words.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The writes that are refused, and the place where room must be made: the mount point of the file system, if the member is a file.
pub fn full_text(member: &str) -> String {
    let place = match std::fs::metadata(member) {
        Ok(about) if about.file_type().is_block_device() => {
            format!("for the device {member}: the pool of its thin volume is full")
        }
        Ok(_) => match mount_point(Path::new(member)) {
            Some(mount) => format!("on the file system at {}", mount.display()),
            None => "on its file system".into(),
        },
        Err(_) => "on its server".into(),
    };
    format!("no room for {member}: writes that need new space are refused, reads continue; make room {place}")
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
    fn the_mount_point_of_a_file_is_the_one_that_the_kernel_lists() {
        let mount = mount_point(Path::new("/proc/self/status")).expect("proc is mounted");
        assert_eq!(mount, Path::new("/proc"));
        assert!(full_text("/proc/self/status").ends_with("make room on the file system at /proc"));
        assert!(full_text("nbd://far/x").ends_with("make room on its server"));
    }
}
