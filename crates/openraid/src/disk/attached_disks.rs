//! The disks of this machine, in `/run/openraid-disk`: for each device a file with the array's name, which udev's rule reads, and one with
//! the rest. The kernel is asked whether the device still is what stands there.
//!
//! Older versions of the package have left the first file only: the process of such a device is qemu-nbd.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use openraid_sys::{device_holder, device_opener, replace_file};
use serde::{Deserialize, Serialize};

use super::{fuse, in_sysfs, line_of, nvme, qemu, ArrayIdentity, AttachWay};

/// A program that only looks at a device closes it within this time.
const LOOK_TIME_MAX: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
/// The folder, which only root may change.
pub const FOLDER: &str = "/run/openraid-disk";
/// Where the names of disks are.
pub const LINKS: &str = "/dev/openraid";

/// How a device came to be a disk of an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DiskRecord {
    pub way: AttachWay,
    /// The array's names: its name comes first.
    pub names: Vec<String>,
    pub uuid: Option<String>,
    /// Where the server offered it.
    pub address: String,
}

impl DiskRecord {
    pub fn new(way: AttachWay, identity: &ArrayIdentity, address: String) -> Self {
        Self { way, names: identity.names.clone(), uuid: identity.uuid.map(|uuid| uuid.to_string()), address }
    }

    /// The array's name.
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    pub fn identity(&self) -> ArrayIdentity {
        let uuid = self.uuid.as_deref().and_then(|uuid| uuid.parse().ok());
        ArrayIdentity { uuid, names: self.names.clone() }
    }

    /// The word by which the kernel knows the export of an NBD device.
    pub fn backend(&self) -> String {
        format!("openraid {}", self.uuid.as_deref().unwrap_or_else(|| self.name()))
    }
}

/// A disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttachedDisk {
    /// Name of the kernel's device, `nbd0`.
    pub device: String,
    pub record: DiskRecord,
}

impl AttachedDisk {
    /// The device.
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.device)
    }

    /// Its name below [`LINKS`]. udev makes the same from the array's name.
    pub fn link(&self) -> PathBuf {
        Path::new(LINKS).join(link_name(self.record.name()))
    }

    /// Is the device still what the record says?
    pub fn is_alive(&self) -> bool {
        let block = in_sysfs(&self.device);
        match self.record.way {
            // Kernels before 5.14 do not keep this word.
            AttachWay::Nbd => {
                let backend = line_of(block.join("backend"));
                block.join("pid").exists() && backend.is_none_or(|backend| backend == self.record.backend())
            }
            AttachWay::QemuNbd => qemu::address_of(&self.device, &self.record.identity()).is_some(),
            AttachWay::NvmeTcp => nvme::is_of(&self.device, &self.record.identity()),
            // Without nbdfuse its file cannot be looked at.
            AttachWay::Fuse => {
                let file = fuse::file_of(self.record.name());
                line_of(block.join("loop/backing_file")).is_some_and(|path| Path::new(&path) == file) && file.exists()
            }
        }
    }

    pub fn size_bytes(&self) -> u64 {
        let sectors = line_of(in_sysfs(&self.device).join("size")).and_then(|text| text.parse::<u64>().ok());
        sectors.unwrap_or(0) * 512
    }

    pub fn is_read_only(&self) -> bool {
        line_of(in_sysfs(&self.device).join("ro")).as_deref() == Some("1")
    }

    /// What uses it now, in words.
    pub fn user(&self) -> Option<String> {
        device_holder(&self.path()).or_else(|| self.opener())
    }

    fn opener(&self) -> Option<String> {
        device_opener(&self.path(), qemu::process_of(&self.device))
    }

    /// What goes on using it. Programs such as udev look at a device for a moment.
    pub fn lasting_user(&self) -> Option<String> {
        device_holder(&self.path()).or_else(|| {
            let until = Instant::now() + LOOK_TIME_MAX;
            loop {
                let opener = self.opener()?;
                if Instant::now() >= until {
                    return Some(opener);
                }
                thread::sleep(PAUSE);
            }
        })
    }

    /// Notes the disk. With udev, the next message about the device makes its link.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(&self) -> io::Result<()> {
        fs::create_dir_all(FOLDER)?;
        let text = serde_json::to_vec(&self.record)?;
        replace_file(&details(&self.device), &text)?;
        replace_file(&Path::new(FOLDER).join(&self.device), format!("{}\n", self.record.name()).as_bytes())
    }
}

fn details(device: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{device}.json"))
}

/// The file that the keeper of a device has locked.
pub fn keeper_file(device: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{device}.keeper"))
}

/// Forgets a device.
pub fn remove(device: &str) {
    // The name goes first: what has details only is not attached.
    for file in [Path::new(FOLDER).join(device), details(device), keeper_file(device)] {
        let _ = fs::remove_file(file);
    }
}

/// All that was noted, whether it is still there or not.
pub fn all() -> Vec<AttachedDisk> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_device =
        |name: &String| ["nbd", "nvme", "loop"].iter().any(|kind| name.starts_with(kind)) && !name.contains('.');
    let mut disks: Vec<AttachedDisk> = names.filter(is_device).filter_map(read).collect();
    disks.sort_by(|a, b| a.record.names.cmp(&b.record.names));
    disks
}

fn read(device: String) -> Option<AttachedDisk> {
    let name = line_of(Path::new(FOLDER).join(&device))?;
    let known = fs::read(details(&device)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let record =
        known.unwrap_or(DiskRecord { way: AttachWay::QemuNbd, names: vec![name], uuid: None, address: String::new() });
    Some(AttachedDisk { device, record })
}

/// Waits until no other process attaches or detaches. The lock ends with the value.
///
/// # Errors
/// The folder cannot be written.
pub fn lock() -> io::Result<File> {
    fs::create_dir_all(FOLDER)?;
    let file = File::create(Path::new(FOLDER).join("lock"))?;
    file.lock()?;
    Ok(file)
}

/// A name as udev has it in a link: what a shell or a path could mistake becomes `_`.
pub fn link_name(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "#+-.:=@_".contains(letter) || letter >= '\u{80}';
    let plain: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    // These would be folders.
    if plain.chars().all(|letter| letter == '.') {
        plain.replace('.', "_")
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_a_file_name_that_needs_no_quotes() {
        assert_eq!(link_name("it's a \"b\" 50%,c"), "it_s_a__b__50__c");
        assert_eq!(link_name("data-1.x"), "data-1.x");
        assert_eq!(link_name("gr\u{fc}n"), "gr\u{fc}n");
        assert_eq!([link_name(".."), link_name("a/../b")], ["__".to_owned(), "a_.._b".to_owned()]);
    }

    #[test]
    fn a_device_of_another_program_is_not_taken_for_the_one_that_was_noted() {
        let identity = ArrayIdentity { uuid: None, names: vec!["data".into()] };
        for way in [AttachWay::Nbd, AttachWay::QemuNbd, AttachWay::NvmeTcp, AttachWay::Fuse] {
            let disk = AttachedDisk { device: "none".into(), record: DiskRecord::new(way, &identity, String::new()) };
            assert!(!disk.is_alive() && disk.size_bytes() == 0, "{way:?}");
        }
    }
}
