//! The process that holds a file or device, for messages: from `/proc/locks` and the open files of all processes.
//!
//! Files of other users' processes can be listed by root only; then the process stays unknown. Links are read and never
//! followed: a file of another process may be on a server that does not answer.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use openraid_units::Nanos;

use crate::clock;
use crate::member_facts::{holder_of_device, text};

/// Maximum time to wait for the lock of a small file that programs change quickly.
pub const FILE_LOCK_TIME_MAX: Nanos = Nanos::from_secs(5);
/// The pause between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockKind {
    /// A lock of the whole file (`flock`), as openraid takes it.
    Whole,
    /// A lock of bytes (`fcntl`), as QEMU takes it.
    Bytes,
}

/// The process that has such a lock on the file, and its text.
pub(crate) fn lock_owner(kind: LockKind, device: u64, inode: u64, resolved: &Path) -> Option<(u32, String)> {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let wanted = format!("{:02x}:{:02x}:{inode}", libc::major(device), libc::minor(device));
    let process = owner_in(&locks, kind, &wanted).or_else(|| opener(resolved))?;
    Some((process, process_text(process)))
}

/// The process in a line as `1: FLOCK ADVISORY WRITE 42 08:01:1234 0 EOF`. A lock of bytes that belongs to an open file
/// has no process there (-1).
fn owner_in(locks: &str, kind: LockKind, file: &str) -> Option<u32> {
    let is_kind = |word: &str| match kind {
        LockKind::Whole => word == "FLOCK",
        LockKind::Bytes => matches!(word, "POSIX" | "OFDLCK"),
    };
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        // In the line of a process that waits for a lock, the second field is an arrow.
        let is_it = fields.get(1).is_some_and(|word| is_kind(word)) && fields.get(5) == Some(&file);
        is_it.then(|| fields[4].parse().ok()).flatten()
    })
}

/// What holds a block device in the kernel, in words: a mount, swap, a device over it.
#[must_use]
pub fn device_holder(path: &Path) -> Option<String> {
    let device = fs::metadata(path).ok()?.rdev();
    holder_of_device(device, path).or_else(|| mounted_elsewhere(device))
}

/// A process other than `known` that has a device open, in words. udev opens each device for a moment when a writer has closed it.
#[must_use]
pub fn device_opener(path: &Path, known: Option<u32>) -> Option<String> {
    let process = openers(path).find(|process| Some(*process) != known)?;
    Some(format!("{} has it open", process_text(process)))
}

/// A mount of the device that only another mount namespace has: in a container, or in a service with a view of its own.
fn mounted_elsewhere(device: u64) -> Option<String> {
    let number = format!("{}:{}", libc::major(device), libc::minor(device));
    let mut seen = Vec::new();
    processes().find_map(|process| {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let namespace = fs::read_link(folder.join("ns/mnt")).ok()?;
        if seen.contains(&namespace) {
            return None;
        }
        seen.push(namespace);
        let mounts = fs::read_to_string(folder.join("mountinfo")).ok()?;
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let target =
            fields.filter(|fields| fields.get(2) == Some(&number.as_str())).find_map(|fields| Some(*fields.get(4)?));
        target.map(|target| format!("mounted on {target} in the mount namespace of {}", process_text(process)))
    })
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Another process that has the file or device open.
pub(crate) fn opener(resolved: &Path) -> Option<u32> {
    openers(resolved).next()
}

fn openers(resolved: &Path) -> impl Iterator<Item = u32> + '_ {
    let this_process = std::process::id();
    processes().filter(move |process| *process != this_process && has_open(*process, resolved))
}

fn has_open(process: u32, resolved: &Path) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == resolved))
}

/// A process by its number and program.
pub(crate) fn process_text(process: u32) -> String {
    match text(&PathBuf::from(format!("/proc/{process}/comm"))) {
        Some(name) => format!("process {process} ({name})"),
        None => format!("process {process}"),
    }
}

/// Lock a small file, shared or for this program alone. A program that keeps the lock is waited for
/// [`FILE_LOCK_TIME_MAX`].
///
/// # Errors
/// The kernel's, or [`io::ErrorKind::WouldBlock`] with the holder in the text.
pub fn lock_file(file: &File, path: &Path, shared: bool) -> io::Result<()> {
    let begun = clock::now();
    loop {
        match if shared { file.try_lock_shared() } else { file.try_lock() } {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        if clock::now() >= begun + FILE_LOCK_TIME_MAX {
            let metadata = file.metadata()?;
            let resolved = path.canonicalize().unwrap_or_else(|_| path.into());
            let owner = lock_owner(LockKind::Whole, metadata.dev(), metadata.ino(), &resolved);
            let owner = owner.map_or_else(|| "another process".into(), |(_, text)| text);
            let text = format!(
                "{} has been locked by {owner} for {} s; end that process, or try again when it is done",
                path.display(),
                FILE_LOCK_TIME_MAX.as_secs()
            );
            return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
        }
        thread::sleep(LOCK_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_holder_is_found_and_those_of_other_files_locks_and_waiters_are_not() {
        let locks = "1: -> FLOCK  ADVISORY  WRITE 7 08:01:12 0 EOF\n2: FLOCK  ADVISORY  WRITE 42 08:01:12 0 EOF\n\
                     3: POSIX  ADVISORY  READ 43 08:01:123 0 9\n4: OFDLCK ADVISORY  READ -1 08:01:12 100 101\n\
                     5: LEASE  ACTIVE    READ 44 08:01:9 0 EOF\n";
        let found = |kind, file| owner_in(locks, kind, file);
        assert_eq!(found(LockKind::Whole, "08:01:12"), Some(42));
        assert_eq!(found(LockKind::Bytes, "08:01:123"), Some(43));
        assert_eq!(found(LockKind::Bytes, "08:01:12"), None, "an open file has no process");
        assert_eq!(found(LockKind::Whole, "08:01:9"), None);
        assert_eq!(owner_in("garbage\n\n1: FLOCK\n", LockKind::Whole, "08:01:12"), None);
    }
}
