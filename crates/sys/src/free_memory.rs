//! The memory that this process may still allocate, according to the kernel. The figures are read from procfs and the
//! control groups (cgroups, both versions) as text that may be missing or unusual. If a figure cannot be read, there is
//! no limit from it.

use openraid_units::Bytes;
use std::fs;
use std::path::{Path, PathBuf};

/// A limit and its source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryBound {
    /// The limit.
    pub bytes: Bytes,
    /// The source of the limit, for readers.
    pub by: String,
}

/// File with the kernel's figures.
const MEMINFO: &str = "/proc/meminfo";
const GROUP: &str = "/proc/self/cgroup";
const GROUPS: &str = "/sys/fs/cgroup";

/// Version 1 expresses "no limit" as the largest number of whole pages.
const NO_LIMIT_MIN: u64 = 1 << 62;

/// The lowest limit: the memory that the machine has available without swapping, or the limit of a control group of
/// this process. `None` if the kernel gives neither.
#[must_use]
pub fn bound() -> Option<MemoryBound> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    bound_of(&read)
}

/// Number of heaps that all threads of a process share. By default glibc makes one heap for each thread, up to eight
/// per processor, and memory that a thread freed stays in its heap. With ten arrays, the threads that had opened
/// members left 30 MB.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 2;

/// Makes threads share heaps, so that one thread reuses memory that another freed. For programs that run for a long
/// time. Call this before any thread is made.
pub fn share_heaps() {
    // SAFETY: the call sets a number of the allocator; a refusal changes nothing.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, HEAPS);
    }
}

/// Returns freed memory to the system, because a start needs more memory than serving.
pub fn give_back() {
    // SAFETY: the call looks at the allocator's own memory only, under its locks.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

fn bound_of(read: &dyn Fn(&Path) -> Option<String>) -> Option<MemoryBound> {
    let machine = read(Path::new(MEMINFO)).and_then(|text| available(&text));
    let machine = machine.map(|bytes| MemoryBound { bytes, by: "available on this machine (MemAvailable)".into() });
    let groups = read(Path::new(GROUP)).map(|text| files(&text)).unwrap_or_default();
    let limits = groups.into_iter().filter_map(|file| {
        let bytes = read(&file)?.trim().parse::<u64>().ok().filter(|bytes| *bytes < NO_LIMIT_MIN)?;
        Some(MemoryBound { bytes: Bytes(bytes), by: format!("the limit of its cgroup ({})", file.display()) })
    });
    machine.into_iter().chain(limits).min_by_key(|bound| bound.bytes)
}

/// The line `MemAvailable:   21332868 kB`.
fn available(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024).map(Bytes)
}

/// The files with the limits of the groups in `0::/a/b` (version 2) and `4:memory:/a/b` (version 1), the innermost
/// group first.
fn files(group: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in group.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, file) = match controllers {
            "" => (PathBuf::from(GROUPS), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (Path::new(GROUPS).join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let inside = Path::new(path.trim_start_matches('/'));
        files.extend(inside.ancestors().map(|group| root.join(group).join(file)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound_with(files: &[(&str, &str)]) -> Option<MemoryBound> {
        bound_of(&|path| files.iter().find(|(known, _)| Path::new(known) == path).map(|(_, text)| (*text).into()))
    }

    #[test]
    fn the_tightest_of_machine_and_groups_counts() {
        let meminfo = ("/proc/meminfo", "MemTotal:       24684092 kB\nMemAvailable:   2048 kB\n");
        assert_eq!(bound_with(&[meminfo]).unwrap().bytes, Bytes::mib(2));
        let two = ("/proc/self/cgroup", "0::/a/b\n");
        let inner = ("/sys/fs/cgroup/a/b/memory.max", "max\n");
        let outer = ("/sys/fs/cgroup/a/memory.max", "1048576\n");
        let bound = bound_with(&[meminfo, two, inner, outer]).unwrap();
        assert_eq!(bound.bytes, Bytes::mib(1));
        assert!(bound.by.contains("/sys/fs/cgroup/a/memory.max"), "{}", bound.by);
        let one = ("/proc/self/cgroup", "8:pids:/\n4:cpu,memory:/c\n0::/\n");
        let none = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        let limit = ("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "65536\n");
        assert_eq!(bound_with(&[meminfo, one, none, limit]).unwrap().bytes, Bytes::kib(64));
        assert_eq!(bound_with(&[meminfo, one, none]).unwrap().bytes, Bytes::mib(2));
    }

    #[test]
    fn an_unreadable_limit_counts_as_no_limit() {
        assert_eq!(bound_with(&[]), None);
        assert_eq!(
            bound_with(&[("/proc/meminfo", "MemAvailable: lots"), ("/proc/self/cgroup", "nonsense\n::\n")]),
            None
        );
    }

    #[test]
    fn this_machine_tells() {
        assert!(bound().is_some_and(|bound| bound.bytes > Bytes::mib(1)));
    }
}
