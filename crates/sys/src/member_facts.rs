//! The kernel's facts about a device: geometry, abilities, names, and its holder.
//!
//! All facts are read from sysfs and procfs as text that may be missing, truncated or unusual. A fact that cannot be
//! read is absent and never an error: facts are helpful, but do not decide whether a member can be used. The only
//! exception is the holder, which is the second of two checks (the first is `O_EXCL`).

use crate::member::Identity;
use openraid_units::{BlockSize, Bytes, Nanos, Sectors};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Maximum length of a model or serial number in characters. ATA and NVMe have at most 40 for a model and 20 for a
/// serial number.
const NAME_CHARACTERS_MAX: usize = 64;

/// The facts about an open member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Size in whole sectors.
    pub size: Sectors,
    /// Smallest unit that can be read or written.
    pub logical_block: BlockSize,
    /// Smallest unit in bytes that the device writes without reading first.
    pub physical_block: Bytes,
    /// Is the device a spinning disk? None if the kernel does not say.
    pub rotational: Option<bool>,
    /// Is it a block device (otherwise a regular file)?
    pub block_device: bool,
    /// Is `O_DIRECT` in use? Then transfers bypass the page cache.
    pub direct: bool,
    /// Do discard commands have an effect?
    pub discard: bool,
    /// Do discarded ranges read as zeroes? True only if the device guarantees this.
    pub discard_zeroes: bool,
    /// Can zeroes be written without sending them?
    pub fast_zero: bool,
    /// How long its storage keeps a write that has no room before it refuses the write: for a full thin pool.
    pub room_wait: Nanos,
    /// The model's name.
    pub model: Option<String>,
    /// The serial number.
    pub serial: Option<String>,
    /// The kernel's word for the zones of the device: `none`, `host-aware`, `host-managed`.
    pub zoned: Option<String>,
    /// Place of the drive in an enclosure.
    pub bay: Option<String>,
}

/// The kernel's information about a device besides its size. A file has only an identity; memory and remote members have nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceNames {
    /// The model's name.
    pub model: Option<String>,
    /// The serial number.
    pub serial: Option<String>,
    /// The kernel's word for its zones: `none`, `host-aware`, `host-managed`.
    pub zoned: Option<String>,
    /// Its place in an enclosure.
    pub bay: Option<String>,
    /// Does it rotate? Known for block devices, and for drives that a profile models.
    pub rotates: Option<bool>,
    /// Which file or device is open.
    pub identity: Option<Identity>,
}

impl DeviceNames {
    /// The information about the block device at this path. The device is not opened. All is absent if the path has no block
    /// device.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let device = fs::metadata(path)
            .ok()
            .filter(|metadata| metadata.file_type().is_block_device())
            .map(|metadata| metadata.rdev());
        let Some(sysfs) = device.and_then(Sysfs::of) else { return Self::default() };
        Self {
            model: sysfs.model(),
            serial: sysfs.serial(),
            zoned: sysfs.zoned(),
            bay: sysfs.bay(),
            rotates: sysfs.rotational(),
            identity: None,
        }
    }
}

/// The link of sysfs to a block device.
pub(crate) fn in_sysfs(device: u64) -> PathBuf {
    format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device)).into()
}

/// The folders of sysfs for a block device and for its disk. Both are the same for a whole disk.
pub(crate) struct Sysfs {
    device: PathBuf,
    disk: PathBuf,
}

impl Sysfs {
    /// Finds the folders by device number. `None` if sysfs does not have the device (file systems without a device,
    /// sandboxes).
    pub(crate) fn of(device: u64) -> Option<Self> {
        let folder = fs::canonicalize(in_sysfs(device)).ok()?;
        let is_partition = folder.join("partition").exists();
        let disk = if is_partition { folder.parent()?.to_path_buf() } else { folder.clone() };
        Some(Self { device: folder, disk })
    }

    pub(crate) fn device(&self) -> &Path {
        &self.device
    }

    pub(crate) fn disk(&self) -> &Path {
        &self.disk
    }

    pub(crate) fn queue(&self, name: &str) -> Option<u64> {
        text(&self.disk.join("queue").join(name))?.parse().ok()
    }

    pub(crate) fn rotational(&self) -> Option<bool> {
        self.queue("rotational").map(|value| value == 1)
    }

    pub(crate) fn model(&self) -> Option<String> {
        let vendor = text(&self.disk.join("device/vendor")).filter(|v| !v.starts_with("0x") && v != "ATA");
        let model = text(&self.disk.join("device/model"));
        match (vendor, model) {
            (Some(vendor), Some(model)) => Some(format!("{vendor} {model}")),
            (_, model) => model,
        }
    }

    pub(crate) fn serial(&self) -> Option<String> {
        let udev = || {
            let number = text(&self.disk.join("dev"))?;
            fs::read_to_string(format!("/run/udev/data/b{number}")).ok()
        };
        serial_of(&self.disk, udev)
    }

