//! One command to a member in the form that both engines use, their common limits, and the errors of commands.

use crate::errno::{Errno, FaultKind};
use std::fmt;

/// Maximum number of commands in one engine. Above it [`crate::IoEngine::push`] answers that the engine is full.
pub const IN_FLIGHT_MAX: usize = 16_000;
/// Maximum number of members that are attached to one engine. It is below the usual limit of 1024 descriptors, which
/// also limits the kernel's table of registered files.
pub const MEMBERS_MAX: usize = 512;
/// Entries of the kernel's submission queue; a longer batch is submitted in pieces.
pub(crate) const SUBMISSION_ENTRIES: u32 = 256;
/// Entries of the kernel's completion queue. The queue can never overflow, because at most [`IN_FLIGHT_MAX`] commands
/// and one poll of the helper are submitted.
pub(crate) const COMPLETION_ENTRIES: u32 = 16_384;
/// Maximum number of threads that the kernel may use for commands that it cannot begin without waiting (flushes,
/// page-cache misses). By default the kernel's limit is four per processor, so that one file that does not answer could
/// delay all other members. The kernel starts and ends these threads as needed.
pub(crate) const KERNEL_WORKERS_MAX: u32 = 192;
/// Number of threads for one member if io_uring is not available. Each member has its own threads, so that a member
/// that does not answer delays no other.
pub(crate) const WORKERS_PER_MEMBER: usize = 4;
/// Maximum number of bytes in one transfer: far above any request, and far below the kernel's limit for one transfer (2
/// GiB).
pub const TRANSFER_BYTES_MAX: u64 = 64 << 20;
/// Bytes of one registered buffer; the kernel refuses more than 1 GiB. A transfer that crosses a boundary is not
/// registered.
pub(crate) const REGISTERED_BYTES_MAX: usize = 1 << 30;
/// Bytes of a buffer that is registered at its first use, when the system allocates its memory. A server without load
/// uses one.
pub(crate) const REGISTERED_BYTES_MIN: usize = 4 << 20;
/// Maximum number of buffers that are registered at their first use; the kernel's table has room for 16,384.
pub(crate) const REGISTERED_PIECES_MAX: usize = 4096;
/// A capacity for the vector that is passed to [`crate::IoEngine::reap`]; it is rarely exceeded.
pub const DONE_PER_REAP_HINT: usize = 256;

const _: () = assert!(IN_FLIGHT_MAX < COMPLETION_ENTRIES as usize);
const _: () = assert!(SUBMISSION_ENTRIES.is_power_of_two() && COMPLETION_ENTRIES.is_power_of_two());

/// The operation for the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opcode {
    Read,
    Write {
        fua: bool,
    },
    Flush,
    Allocate {
        mode: libc::c_int,
    },
    /// The ioctl that discards blocks of a device. It blocks, so it always runs on a helper thread.
    DiscardDevice,
}

/// One command. `key` is the entry of the engine's table. The memory at `address` stays valid until the command is
/// collected; the table and the pool's marks ensure this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberCommand {
    pub key: u32,
    pub slot: usize,
    pub opcode: Opcode,
    pub at: u64,
    pub len: u64,
    pub address: *mut u8,
}

// SAFETY: the address is only given to the kernel, and the memory is kept and kept out of use until the command is
// collected, on any thread.
unsafe impl Send for MemberCommand {}

impl MemberCommand {
    /// The length of a transfer for calls that take 32 bits.
    pub(crate) fn transfer_len(&self) -> u32 {
        u32::try_from(self.len).expect("a transfer above TRANSFER_BYTES_MAX was refused when it was queued")
    }
}

/// The kernel's raw answer to one attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub key: u32,
    pub result: Result<u32, Errno>,
}

/// The reason why a command failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoError {
    /// The kernel's error.
    Os(Errno),
    /// The member ends before the range: it was shortened after it was opened.
    Truncated {
        /// Number of bytes up to the end of the member, in whole sectors.
        done: u32,
    },
}

impl IoError {
    /// The kind of drive fault that the error means.
    #[must_use]
    pub fn fault(self) -> FaultKind {
        match self {
            Self::Os(error) => error.fault(),
            Self::Truncated { .. } => FaultKind::Truncated,
        }
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os(error) => write!(f, "{error}"),
            Self::Truncated { done } => write!(
                f,
                "the member ends after {done} bytes of the range: it was made shorter while in use; \
                 restore its size, then check the array"
            ),
        }
    }
}

impl std::error::Error for IoError {}
