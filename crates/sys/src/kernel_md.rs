//! Arrays of the kernel's md driver over devices: their states, and their end.
//!
//! md starts an array that the rules of udev hand to it as `read-auto`: nothing is written before the first write of a
//! user. So such an array, as one that lacks members (`inactive`), has left its members as they were, and can be ended.
//!
//! Source: the kernel's `Documentation/admin-guide/md.rst`, `array_state`.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::errno::Errno;
use crate::member_facts::Sysfs;

/// An array of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelMd {
    /// Its folder in sysfs.
    folder: PathBuf,
}

impl KernelMd {
    /// The array that has this device as a member.
    #[must_use]
    pub fn over(device: &Path) -> Option<Self> {
        let about = fs::metadata(device).ok().filter(|about| about.file_type().is_block_device())?;
        let holders = fs::read_dir(Sysfs::of(about.rdev())?.device().join("holders")).ok()?;
        let arrays = holders.flatten().filter_map(|holder| fs::canonicalize(holder.path()).ok());
        arrays.map(|folder| Self { folder }).find(|array| array.folder.join("md").exists())
    }

    #[must_use]
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(self.folder.file_name().unwrap_or_default())
    }

    /// Its state in md's word; empty if it has ended.
    #[must_use]
    pub fn state(&self) -> String {
        let text = fs::read_to_string(self.folder.join("md/array_state"));
        text.map(|text| text.trim().to_owned()).unwrap_or_default()
    }

    /// Has it left its members as they were?
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        matches!(self.state().as_str(), "read-auto" | "inactive")
    }

    /// Ends it. The kernel refuses that while anything has it open: a mount, swap, another device over it.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn end(&self) -> Result<(), Errno> {
        fs::write(self.folder.join("md/array_state"), "clear").map_err(Errno::from)
    }
}
