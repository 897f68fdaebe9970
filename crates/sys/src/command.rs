//! One command to a member as both engines understand it, the limits they share, and its errors.

use crate::errno::{Errno, FaultKind};
use std::fmt;

/// Commands that one engine holds at most. Above it [`crate::IoEngine::push`] says that it is full.
pub const IN_FLIGHT_MAX: usize = 16_000;
/// Members attached to one engine at most. Below the usual limit of 1024 descriptors, which also bounds the kernel's
/// table of registered files.
pub const MEMBERS_MAX: usize = 512;
/// Entries of the kernel's submission queue; a longer batch is submitted in pieces.
pub(crate) const SUBMISSION_ENTRIES: u32 = 256;
/// Entries of the kernel's completion queue: it can never overflow, because nothing is submitted above
/// [`IN_FLIGHT_MAX`] (and one poll of the helper).
pub(crate) const COMPLETION_ENTRIES: u32 = 16_384;
/// Threads that the kernel may use for commands that cannot be begun without waiting (flushes, page-cache misses). Its
/// own limit, four a processor, lets one hung file hold up all other members; the threads come and go by need.
pub(crate) const KERNEL_WORKERS_MAX: u32 = 192;
/// Threads that work on one member at the same time if io_uring is unavailable. Each member has its own, so that a
/// hanging member delays no other.
pub(crate) const WORKERS_PER_MEMBER: usize = 4;
/// The most bytes of one transfer: far above any request, far below the kernel's limit of one transfer (2 GiB).
pub const TRANSFER_BYTES_MAX: u64 = 64 << 20;
/// Bytes of one registered buffer; the kernel refuses more than 1 GiB. A transfer across the edge goes unregistered.
pub(crate) const REGISTERED_BYTES_MAX: usize = 1 << 30;
/// Bytes of a buffer that is registered at its first use, and taken from the system then: a server without load takes one.
pub(crate) const REGISTERED_BYTES_MIN: usize = 4 << 20;
/// Buffers that are registered at their first use; the kernel's table has room for 16,384.
pub(crate) const REGISTERED_PIECES_MAX: usize = 4096;
/// A capacity for the vector given to [`crate::IoEngine::reap`] that will rarely have to grow.
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

/// One command. `key` is the entry of the engine's table; the memory at `address` stays valid until the command is
/// collected (the table and the pool's marks see to that).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub key: u32,
    pub slot: usize,
    pub opcode: Opcode,
    pub at: u64,
    pub len: u64,
    pub address: *mut u8,
}

// SAFETY: the address is only given to the kernel, and the memory is kept and kept out of use until the command is
// collected, on any thread.
unsafe impl Send for Command {}

impl Command {
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

/// Why a command failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoError {
    /// The kernel's error.
    Os(Errno),
    /// The member ends before the range does: it was cut shorter since it was opened.
    Truncated {
        /// Bytes that are there, in whole sectors.
        done: u32,
    },
}

impl IoError {
    /// The fault of a drive that this means.
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
