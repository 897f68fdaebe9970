//! Rules that a front end or a guest broke, in words.

use core::fmt;

use crate::limits::{
    CHAIN_DESCRIPTORS_MAX, FILES_MAX, GUEST_BYTES_MAX, INFLIGHT_MADE_MAX, MESSAGE_BYTES_MAX, QUEUES_MAX,
    QUEUE_ENTRIES_MAX, REGIONS_MAX,
};

/// A rule of the messages that a front end broke. The connection has to be closed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageViolation {
    /// A header with these flags: another version, or an answer.
    Flags(u32),
    /// A message of this length.
    TooLong(u32),
    /// A request that has another length; its number, the length.
    Length(u32, usize),
    /// A request that is not supported.
    Unsupported(u32),
    /// A request with this number of files, which needs another number.
    Files(u32, usize),
    /// Features that were not offered.
    Features(u64),
    /// A queue that the disk does not have.
    NoQueue(u32),
    /// Entries of a queue that are no power of two, or too many.
    Entries(u32),
    /// A change of a queue that runs.
    Running(u16),
    /// A queue without addresses or without entries is started.
    Unprepared(u16),
    /// A ring at this address of the front end is not in the memory, or is not aligned.
    RingPlace(u64),
    /// This number of regions.
    Regions(u32),
    /// A region that is empty, or ends beyond all addresses, at this guest address.
    Region(u64),
    /// Two regions overlap at this guest address.
    Overlap(u64),
    /// Regions of this many bytes in all.
    GuestBytes(u64),
    /// Shared memory that begins at this byte of its file.
    FileOffset(u64),
    /// One more in-flight region than are made for a connection.
    InflightMade,
    /// A file cannot be used; why.
    File(String),
    /// An in-flight region for this number of queues, and of entries of each.
    InflightShape(u16, u16),
    /// An in-flight region of this many bytes instead of that many.
    InflightSize(u64, u64),
    /// The in-flight region of a queue was made for another shape: its version, its entries.
    InflightQueue(u16, u16),
    /// The in-flight region of a queue has requests, but does not belong to the queue.
    InflightStale(u16),
    /// A part of the configuration space that does not exist: first byte, length.
    Config(u32, u32),
}

impl fmt::Display for MessageViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flags(flags) => write!(f, "a message has the flags {flags:#x}, so it is no request of version 1"),
            Self::TooLong(len) => write!(f, "a message announces {len} bytes; {MESSAGE_BYTES_MAX} are the most"),
            Self::Length(request, len) => write!(f, "request {request} has {len} bytes, which is not its length"),
            Self::Unsupported(request) => write!(f, "request {request} was not offered"),
            Self::Files(request, count) => {
                write!(f, "request {request} comes with {count} files; {FILES_MAX} are the most, and each kind has its number")
            }
            Self::Features(bits) => write!(f, "the features {bits:#x} were not offered"),
            Self::NoQueue(queue) => write!(f, "there is no queue {queue}; {QUEUES_MAX} are the most"),
            Self::Entries(entries) => {
                write!(f, "a queue of {entries} entries; a power of two up to {QUEUE_ENTRIES_MAX} is needed")
            }
            Self::Running(queue) => write!(f, "queue {queue} runs, so it cannot be changed; stop it first"),
            Self::Unprepared(queue) => write!(f, "queue {queue} is started without its entries or its addresses"),
            Self::RingPlace(at) => write!(f, "a ring at {at:#x} is not inside of the shared memory, or is not aligned"),
            Self::Regions(count) => write!(f, "{count} regions of memory; 1 to {REGIONS_MAX} are possible"),
            Self::Region(at) => write!(f, "the region of memory at {at:#x} is empty or ends beyond all addresses"),
            Self::Overlap(at) => write!(f, "two regions of memory overlap at {at:#x}"),
            Self::GuestBytes(bytes) => {
                write!(f, "the regions of memory have {bytes} bytes; {GUEST_BYTES_MAX} are the most")
            }
            Self::FileOffset(at) => write!(f, "shared memory begins at byte {at} of its file, which is not aligned"),
            Self::InflightMade => {
                write!(f, "more than {INFLIGHT_MADE_MAX} in-flight regions are asked for on one connection")
            }
            Self::File(why) => f.write_str(why),
            Self::InflightShape(queues, entries) => {
                write!(f, "an in-flight region for {queues} queues of {entries} entries is not possible")
            }
            Self::InflightSize(have, need) => write!(f, "the in-flight region has {have} bytes instead of {need}"),
            Self::InflightQueue(version, entries) => {
                write!(f, "the in-flight region is of version {version} with {entries} entries, which is another shape")
            }
            Self::InflightStale(queue) => {
                write!(f, "the in-flight region of queue {queue} has requests that are not of this queue")
            }
            Self::Config(at, len) => write!(f, "the configuration space has no {len} bytes at {at}"),
        }
    }
}
impl std::error::Error for MessageViolation {}

/// A rule of the queues that a guest broke. The queue is stopped until the guest resets the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingFault {
    /// More entries are available than the ring has.
    Available(u16),
    /// A descriptor with this number does not exist.
    NoDescriptor(u16),
    /// A chain longer than allowed, or a loop.
    ChainTooLong,
    /// A table of descriptors of this length, or inside of another table.
    Table(u32),
    /// A descriptor to read after one to write.
    Order,
    /// There is no place for the status, or no request.
    NoRequest,
    /// The head of a request that is under way is available again.
    Twice(u16),
    /// An address outside of the memory.
    Unmapped(u64),
}

impl fmt::Display for RingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Available(count) => write!(f, "{count} entries are available, more than the ring has"),
            Self::NoDescriptor(number) => write!(f, "there is no descriptor {number}"),
            Self::ChainTooLong => {
                write!(f, "a chain loops or has more descriptors than the queue, or more than {CHAIN_DESCRIPTORS_MAX}")
            }
            Self::Table(len) => write!(f, "a table of descriptors of {len} bytes, or inside of another table"),
            Self::Order => f.write_str("a descriptor to read comes after one to write"),
            Self::NoRequest => f.write_str("a chain has no head of a request, or no place for the status"),
            Self::Twice(head) => write!(f, "descriptor {head} is available while its request is under way"),
            Self::Unmapped(at) => write!(f, "the address {at:#x} is outside of the memory"),
        }
    }
}
impl std::error::Error for RingFault {}
