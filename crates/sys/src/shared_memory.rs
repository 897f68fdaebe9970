//! Memory of other processes: parts of files that they share with this one, and change at any time.
//!
//! No reference to the memory ever exists: each access copies between it and memory of this process, once. The file is sealed
//! against shrinking, so that an access never meets a page that the file has no more, which would end the process. A page that was
//! given back (a hole) reads as zeros; a huge page of hugetlb need not come back, so those are refused.

use crate::errno::{check, Errno};
use crate::new_file::file_system;
use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// The kind of the kernel's file system of huge pages, from linux/magic.h.
const HUGETLBFS: i64 = 0x9584_58f6;

/// Why a file cannot be shared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SharedMemoryError {
    /// It may shrink while it is mapped.
    MayShrink,
    /// Its pages are huge ones, of which the kernel may have none left when one is needed again.
    HugePages,
    /// It ends before the part.
    TooShort {
        /// Its length.
        have: u64,
        /// The end of the part.
        need: u64,
    },
    /// It does not begin at a multiple of eight bytes of its file, so numbers in it are not aligned.
    Offset(u64),
    /// The kernel's error.
    Failed(Errno),
}

impl fmt::Display for SharedMemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MayShrink => f.write_str(
                "the shared memory is not sealed against shrinking; give the machine memory by memory-backend-memfd,share=on",
            ),
            Self::HugePages => f.write_str(
                "the shared memory is of huge pages, which the machine could take away while they are used; leave hugetlb=on out of \
                 memory-backend-memfd",
            ),
            Self::TooShort { have, need } => write!(f, "the shared memory has {have} bytes, and {need} are needed"),
            Self::Offset(at) => write!(f, "the shared memory begins at byte {at} of its file, which is no multiple of 8"),
            Self::Failed(error) => write!(f, "the shared memory cannot be mapped: {error}"),
        }
    }
}
impl std::error::Error for SharedMemoryError {}

/// A part of a shared file.
#[derive(Debug)]
pub struct SharedMemory {
    base: NonNull<u8>,
    /// Bytes of the mapping before the part, of the part, and of the whole mapping.
    before: usize,
    len: usize,
    mapped: usize,
}