    pub(crate) fn zoned(&self) -> Option<String> {
        text(&self.disk.join("queue/zoned"))
    }

    /// The name of the bay, from the link that the kernel makes to the enclosure's component.
    pub(crate) fn bay(&self) -> Option<String> {
        let entries = fs::read_dir(self.disk.join("device")).ok()?;
        entries.flatten().find_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("enclosure_device:")
                .map(|bay| bay.chars().take(NAME_CHARACTERS_MAX).collect())
        })
    }

    /// This device, its disk if it is a partition, and its partitions if it is a disk. If any of these has a holder,
    /// the device cannot be used.
    fn family(&self) -> Vec<PathBuf> {
        let mut family = vec![self.device.clone()];
        if self.device != self.disk {
            family.push(self.disk.clone());
        } else if let Ok(entries) = fs::read_dir(&self.disk) {
            family.extend(entries.flatten().map(|e| e.path()).filter(|p| p.join("partition").exists()));
        }
        family
    }
}

/// The kernel's present user of the block device, in words.
pub(crate) fn holder_of_device(device: u64, resolved: &Path) -> Option<String> {
    let family = Sysfs::of(device).map(|sysfs| sysfs.family()).unwrap_or_default();
    let by_stacking = family.iter().find_map(|member| stacked_on(member));
    by_stacking
        .or_else(|| {
            let mut numbers: Vec<String> = family.iter().filter_map(|member| text(&member.join("dev"))).collect();
            numbers.push(format!("{}:{}", libc::major(device), libc::minor(device)));
            swapped_on(&|path| device_number(path).is_some_and(|n| numbers.contains(&n)))
                .or_else(|| mounted_from(&numbers))
        })
        .or_else(|| looped_over(resolved))
}

/// The kernel's present user of the regular file, in words.
pub(crate) fn holder_of_file(device: u64, inode: u64, resolved: &Path) -> Option<String> {
    let is_it = |path: &Path| fs::metadata(path).is_ok_and(|m| (m.dev(), m.ino()) == (device, inode));
    swapped_on(&is_it).or_else(|| looped_over(resolved))
}

fn stacked_on(device: &Path) -> Option<String> {
    let holder = fs::read_dir(device.join("holders")).ok()?.flatten().next()?;
    let name = holder.file_name().to_string_lossy().into_owned();
    let mapped = text(&Path::new("/sys/block").join(&name).join("dm/name"));
    let below = device.file_name().unwrap_or_default().to_string_lossy();
    Some(match mapped {
        Some(mapped) => format!("device mapper {mapped} ({name}) is built on {below}"),
        None => format!("{name} is built on {below}"),
    })
}

fn swapped_on(is_it: &dyn Fn(&Path) -> bool) -> Option<String> {
    let swaps = fs::read_to_string("/proc/swaps").ok()?;
    let names = swaps.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().next());
    let name = names.map(unescape).find(|name| is_it(Path::new(name)))?;
    Some(format!("swap on {name} (swapoff {name})"))
}

/// The holder of a device that cannot be released.
pub(crate) const SYSTEM: &str = "it holds the root file system";

/// The mount of a device, found by its number, or by its source for file systems with numbers of their own (btrfs).
fn mounted_from(numbers: &[String]) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (place, source) = line.split_once(" - ")?;
        let fields: Vec<&str> = place.split(' ').collect();
        let (number, target) = (fields.get(2)?, fields.get(4)?);
        let source = unescape(source.split(' ').nth(1)?);
        let is_it = numbers.iter().any(|n| n == number)
            || source.starts_with('/') && device_number(Path::new(&source)).is_some_and(|n| numbers.contains(&n));
        is_it.then(|| {
            let target = unescape(target);
            match target.as_str() {
                "/" => SYSTEM.into(),
                _ => format!("mounted on {target} (umount {target})"),
            }
        })
    })
}

/// The file under a loop device, or under the one that a partition is on; none for any other device.
#[must_use]
pub fn backing_file(device: u64) -> Option<PathBuf> {
    let folder = in_sysfs(device).canonicalize().ok()?;
    let read = |disk: &Path| fs::read_to_string(disk.join("loop/backing_file")).ok();
    let text = read(&folder).or_else(|| read(folder.parent()?))?;
    Some(text.trim_end_matches('\n').into())
}

fn looped_over(resolved: &Path) -> Option<String> {
    let wanted = resolved.to_str()?;
    fs::read_dir("/sys/block").ok()?.flatten().find_map(|entry| {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        (backing.trim_end_matches('\n') == wanted)
            .then(|| format!("loop device {name} is built on it (losetup -d /dev/{name})"))
    })
}

fn device_number(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let device = metadata.file_type().is_block_device().then(|| metadata.rdev())?;
    Some(format!("{}:{}", libc::major(device), libc::minor(device)))
}

