//! The reasons why a path cannot be used as a member, each with its remedy.

use crate::errno::Errno;
use crate::member::Use;
use crate::member_facts::SYSTEM;
use openraid_units::{BlockSizeError, Bytes};
use std::fmt;
use std::path::{Path, PathBuf};

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

impl MemberError {
    /// The path as the user gave it.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Missing { path }
            | Self::NotAMember { path, .. }
            | Self::Empty { path, .. }
            | Self::Denied { path, .. }
            | Self::ReadOnly { path }
            | Self::HeldByKernel { path, .. }
            | Self::Busy { path, .. }
            | Self::Locked { path, .. }
            | Self::AlreadyOpen { path, .. }
            | Self::Replaced { path }
            | Self::BlockSize { path, .. }
            | Self::Failed { path, .. } => path,
        }
    }

    /// The fault, without the path and the remedy.
    #[must_use]
    pub fn fault(&self) -> String {
        match self {
            Self::Missing { .. } => "there is no such file or device".into(),
            Self::NotAMember { kind, .. } => format!("this is {kind}"),
            Self::Empty { size, .. } => format!("too small: {size}, and a member needs room for metadata and data"),
            Self::Denied { .. } => "permission denied".into(),
            Self::ReadOnly { .. } => "write protected".into(),
            Self::HeldByKernel { holder, .. } if holder == SYSTEM => format!("{holder} of this machine"),
            Self::HeldByKernel { holder, .. } => format!("in use: {holder}"),
            Self::Busy { owner, .. } => {
                let owner = owner.as_deref().unwrap_or("another program");
                format!("{owner} has this device open for itself")
            }
            Self::Locked { owner, is_ending: true, .. } => {
                let owner = owner.as_deref().unwrap_or("a process");
                format!("still locked by {owner}, which is ending")
            }
            Self::Locked { owner, .. } => format!("locked by {}", owner.as_deref().unwrap_or("another program")),
            Self::AlreadyOpen { open_as, .. } => {
                format!("the same file or device is already in use here as {}", open_as.display())
            }
            Self::Replaced { .. } => "it was replaced while being opened".into(),
            Self::BlockSize { size, .. } => size.to_string(),
            Self::Failed { attempt, error, .. } => format!("cannot {attempt}: {error}"),
        }
    }

    /// What to do about it, if this can be said.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Missing { .. } | Self::Failed { .. } => return None,
            Self::NotAMember { .. } => "a member must be a regular file or a block device",
            Self::Empty { .. } => "name another file or device, or let --file-size make a new file",
            Self::Denied { usage: Use::Exclusive, .. } => "use an account that may read and write it",
            Self::Denied { .. } => "use an account that may read it",
            Self::ReadOnly { .. } => {
                "remount the file system read-write, or clear the device's read-only flag (blockdev --setrw); \
                 `openraid serve --read-only` takes it as it is"
            }
            Self::HeldByKernel { holder, .. } if holder == SYSTEM => "name another device",
            Self::HeldByKernel { .. } => "release it there first",
            Self::Busy { owner: Some(_), .. } => "stop that first",
            Self::Busy { path, owner: None } => return Some(format!("find it with `fuser -v {}`", path.display())),
            Self::Locked { is_ending: true, .. } => "try again in a moment",
            Self::Locked { owner: Some(_), .. } => "stop that first",
            Self::Locked { owner: None, .. } => "find it with `lslocks` and stop it first",
            Self::AlreadyOpen { .. } => "name each member once",
            Self::Replaced { .. } => "check the path",
            Self::BlockSize { .. } => "use another device",
        };
        Some(remedy.into())
    }

    /// Fault and remedy, without the path.
    #[must_use]
    pub fn reason(&self) -> String {
        let remedy = self.remedy().map(|remedy| format!("; {remedy}"));
        self.fault() + &remedy.unwrap_or_default()
    }
}

impl fmt::Display for MemberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path().display(), self.reason())
    }
}

impl std::error::Error for MemberError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_names_the_path_the_fault_and_the_remedy() {
        let path = || PathBuf::from("/dev/sda1");
        let all = [
            MemberError::Missing { path: path() },
            MemberError::NotAMember { path: path(), kind: NotAMember::Fifo },
            MemberError::Empty { path: path(), size: Bytes(100) },
            MemberError::Denied { path: path(), usage: Use::Exclusive },
            MemberError::Denied { path: path(), usage: Use::Examine },
            MemberError::ReadOnly { path: path() },
            MemberError::Busy { path: path(), owner: Some("dd (7)".into()) },
            MemberError::Busy { path: path(), owner: None },
            MemberError::Locked { path: path(), owner: Some("dd (7)".into()), is_ending: true },
            MemberError::Locked { path: path(), owner: None, is_ending: true },
            MemberError::Locked { path: path(), owner: Some("dd (7)".into()), is_ending: false },
            MemberError::Locked { path: path(), owner: None, is_ending: false },
            MemberError::AlreadyOpen { path: path(), open_as: "/srv/d1".into() },
            MemberError::Replaced { path: path() },
            MemberError::Failed { path: path(), attempt: "read its size", error: Errno(libc::EIO) },
        ];
        assert_eq!(
            all.map(|error| error.to_string()),
            [
                "/dev/sda1: there is no such file or device",
                "/dev/sda1: this is a named pipe (FIFO); a member must be a regular file or a block device",
                "/dev/sda1: too small: 100 bytes, and a member needs room for metadata and data; name another file or \
                 device, or let --file-size make a new file",
                "/dev/sda1: permission denied; use an account that may read and write it",
                "/dev/sda1: permission denied; use an account that may read it",
                "/dev/sda1: write protected; remount the file system read-write, or clear the device's read-only flag \
                 (blockdev --setrw); `openraid serve --read-only` takes it as it is",
                "/dev/sda1: dd (7) has this device open for itself; stop that first",
                "/dev/sda1: another program has this device open for itself; find it with `fuser -v /dev/sda1`",
                "/dev/sda1: still locked by dd (7), which is ending; try again in a moment",
                "/dev/sda1: still locked by a process, which is ending; try again in a moment",
                "/dev/sda1: locked by dd (7); stop that first",
                "/dev/sda1: locked by another program; find it with `lslocks` and stop it first",
                "/dev/sda1: the same file or device is already in use here as /srv/d1; name each member once",
                "/dev/sda1: it was replaced while being opened; check the path",
                "/dev/sda1: cannot read its size: Input/output error (os error 5)",
            ]
        );
    }

    #[test]
    fn the_device_of_the_root_file_system_is_not_to_be_released() {
        let held =
            |holder: &str| MemberError::HeldByKernel { path: "/dev/sda1".into(), holder: holder.into() }.to_string();
        assert_eq!(held(SYSTEM), "/dev/sda1: it holds the root file system of this machine; name another device");
        assert_eq!(held("md0"), "/dev/sda1: in use: md0; release it there first");
    }
}
