//! The reasons why a path cannot be used as a member, each with its remedy.

use crate::errno::Errno;
use crate::member::Use;
use crate::member_facts::SYSTEM;
use openraid_units::{BlockSizeError, Bytes};
use std::fmt;
use std::path::PathBuf;

/// Kinds of file that are neither a regular file nor a block device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAMember {
    Directory,
    /// A named pipe.
    Fifo,
    /// A unix socket.
    Socket,
    CharacterDevice,
    /// A kind for which this program has no name.
    Unknown,
}

impl fmt::Display for NotAMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "a directory",
            Self::Fifo => "a named pipe (FIFO)",
            Self::Socket => "a unix socket",
            Self::CharacterDevice => "a character device",
            Self::Unknown => "neither a file nor a block device",
        })
    }
}

/// The reason why a member could not be opened. Nothing was written in any case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberError {
    /// The path does not exist.
    Missing {
        /// The path as the user gave it.
        path: PathBuf,
    },
    /// The path leads to a file that cannot hold the data of an array.
    NotAMember {
        /// The path as the user gave it.
        path: PathBuf,
        /// The kind of the target.
        kind: NotAMember,
    },
    /// The file or device is smaller than one sector.
    Empty {
        /// The path as the user gave it.
        path: PathBuf,
        /// Size of the file or device.
        size: Bytes,
    },
    /// The kernel refuses access to this user.
    Denied {
        /// The path as the user gave it.
        path: PathBuf,
        /// The purpose for which it was opened.
        usage: Use,
    },
    /// The file system or the device is write protected.
    ReadOnly {
        /// The path as the user gave it.
        path: PathBuf,
    },
    /// The kernel itself uses the file or device: a mount, swap, md, device mapper, a loop device.
    HeldByKernel {
        /// The path as the user gave it.
        path: PathBuf,
        /// The user, in words.
        holder: String,
    },
    /// Another process has the block device open exclusively.
    Busy {
        /// The path as the user gave it.
        path: PathBuf,
        /// A process that has it open, if this user may see its files.
        owner: Option<String>,
    },
    /// Another process, or another part of this process, holds the lock of the file.
    Locked {
        /// The path as the user gave it.
        path: PathBuf,
        /// The process, if `/proc/locks` has its number.
        owner: Option<String>,
        /// The process was killed or is ending, but the kernel has not yet released its files.
        is_ending: bool,
    },
    /// This process already uses the same file or device, perhaps under another path.
    AlreadyOpen {
        /// The path as the user gave it.
        path: PathBuf,
        /// The path under which it is open.
        open_as: PathBuf,
    },
    /// The target of the path changed while it was being opened.
    Replaced {
        /// The path as the user gave it.
        path: PathBuf,
    },
    /// The device has a block size that is not supported.
    BlockSize {
        /// The path as the user gave it.
        path: PathBuf,
        size: BlockSizeError,
    },
    /// Any other error of the kernel.
    Failed {
        /// The path as the user gave it.
        path: PathBuf,
        /// The attempt, as in "cannot ...".
        attempt: &'static str,
        /// The kernel's error.
        error: Errno,
    },
}

impl fmt::Display for MemberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { path } => {
                write!(f, "{}: there is no such file or device", path.display())
            }
            Self::NotAMember { path, kind } => {
                write!(f, "{}: this is {kind}; a member must be a regular file or a block device", path.display())
            }
            Self::Empty { path, size } => write!(
                f,
                "{}: too small: {size}, and a member needs room for metadata and data; name another file or device, or let \
                 --file-size make a new file",
                path.display()
            ),
            Self::Denied { path, usage } => {
                let access = if *usage == Use::Exclusive { "read and write" } else { "read" };
                write!(f, "{}: permission denied; use an account that may {access} it", path.display())
            }
            Self::ReadOnly { path } => write!(
                f,
                "{}: write protected; remount the file system read-write, or clear the device's read-only flag \
                 (blockdev --setrw); `openraid serve --read-only` takes it as it is",
                path.display()
            ),
            Self::HeldByKernel { path, holder } if holder == SYSTEM => {
                write!(f, "{}: {holder} of this machine; name another device", path.display())
            }
            Self::HeldByKernel { path, holder } => {
                write!(f, "{}: in use: {holder}; release it there first", path.display())
            }
            Self::Busy { path, owner: Some(owner) } => {
                write!(f, "{}: {owner} has this device open for itself; stop that first", path.display())
            }
            Self::Busy { path, owner: None } => write!(
                f,
                "{}: another program has this device open for itself; find it with `fuser -v {}`",
                path.display(),
                path.display()
            ),
            Self::Locked { path, owner, is_ending: true } => {
                let owner = owner.as_deref().unwrap_or("a process");
                write!(f, "{}: still locked by {owner}, which is ending; try again in a moment", path.display())
            }
            Self::Locked { path, owner: Some(owner), .. } => {
                write!(f, "{}: locked by {owner}; stop that first", path.display())
            }
            Self::Locked { path, owner: None, .. } => {
                write!(f, "{}: locked by another program; find it with `lslocks` and stop it first", path.display())
            }
            Self::AlreadyOpen { path, open_as } => write!(
                f,
                "{}: the same file or device is already in use here as {}; name each member once",
                path.display(),
                open_as.display()
            ),
            Self::Replaced { path } => {
                write!(f, "{}: it was replaced while being opened; check the path", path.display())
            }
            Self::BlockSize { path, size } => write!(f, "{}: {size}; use another device", path.display()),
            Self::Failed { path, attempt, error } => write!(f, "{}: cannot {attempt}: {error}", path.display()),
        }
    }
}

impl std::error::Error for MemberError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_of_the_root_file_system_is_not_to_be_released() {
        let held =
            |holder: &str| MemberError::HeldByKernel { path: "/dev/sda1".into(), holder: holder.into() }.to_string();
        assert_eq!(held(SYSTEM), "/dev/sda1: it holds the root file system of this machine; name another device");
        assert_eq!(held("md0"), "/dev/sda1: in use: md0; release it there first");
    }
}
