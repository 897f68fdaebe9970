//! All limits of the target.
//!
//! The memory that a host can make this crate use is a sum of these limits. Memory never grows with a length that was only
//! announced.

use openraid_units::Nanos;

/// Entries of an I/O queue at most: commands that a host may have under way on one connection.
pub const QUEUE_ENTRIES_MAX: u16 = 128;

/// Maximum number of I/O queues of an association. Each one is a connection.
pub const IO_QUEUES_MAX: u16 = 16;

/// Maximum payload inside of a command capsule, in bytes. Writes up to this length need no round trip; the specification
/// prescribes the same number for the admin queue.
pub const IN_CAPSULE_BYTES_MAX: u32 = 8192;

/// Maximum payload of one command, in bytes: the maximum data transfer size that is announced.
pub const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// log2 of [`TRANSFER_BYTES_MAX`] in pages of 4 KiB, as hosts are told.
pub const TRANSFER_PAGES_LOG2: u8 = 8;

/// Maximum payload of one PDU from a host, in bytes.
pub const H2C_DATA_BYTES_MAX: u32 = TRANSFER_BYTES_MAX;

/// Maximum part of a log page in one answer, in bytes. An answer to an administrative command is built in memory.
pub const LOG_BYTES_MAX: u32 = 256 << 10;

/// Maximum number of asynchronous event requests of an association.
pub const EVENT_REQUESTS_MAX: usize = 4;

/// Maximum number of associations of a target. One more is refused for now.
pub const ASSOCIATIONS_MAX: usize = 256;

/// Maximum number of subsystems.
pub const SUBSYSTEMS_MAX: usize = 1024;

/// Maximum number of hosts in the list of a subsystem.
pub const HOSTS_MAX: usize = 256;

/// Maximum number of ports.
pub const PORTS_MAX: usize = 16;

/// Maximum length of an NVMe qualified name in bytes, without the zero byte at its end.
pub const NQN_BYTES_MAX: usize = 223;

/// Maximum number of ranges in one deallocation. The field in the command has eight bits.
pub const RANGES_MAX: usize = 256;

/// Maximum number of bytes that are deallocated for one range. A deallocation is advice: the rest of a longer range is left.
pub const RANGE_BYTES_MAX: u64 = 1 << 30;

/// Unit of the keep-alive time: shorter times are rounded up.
pub const KEEP_ALIVE_UNIT: Nanos = Nanos::from_secs(1);

/// Maximum delay until a controller is ready, and of its shutdown, that hosts are told. Both are done at once.
pub const READY_TIME_MAX: Nanos = Nanos::from_secs(15);

/// The time that hosts are told for a change of the state of a path.
pub const PATH_CHANGE_TIME_MAX: Nanos = Nanos::from_secs(10);

const _: () = assert!(TRANSFER_BYTES_MAX == 4096 << TRANSFER_PAGES_LOG2);
const _: () = assert!(H2C_DATA_BYTES_MAX >= 4096 && H2C_DATA_BYTES_MAX.is_multiple_of(4));
const _: () = assert!(RANGES_MAX * 16 <= IN_CAPSULE_BYTES_MAX as usize);
const _: () = assert!(QUEUE_ENTRIES_MAX as u32 <= u128::BITS);