// SAFETY: it is an address range that only this value unmaps; each access is a copy of bytes that may change anyway.
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// Map a part of a file for reading and writing.
    ///
    /// # Errors
    /// The file may shrink, is too short, or cannot be mapped.
    pub fn map(file: BorrowedFd<'_>, offset: u64, len: u64) -> Result<Self, SharedMemoryError> {
        // SAFETY: no memory involved.
        let seals = check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) });
        // The seal is there before the length is looked at.
        if !seals.is_ok_and(|seals| seals & libc::F_SEAL_SHRINK != 0) {
            return Err(SharedMemoryError::MayShrink);
        }
        let link = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("no zero");
        if file_system(&link).is_none_or(|kind| kind & 0xffff_ffff == HUGETLBFS) {
            return Err(SharedMemoryError::HugePages);
        }
        let about = file.try_clone_to_owned().and_then(|file| File::from(file).metadata());
        let about = about.map_err(|error| SharedMemoryError::Failed(error.into()))?;
        if !offset.is_multiple_of(8) {
            return Err(SharedMemoryError::Offset(offset));
        }
        let need = offset.saturating_add(len);
        if about.len() < need || len == 0 {
            return Err(SharedMemoryError::TooShort { have: about.len(), need });
        }
        let page = about.blksize().max(4096);
        let (start, before) = (offset - offset % page, offset % page);
        let failed = |_| SharedMemoryError::Failed(Errno(libc::ENOMEM));
        let (before, len) = (usize::try_from(before).map_err(failed)?, usize::try_from(len).map_err(failed)?);
        let start = libc::off_t::try_from(start).map_err(failed)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let mapped = usize::try_from(page).ok().and_then(|page| (before + len).checked_next_multiple_of(page));
        let mapped = mapped.ok_or(SharedMemoryError::Failed(Errno(libc::ENOMEM)))?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), mapped, protection, flags, file.as_raw_fd(), start) };
        if base == libc::MAP_FAILED {
            return Err(SharedMemoryError::Failed(Errno::last()));
        }
        let base: NonNull<u8> = NonNull::new(base.cast()).ok_or(SharedMemoryError::Failed(Errno(libc::ENOMEM)))?;
        // A dump of this process leaves the memory of others out.
        // SAFETY: the range is the mapping's; the advice does not change its contents.
        unsafe { libc::madvise(base.as_ptr().cast(), mapped, libc::MADV_DONTDUMP) };
        Ok(Self { base, before, len, mapped })
    }

    /// The address of a range that has to be inside.
    fn address(&self, at: u64, len: usize) -> *mut u8 {
        let end = usize::try_from(at).ok().and_then(|at| at.checked_add(len));
        assert!(end.is_some_and(|end| end <= self.len), "bug: {len} bytes at {at} of {} shared bytes", self.len);
        let at = usize::try_from(at).expect("it is inside");
        // SAFETY: inside the mapping, as was just checked.
        unsafe { self.base.as_ptr().add(self.before + at) }
    }

    /// Copy bytes out. Panics if the range is not inside.
    // It is never inlined, so that the compiler cannot read the source again in place of the copy.
    #[inline(never)]
    pub fn read(&self, at: u64, into: &mut [u8]) {
        let from = self.address(at, into.len());
        // SAFETY: `from` is mapped for that many bytes and no memory of this program, so the ranges do not overlap. Others may
        // write there meanwhile: any mixture of old and new bytes is a valid result.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    /// Copy bytes in. Panics if the range is not inside.
    #[inline(never)]
    pub fn write(&self, at: u64, from: &[u8]) {
        let into = self.address(at, from.len());
        // SAFETY: as for reading.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), into, from.len()) };
    }

    /// Load a number before all that is loaded later. Panics if it is not inside, or at an odd address.
    #[must_use]
    pub fn load_u16(&self, at: u64) -> u16 {
        u16::from_le(self.number(at).load(Ordering::Acquire))
    }

    /// Store a number after all that was stored before. Panics if it is not inside, or at an odd address.
    pub fn store_u16(&self, at: u64, value: u16) {
        self.number(at).store(value.to_le(), Ordering::Release);
    }

    fn number(&self, at: u64) -> &AtomicU16 {
        let address = self.address(at, 2).cast::<u16>();
        assert!(address.is_aligned(), "bug: a shared number at the odd place {at}");
        // SAFETY: mapped as long as `self` is borrowed, aligned, and accessed by atomic instructions or copies only.
        unsafe { AtomicU16::from_ptr(address) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: this range was mapped by `map` and has no other owner.
        let returned = unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
        assert!(returned == 0, "bug: a mapping of shared memory could not be unmapped");
    }
}

/// A new file of zeros in memory, whose length is fixed.
///
/// # Errors
/// The kernel has no memory or no descriptors.
pub fn sealed_file(len: u64) -> Result<OwnedFd, Errno> {
    // SAFETY: the name ends with a zero.
    let fd =
        check(unsafe { libc::memfd_create(c"openraid-shared".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len(len).map_err(Errno::from)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: no memory involved.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(file.into())
}

/// A counter of the kernel (eventfd) that another process made, and by which the two wake each other.
#[derive(Debug)]
pub struct SharedEvent {
    fd: OwnedFd,
}

impl SharedEvent {
    /// The event of this descriptor.
    ///
    /// # Errors
    /// It is something else: writing to another file could block or do harm.
    pub fn of(fd: OwnedFd) -> Result<Self, OwnedFd> {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        if !link.is_ok_and(|link| link.as_os_str() == "anon_inode:[eventfd]") {
            return Err(fd);
        }
        // SAFETY: no memory involved.
        let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) });
        // SAFETY: no memory involved.
        let set = flags
            .and_then(|flags| check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) }));
        match set {
            Ok(_) => Ok(Self { fd }),
            Err(_) => Err(fd),
        }
    }

    /// Wake the other process. It shares the flags of the event and may make a write wait, so a full counter is not written to.
    pub fn ring(&self) {
        let mut event = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: one entry, which is valid for the call.
        let count = unsafe { libc::poll(&raw mut event, 1, 0) };
        if count != 1 || event.revents & libc::POLLOUT == 0 {
            return;
        }
        let one: u64 = 1;
        // A full counter has woken it already. Nothing else is an error here that could be repaired.
        // SAFETY: reads eight bytes of `one`.
        let _ = unsafe { libc::write(self.fd.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

impl AsFd for SharedEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking_threads::event_fd;
    use crate::new_file::memory_file;

    #[test]
    fn two_mappings_of_a_file_are_the_same_memory() {
        let file = sealed_file(10_000).expect("a file");
        let all = SharedMemory::map(file.as_fd(), 0, 10_000).expect("mapped");
        let part = SharedMemory::map(file.as_fd(), 5000, 5000).expect("mapped");
        part.write(10, b"abc");
        let mut bytes = [0; 5];
        all.read(5009, &mut bytes);
        assert_eq!(&bytes, b"\0abc\0");
        all.store_u16(5000, 0x1234);
        assert_eq!(part.load_u16(0), 0x1234);
        part.read(0, &mut bytes);
        assert_eq!(bytes[..2], [0x34, 0x12]);
    }

    #[test]
    fn memory_that_could_go_away_is_refused_in_words() {
        let plain = memory_file(4096).expect("a file");
        let refused = SharedMemory::map(plain.as_fd(), 0, 4096).expect_err("it may shrink");
        assert!(refused.to_string().contains("memory-backend-memfd"), "{refused}");
        let sealed = sealed_file(4096).expect("a file");
        assert_eq!(SharedMemory::map(sealed.as_fd(), 1, 16).expect_err("odd"), SharedMemoryError::Offset(1));
        for (offset, len) in [(0, 4097), (4096, 1), (u64::MAX - 7, 2), (0, 0)] {
            let refused = SharedMemory::map(sealed.as_fd(), offset, len).expect_err("too short");
            assert!(matches!(refused, SharedMemoryError::TooShort { have: 4096, .. }), "{refused}");
        }
        assert!(File::from(sealed).set_len(0).is_err());
    }

    #[test]
    fn a_hole_in_shared_memory_is_zeros_and_huge_pages_are_refused() {
        let file = sealed_file(8192).expect("a file");
        let memory = SharedMemory::map(file.as_fd(), 0, 8192).expect("mapped");
        memory.write(0, &[1; 8192]);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: no memory involved.
        check(unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, 4096) }).expect("a hole");
        let mut bytes = [2; 2];
        memory.read(4095, &mut bytes);
        assert_eq!(bytes, [0, 1]);
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | libc::MFD_HUGETLB;
        // SAFETY: the name ends with a zero.
        let Ok(fd) = check(unsafe { libc::memfd_create(c"huge".as_ptr(), flags) }) else {
            return println!("skipped: this kernel has no huge pages");
        };
        // SAFETY: the descriptor is new and has no other owner.
        let huge = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        huge.set_len(2 << 20).expect("a length needs no page");
        // SAFETY: no memory involved.
        check(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) }).expect("sealed");
        assert_eq!(SharedMemory::map(huge.as_fd(), 0, 4096).expect_err("huge"), SharedMemoryError::HugePages);
    }

    #[test]
    #[should_panic(expected = "bug: 2 bytes at 4095")]
    fn an_access_outside_is_a_bug() {
        let file = sealed_file(4096).expect("a file");
        SharedMemory::map(file.as_fd(), 0, 4096).expect("mapped").write(4095, &[0; 2]);
    }

    #[test]
    fn only_events_are_events() {
        assert!(SharedEvent::of(memory_file(1).expect("a file").into()).is_err());
        let event = event_fd().expect("an event");
        let other = event.try_clone().expect("a descriptor");
        SharedEvent::of(event).expect("an event").ring();
        let mut count = [0; 8];
        std::io::Read::read_exact(&mut File::from(other), &mut count).expect("it was rung");
        assert_eq!(count, 1u64.to_ne_bytes());
    }
}
