//! The descriptor limit of this process, and descriptors that it inherited.

use crate::errno::check;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Raises the limit of this process to at least `wanted` descriptors, or to the maximum that the system allows. Returns
/// the new limit.
pub fn raise_descriptor_limit(wanted: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one structure of this type there.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return wanted;
    }
    if limit.rlim_cur >= wanted {
        return limit.rlim_cur;
    }
    let before = limit.rlim_cur;
    limit.rlim_cur = wanted.min(limit.rlim_max);
    // SAFETY: the kernel reads one structure of this type there.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0 {
        limit.rlim_cur
    } else {
        before
    }
}

/// Descriptors that belong to the standard library.
const STANDARD: std::ops::RangeInclusive<RawFd> = 0..=2;

/// Takes over a descriptor that this process inherited at its start. The descriptor is closed when the file is dropped.
/// Standard output and standard error stay open independently.
///
/// # Errors
/// The descriptor is not open, or not open for writing.
pub fn take_descriptor(number: RawFd) -> io::Result<File> {
    // SAFETY: no memory involved.
    let flags =
        check(unsafe { libc::fcntl(number, libc::F_GETFL) }).map_err(|error| io::Error::from_raw_os_error(error.0))?;
    if flags & libc::O_ACCMODE == libc::O_RDONLY {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    if STANDARD.contains(&number) {
        // SAFETY: open, as was just seen, for the length of this call.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        return borrowed.try_clone_to_owned().map(File::from);
    }
    // SAFETY: it is open, and comes from the command line: nothing in this process has it as its own.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    Ok(File::from(owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::IntoRawFd;

    #[test]
    fn a_descriptor_that_is_open_for_writing_is_taken_over() {
        let (mut reader, writer) = io::pipe().expect("room for two descriptors");
        let mut file = take_descriptor(writer.into_raw_fd()).expect("open");
        file.write_all(b"x").expect("the pipe has a reader");
        drop(file);
        let mut text = String::new();
        io::Read::read_to_string(&mut reader, &mut text).expect("it ends");
        assert_eq!(text, "x");
        assert!(take_descriptor(reader.into_raw_fd()).is_err());
        assert!(take_descriptor(1 << 20).is_err());
    }

    #[test]
    fn the_limit_rises_as_far_as_the_system_allows_and_never_falls() {
        let before = raise_descriptor_limit(0);
        let after = raise_descriptor_limit(before + 1);
        assert!(after == before || after == before + 1);
        assert_eq!(raise_descriptor_limit(1), after);
    }
}