/// The serial number that is on the drive's label: from the kernel, or from what udev knows. A world wide name is none.
fn serial_of(disk: &Path, udev: impl FnOnce() -> Option<String>) -> Option<String> {
    let plain = ["device/serial", "serial"].iter().find_map(|name| text(&disk.join(name)));
    let by_page = || fs::read(disk.join("device/vpd_pg80")).ok().and_then(|page| unit_serial(&page));
    plain.or_else(by_page).or_else(|| {
        let known = udev()?;
        let value = |key: &str| {
            let line = known.lines().find_map(|line| line.strip_prefix("E:")?.strip_prefix(key)?.strip_prefix('='))?;
            printable(line.as_bytes())
        };
        // For SCSI, the short serial of udev is the world wide name.
        let short = || value("ID_SERIAL_SHORT").filter(|_| value("ID_BUS").as_deref() != Some("scsi"));
        value("ID_SCSI_SERIAL").or_else(short)
    })
}

/// The text of SCSI's page 80, the unit serial number: four bytes with the page's number and the length, and ASCII.
fn unit_serial(page: &[u8]) -> Option<String> {
    let [_, 0x80, high, low, rest @ ..] = page else { return None };
    printable(rest.get(..usize::from(u16::from_be_bytes([*high, *low])))?)
}

/// The text of a one-line file in sysfs: trimmed, printable, with limited length. `None` if the file is empty.
pub(crate) fn text(path: &Path) -> Option<String> {
    printable(&fs::read(path).ok()?)
}

/// The same of bytes.
fn printable(bytes: &[u8]) -> Option<String> {
    let printable: String = String::from_utf8_lossy(bytes)
        .trim_matches(|c: char| c.is_whitespace() || c == '\0')
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .take(NAME_CHARACTERS_MAX)
        .collect();
    (!printable.is_empty()).then_some(printable)
}

/// Decodes names: the kernel writes blanks in octal (`\040`).
fn unescape(field: &str) -> String {
    let mut rest = field.as_bytes();
    let mut plain = Vec::with_capacity(rest.len());
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| byte == b'\\').and_then(|d| std::str::from_utf8(d).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) => {
                plain.push(escaped);
                rest = &after[3..];
            }
            None => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_escapes_are_undone_and_broken_ones_kept() {
        assert_eq!(unescape(r"/mnt/my\040disk\134"), r"/mnt/my disk\");
        assert_eq!(unescape(r"\04"), r"\04");
        assert_eq!(unescape(r"\999x\"), r"\999x\");
    }

    #[test]
    fn the_serial_number_is_the_one_on_the_label_and_no_world_wide_name() {
        let folder = std::env::temp_dir().join(format!("openraid-serial-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("device")).expect("room");
        let put = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).expect("room");
        put("wwid", b"naa.5000c500a1b2c3d4\n");
        put("device/wwid", b"t10.ATA     ST4000  WXYZ\n");
        assert_eq!(serial_of(&folder, || None), None);
        // As udev has a SAS drive, and a SATA drive.
        let sas = "S:disk/x\nE:ID_BUS=scsi\nE:ID_SERIAL_SHORT=5000c500a1b2c3d4\nE:ID_SCSI_SERIAL=ZC1B2C3D\n";
        assert_eq!(serial_of(&folder, || Some(sas.into())).as_deref(), Some("ZC1B2C3D"));
        let without = sas.replace("E:ID_SCSI_SERIAL=ZC1B2C3D\n", "");
        assert_eq!(serial_of(&folder, || Some(without)), None);
        let sata = "E:ID_BUS=ata\nE:ID_SERIAL=ST4000_ZDH1ABCD\nE:ID_SERIAL_SHORT=ZDH1ABCD\n";
        assert_eq!(serial_of(&folder, || Some(sata.into())).as_deref(), Some("ZDH1ABCD"));
        // The page of a drive of QEMU with serial=drive-1, and pages that are cut.
        put("device/vpd_pg80", b"\x00\x80\x00\x0c    drive-1 ");
        assert_eq!(serial_of(&folder, || Some(sata.into())).as_deref(), Some("drive-1"));
        for page in [&b"\x00\x80\x00\x0cabc"[..], b"\x00\x83\x00\x03abc", b"\x00\x80", b"\x00\x80\x00\x04    "] {
            assert_eq!(unit_serial(page), None);
        }
        // NVMe.
        put("device/serial", b"S4EWNX0R1 \n");
        assert_eq!(serial_of(&folder, || None).as_deref(), Some("S4EWNX0R1"));
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    #[test]
    fn the_holder_of_the_root_device_is_named() {
        let Ok(root) = fs::metadata("/") else { return };
        let Some(sysfs) = Sysfs::of(root.dev()) else {
            println!("skipped: the root file system has no block device here");
            return;
        };
        let holder = holder_of_device(root.dev(), &sysfs.device).expect("the device of / is in use");
        // In a changed root, `/` is no mount of its own: then the device is named by a mount that can be seen.
        let known = [SYSTEM, "is built on", "mounted on"];
        assert!(known.iter().any(|words| holder.contains(words)), "{holder}");
    }
}
