//! The write cache inside a drive: reads its state, and switches it if the kernel has a switch that reaches the drive.
//!
//! | Drive | The file in sysfs | What the kernel does |
//! | --- | --- | --- |
//! | SCSI, SAS, SATA, USB | `device/scsi_disk/H:C:I:L/cache_type` | sends the caching mode page (SATA: the feature) |
//! | virtio | `cache_type` | changes the device's configuration |
//! | others (NVMe, MMC, loop, device mapper) | none | |
//!
//! Sources: the kernel's `Documentation/scsi/sd-parameters.rst` and `Documentation/ABI/stable/sysfs-block`. All block
//! devices also have `queue/write_cache`. According to the latter document, a write to that file changes the kernel's
//! assumption and not the device: the kernel would leave out flushes while the drive still has a cache. Therefore this
//! file is only read and never written. The form `temporary ...` of the other files has the same effect and is not used
//! either.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::member_facts::Sysfs;

const ON: &str = "write back";
const OFF: &str = "write through";
/// Maximum length of such a file's text.
const TEXT_BYTES_MAX: usize = 512;

/// The reason why the cache of a member cannot be switched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DriveCacheError {
    /// The member is not a block device.
    NotADrive,
    /// The kernel has no switch that reaches the drive.
    NoSwitch,
    /// The kernel or the drive refused.
    Refused(String),
    /// The switch was written, but the drive did not change its state.
    Unchanged,
}

impl std::fmt::Display for DriveCacheError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotADrive => f.write_str("it is not a block device, and has no cache of its own"),
            Self::NoSwitch => f.write_str(
                "the kernel has no switch for the cache of this kind of drive (SCSI, SAS, SATA and virtio have one; for \
                 NVMe use nvme-cli: nvme set-feature DEVICE -f 6 -V 0 or 1)",
            ),
            Self::Refused(why) => write!(f, "its cache cannot be switched: {why}"),
            Self::Unchanged => f.write_str("the kernel accepted the command, but the drive's cache did not change"),
        }
    }
}
impl std::error::Error for DriveCacheError {}

/// The write cache of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveCache {
    /// The file that switches the cache.
    switch: Option<PathBuf>,
    /// The file with the kernel's assumption.
    view: PathBuf,
}

impl DriveCache {
    /// The cache of the block device at this path. If the device is a partition, the cache of its drive. `None` for
    /// files, and if sysfs does not have the device.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        let device = metadata.file_type().is_block_device().then(|| metadata.rdev())?;
        Some(Self::at(Sysfs::of(device)?.disk()))
    }

    /// Finds the files in the folder that sysfs has for a whole drive.
    fn at(disk: &Path) -> Self {
        let scsi = fs::read_dir(disk.join("device/scsi_disk")).into_iter().flatten().flatten();
        let scsi = scsi.map(|entry| entry.path().join("cache_type"));
        let switch = scsi.chain([disk.join("cache_type")]).find(|path| path.exists());
        Self { switch, view: disk.join("queue/write_cache") }
    }

    /// Is the cache on? `None` if the kernel does not say.
    #[must_use]
    pub fn is_on(&self) -> Option<bool> {
        let text = fs::read_to_string(self.switch.as_ref().unwrap_or(&self.view)).ok()?;
        let text = text.get(..text.len().min(TEXT_BYTES_MAX))?.trim();
        // "write back, no read" is also a cache for writes; "none" is no cache.
        (text.starts_with(ON) || text == OFF || text == "none").then(|| text.starts_with(ON))
    }

    /// Can the cache be switched?
    #[must_use]
    pub fn has_switch(&self) -> bool {
        self.switch.is_some()
    }

    /// Switches the cache. If the cache is switched off, the drive writes its content first. If the cache already has
    /// this state, nothing happens.
    ///
    /// # Errors
    /// There is no switch, or it has no effect.
    pub fn set(&self, on: bool) -> Result<(), DriveCacheError> {
        let switch = self.switch.as_ref().ok_or(DriveCacheError::NoSwitch)?;
        if self.is_on() == Some(on) {
            return Ok(());
        }
        fs::write(switch, if on { ON } else { OFF }).map_err(|error| DriveCacheError::Refused(error.to_string()))?;
        if self.is_on() == Some(on) {
            Ok(())
        } else {
            Err(DriveCacheError::Unchanged)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("openraid-drive-cache-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_drive_of_scsi_is_switched_by_its_own_file_and_the_view_of_the_kernel_is_left_alone() {
        let switch = "device/scsi_disk/0:0:0:0/cache_type";
        let root = disk("scsi", &[(switch, "write back\n"), ("queue/write_cache", "write back\n")]);
        let cache = DriveCache::at(&root);
        assert_eq!((cache.is_on(), cache.has_switch()), (Some(true), true));
        cache.set(false).unwrap();
        assert_eq!(cache.is_on(), Some(false));
        assert_eq!(fs::read_to_string(root.join(switch)).unwrap(), "write through");
        assert_eq!(fs::read_to_string(root.join("queue/write_cache")).unwrap(), "write back\n");
        cache.set(true).unwrap();
        assert_eq!(fs::read_to_string(root.join(switch)).unwrap(), "write back");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_drive_without_a_switch_tells_and_is_never_switched() {
        let root = disk("nvme", &[("queue/write_cache", "write back\n")]);
        let cache = DriveCache::at(&root);
        assert_eq!((cache.is_on(), cache.has_switch()), (Some(true), false));
        assert_eq!(cache.set(false), Err(DriveCacheError::NoSwitch));
        assert_eq!(fs::read_to_string(root.join("queue/write_cache")).unwrap(), "write back\n");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_words_of_the_kernel_are_understood_and_others_are_not() {
        for (text, on) in [
            ("write back", Some(true)),
            ("write back, no read (daft)", Some(true)),
            ("write through", Some(false)),
            ("none", Some(false)),
            ("maybe", None),
            ("", None),
        ] {
            let root = disk("words", &[("cache_type", text)]);
            assert_eq!(DriveCache::at(&root).is_on(), on, "{text}");
            fs::remove_dir_all(root).unwrap();
        }
    }

    #[test]
    fn a_file_has_no_cache_of_its_own() {
        assert_eq!(DriveCache::of(Path::new("/proc/self/exe")), None);
        assert_eq!(DriveCache::of(Path::new("/nowhere")), None);
    }
}
