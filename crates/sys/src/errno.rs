//! The kernel's error numbers, their meaning for a drive, and notes about fallbacks.

use std::fmt;

/// An error number of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

/// The meaning of an error number for the owner of the drive, grouped by the possible reactions of the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The medium could not read or write these blocks; others may be readable.
    Media,
    /// The device no longer exists.
    Gone,
    /// The file system, quota or thin pool under the member is full.
    NoSpace,
    /// The member cannot be written.
    ReadOnly,
    /// The member does not know this kind of command.
    Unsupported,
    /// The kernel temporarily had no memory or no slot; the same command may succeed later.
    Busy,
    /// The member is shorter than when it was opened.
    Truncated,
    /// Any other error of a device, transport or file system.
    Protocol,
}

impl Errno {
    /// The error of the last system call of this thread.
    pub(crate) fn last() -> Self {
        Self::from(std::io::Error::last_os_error())
    }

    /// The kind of drive fault that the error means.
    #[must_use]
    pub fn fault(self) -> FaultKind {
        match self.0 {
            libc::EIO | libc::EILSEQ | libc::ENODATA | libc::EBADMSG | libc::EUCLEAN => FaultKind::Media,
            libc::ENODEV | libc::ENXIO | libc::ENOTCONN | libc::ESHUTDOWN | libc::ESTALE | libc::ENOLINK => {
                FaultKind::Gone
            }
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG => FaultKind::NoSpace,
            libc::EROFS | libc::EPERM | libc::EACCES | libc::EBADF => FaultKind::ReadOnly,
            libc::EOPNOTSUPP | libc::ENOSYS | libc::ENOTTY => FaultKind::Unsupported,
            libc::EAGAIN | libc::ENOMEM | libc::ENOBUFS | libc::EBUSY | libc::EINTR => FaultKind::Busy,
            _ => FaultKind::Protocol,
        }
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        // An error without a number does not come from a system call. EIO says least about its cause.
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", std::io::Error::from_raw_os_error(self.0))
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({}: {self})", self.0)
    }
}

impl std::error::Error for Errno {}

/// A sentence about a fallback. Nothing is wrong, but the administrator may want to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note(pub String);

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Converts the `-1 and errno` convention of libc to a result.
pub(crate) fn check(returned: libc::c_int) -> Result<libc::c_int, Errno> {
    if returned < 0 {
        Err(Errno::last())
    } else {
        Ok(returned)
    }
}

/// As [`check`], for calls that return a size.
pub(crate) fn check_size(returned: libc::ssize_t) -> Result<usize, Errno> {
    usize::try_from(returned).map_err(|_| Errno::last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_sort_into_what_the_caller_can_do() {
        assert_eq!(Errno(libc::EIO).fault(), FaultKind::Media);
        assert_eq!(Errno(libc::ENXIO).fault(), FaultKind::Gone);
        assert_eq!(Errno(libc::ENOSPC).fault(), FaultKind::NoSpace);
        assert_eq!(Errno(libc::EROFS).fault(), FaultKind::ReadOnly);
        assert_eq!(Errno(libc::EOPNOTSUPP).fault(), FaultKind::Unsupported);
        assert_eq!(Errno(libc::EAGAIN).fault(), FaultKind::Busy);
        assert_eq!(Errno(libc::EINVAL).fault(), FaultKind::Protocol);
    }
}
