//! How long thin volumes keep a write that has no room.
//!
//! A full thin pool keeps writes for `no_space_timeout` seconds, so that an administrator can extend it, and refuses
//! them after that. While it keeps them, its drive is not dead.
//!
//! Source: the kernel's `Documentation/admin-guide/device-mapper/thin-provisioning.rst`, and `linux/dm-ioctl.h`.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use openraid_units::Nanos;

use crate::member_facts::{text, Sysfs};

const PARAMETER: &str = "/sys/module/dm_thin_pool/parameters/no_space_timeout";
/// The longest time. The parameter 0 means that a pool keeps writes without a limit.
const LONGEST: u64 = 24 * 3600;
/// Devices below a device that are looked at: more is a circle.
pub(crate) const DEPTH_MAX: u32 = 16;

/// `struct dm_ioctl` with room for the targets of a table.
#[repr(C)]
struct Question {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_nr: u32,
    padding: u32,
    dev: u64,
    name: [u8; 128],
    uuid: [u8; 129],
    data: [u8; 7],
    targets: [u8; TARGETS_BYTES as usize],
}

const TARGETS_BYTES: u32 = 16 << 10;
/// Size of `struct dm_ioctl`, and of `struct dm_target_spec` with the place of the target's name in it.
const HEADER_BYTES: u32 = 312;
const TARGET_BYTES: usize = 40;
const TARGET_NEXT: usize = 20;
const TARGET_NAME: usize = 24;
/// `_IOWR(DM_IOCTL, DM_TABLE_STATUS_CMD, struct dm_ioctl)`, and its flag that asks for the table alone.
const DM_TABLE_STATUS: u32 = 0xc138_fd0c;
const DM_STATUS_TABLE_FLAG: u32 = 1 << 4;

/// How long the storage under a device keeps a write that has no room before it refuses the write.
pub(crate) fn room_wait(device: u64) -> Nanos {
    let Some(seconds) = text(Path::new(PARAMETER)).and_then(|text| text.parse::<u64>().ok()) else {
        return Nanos::ZERO;
    };
    if !is_thin(device, DEPTH_MAX) {
        return Nanos::ZERO;
    }
    Nanos::from_secs(if seconds == 0 { LONGEST } else { seconds.min(LONGEST) })
}

/// Is a thin volume under the device? If the kernel does not say, a device of the device mapper may be one.
fn is_thin(device: u64, depth: u32) -> bool {
    let Some(sysfs) = Sysfs::of(device) else { return false };
    if sysfs.disk().join("dm").exists() && targets(device).is_none_or(|kinds| kinds.iter().any(|kind| kind == "thin")) {
        return true;
    }
    let mut numbers = below(sysfs.disk()).into_iter().filter_map(|disk| device_of(&text(&disk.join("dev"))?));
    depth > 0 && numbers.any(|number| is_thin(number, depth - 1))
}

/// The devices directly under a disk of sysfs, by name.
pub(crate) fn below(disk: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(disk.join("slaves")).into_iter().flatten().flatten();
    let mut below: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    below.sort();
    below
}

pub(crate) fn device_of(number: &str) -> Option<u64> {
    let (major, minor) = number.split_once(':')?;
    Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// The names of the targets in the table of a device of the device mapper, as far as they fit into the question.
pub(crate) fn targets(device: u64) -> Option<Vec<String>> {
    let control = File::open("/dev/mapper/control").ok()?;
    let (major, minor) = (u64::from(libc::major(device)), u64::from(libc::minor(device)));
    let mut question = Box::new(Question {
        version: [4, 0, 0],
        data_size: HEADER_BYTES + TARGETS_BYTES,
        data_start: HEADER_BYTES,
        target_count: 0,
        open_count: 0,
        flags: DM_STATUS_TABLE_FLAG,
        event_nr: 0,
        padding: 0,
        dev: minor & 0xff | major << 8 | (minor & !0xff) << 12,
        name: [0; 128],
        uuid: [0; 129],
        data: [0; 7],
        targets: [0; TARGETS_BYTES as usize],
    });
    // SAFETY: the kernel reads and writes at most `data_size` bytes, which the question has.
    let asked = unsafe { libc::ioctl(control.as_raw_fd(), DM_TABLE_STATUS as libc::Ioctl, &raw mut *question) };
    (asked == 0).then(|| names(&question.targets, question.target_count))
}

/// The targets' names: each entry has the distance of the next one from the first.
fn names(entries: &[u8], count: u32) -> Vec<String> {
    let (mut names, mut at) = (Vec::new(), 0);
    for _ in 0..count {
        let Some(entry) = entries.get(at..at + TARGET_BYTES) else { break };
        let name = entry[TARGET_NAME..].split(|byte| *byte == 0).next().unwrap_or_default();
        names.push(String::from_utf8_lossy(name).into_owned());
        let next = u32::from_ne_bytes([0, 1, 2, 3].map(|byte| entry[TARGET_NEXT + byte])) as usize;
        if next <= at {
            break;
        }
        at = next;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(next: u32, name: &str) -> [u8; 64] {
        let mut entry = [0; 64];
        entry[TARGET_NEXT..TARGET_NAME].copy_from_slice(&next.to_ne_bytes());
        entry[TARGET_NAME..TARGET_NAME + name.len()].copy_from_slice(name.as_bytes());
        entry
    }

    #[test]
    fn the_question_is_laid_out_as_the_kernel_reads_it() {
        assert_eq!(std::mem::offset_of!(Question, dev), 40);
        assert_eq!(std::mem::offset_of!(Question, targets), HEADER_BYTES as usize);
        assert_eq!(DM_TABLE_STATUS, 3 << 30 | HEADER_BYTES << 16 | 0xfd << 8 | 12);
    }

    #[test]
    fn targets_are_named_as_far_as_their_entries_go() {
        let two = [entry(64, "linear"), entry(128, "thin")].concat();
        assert_eq!(names(&two, 2), ["linear", "thin"]);
        assert_eq!(names(&two, 3), ["linear", "thin"], "an entry that is not there");
        assert_eq!(names(&[entry(0, "thin"), entry(0, "")].concat(), 2), ["thin"], "an entry that names itself");
    }
}
