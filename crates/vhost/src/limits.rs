//! All limits of the back end.
//!
//! The memory that a front end or a guest can make this crate use is a sum of these limits.

/// Maximum number of queues of a disk: virtual machines ask for one for each processor.
pub const QUEUES_MAX: u16 = 64;
/// Maximum number of entries of a queue, as QEMU has it.
pub const QUEUE_ENTRIES_MAX: u16 = 1024;
/// Maximum number of regions of guest memory in one message, as the protocol has it.
pub const REGIONS_MAX: usize = 8;
/// Maximum bytes of all regions of a guest. All machines with their former and their next memory fit into half of the addresses of a
/// process.
pub const GUEST_BYTES_MAX: u64 = 256 << 30;
/// Each region begins at a multiple of this in its file: a page.
pub const REGION_ALIGN: u64 = 4096;
/// The in-flight region begins at a multiple of this in its file, so that its numbers are aligned.
pub const INFLIGHT_ALIGN: u64 = 64;
/// Maximum number of in-flight regions that are made for one connection.
pub const INFLIGHT_MADE_MAX: u8 = 16;
/// Maximum number of files that come with one message: one for each region.
pub const FILES_MAX: usize = REGIONS_MAX;
/// Maximum bytes of the configuration space, as the protocol has it.
pub const CONFIG_BYTES_MAX: usize = 256;
/// Maximum bytes of a message after its header: the configuration space with its head, or the table of memory.
pub const MESSAGE_BYTES_MAX: usize = 12 + CONFIG_BYTES_MAX;
/// Maximum number of descriptors with payload in a request, as guests are told.
pub const SEGMENTS_MAX: u32 = 126;
/// Maximum number of descriptors of a request: the head, the payload, the status.
pub const CHAIN_DESCRIPTORS_MAX: u16 = 128;
/// Maximum bytes of one of them, as guests are told. So a guest that keeps to both numbers has no request that is too long.
pub const SEGMENT_BYTES_MAX: u32 = 256 << 10;
/// Maximum payload of a request in bytes. A longer one fails.
pub const REQUEST_BYTES_MAX: u64 = 32 << 20;
/// Maximum number of sectors of one range to discard or to zero: 2 GiB.
pub const RANGE_SECTORS_MAX: u32 = 1 << 22;

const _: () = assert!(SEGMENTS_MAX + 2 == CHAIN_DESCRIPTORS_MAX as u32);
const _: () = assert!(SEGMENTS_MAX as u64 * SEGMENT_BYTES_MAX as u64 <= REQUEST_BYTES_MAX);
const _: () = assert!(MESSAGE_BYTES_MAX >= 8 + REGIONS_MAX * 32);
