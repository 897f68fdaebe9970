//! The kernel's error numbers, their meaning for a drive, and notes about fallbacks.

use std::fmt;

/// An error number of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

/// The meaning of an error number for the owner of the drive, sorted by the caller's possible reactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The medium could not give or take these blocks; others may be fine.
    Media,
    /// The device is not there any more.
    Gone,
    /// No room: the file system, quota or thin pool under the member is full.
    NoSpace,
    /// The member cannot be written.
    ReadOnly,
    /// The member does not know this kind of command.
    Unsupported,
    /// The kernel had no memory or no slot just now; the same command may succeed later.
    Busy,
    /// The member is shorter than it was when it was opened.
    Truncated,
    /// Anything else: a confused device, transport or file system.
    Protocol,
}

impl Errno {
    /// The error of the last system call of this thread.
    pub(crate) fn last() -> Self {
        Self::from(std::io::Error::last_os_error())
    }

    /// The fault of a drive that this means.
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
        // An error without a number does not come from a system call; EIO is the honest remainder.
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

/// A sentence about a fallback that was taken: nothing is wrong, but the operator may want to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note(pub String);

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Turn the `-1 and errno` convention of libc into a result.
pub(crate) fn check(returned: libc::c_int) -> Result<libc::c_int, Errno> {
    if returned < 0 {
        Err(Errno::last())
    } else {
        Ok(returned)
    }
}

/// The same for calls that return a size.
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
