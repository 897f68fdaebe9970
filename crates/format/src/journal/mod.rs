//! openraid's own journal: host data and redo records that are durable, and acknowledged, before the members have them.
//!
//! ```text
//!  superblock (4 KiB, first and last of the device)   whose journal, where the ring is, where the log begins
//!  kept entries                                       copies of entries that only absent arrays need
//!  ring                                               entry, entry, ..., each one group commit
//!    entry    header (4 KiB): number, epoch, tail, records     then the payload they point to
//! ```
//!
//! Faults that must never happen, and the means against them:
//!
//! - **An incomplete entry counts.** Header and payload have checksums, and each header carries the journal's identity,
//!   its own place and its number.
//! - **An entry from before a crash is taken for the successor of a new one.** Each opening of a journal for writing
//!   raises its *epoch* first; from the superblock's `epoch_start` on, entries of an older epoch do not count.
//! - **An acknowledged entry is missing without notice.** Each header has the highest number that had been acknowledged
//!   when it was made. A log that ends below the highest such number is damaged, and is not served.
//! - **The log cannot be followed from the superblock.** The ring from the superblock's tail on (in both copies, and
//!   durable) is never overwritten.
//!
//! The caller reads and writes; nothing here allocates. `docs/on-disk.md` has a drawing to the byte.

mod choose_device;
mod entry;
mod error;
mod record;
mod ring;
mod scan;
mod superblock;

pub use choose_device::choose_journal_mirror;
pub use entry::{EntryHeader, EntryKind, JournalEntry};
pub use error::{EntryFault, JournalError};
pub use record::JournalRecord;
pub(crate) use record::RECORD_BYTES;
pub use ring::{entry_sectors, JournalRing, LogPlace, RingSector};
pub use scan::{scan_ring, JournalScan, ScanNeed, ScanOutcome};
pub use superblock::{
    journal_superblock_lba, JournalArray, JournalArrayState, JournalSuperblock, NewestCopy, SuperblockCopy,
};

use openraid_units::{Bytes, Sectors};

/// Bytes of a journal's superblock, and of an entry's header.
pub const JOURNAL_BLOCK_BYTES: usize = 4096;
/// Headers are at multiples of this number of sectors, for every block size of the device.
pub const JOURNAL_ALIGN: Sectors = Sectors(8);
/// Minimum size of a journal device. A few large writes would fill a smaller one.
pub const JOURNAL_BYTES_MIN: Bytes = Bytes::mib(8);
/// Minimum length of the ring: three of the largest entries, and a filler.
pub const JOURNAL_RING_MIN: Sectors = Sectors::mib(4);
/// Start of the ring of a new journal, on the boundary that partitioning tools use and that suits flash memory.
pub const JOURNAL_RING_START: Sectors = Sectors::mib(1);
/// On a device of at least this size a new journal reserves a part for the entries of absent arrays. On a smaller
/// device only the area between superblock and ring is used for them.
pub const JOURNAL_KEEP_DEVICE_MIN: Sectors = Sectors::mib(64);
/// The reserved part is this fraction of the device; see [`JOURNAL_KEEP_DEVICE_MIN`].
pub const JOURNAL_KEEP_SHARE: u64 = 8;
/// Maximum payload of one entry.
pub const JOURNAL_PAYLOAD_MAX: Sectors = Sectors::mib(1);
/// Maximum number of records in one entry.
pub const JOURNAL_RECORDS_MAX: usize = 120;
/// Maximum number of arrays (redundancy sets) that share one journal.
pub const JOURNAL_ARRAYS_MAX: usize = 64;
/// Maximum number of devices that carry the same journal.
pub const JOURNAL_MIRRORS_MAX: u8 = 2;
/// Numbers of entries, epochs and generations stay below this value, so that an addition of one cannot overflow. At a
/// million entries per second the value is reached in 146,000 years.
pub const JOURNAL_NUMBER_END: u64 = 1 << 62;
/// Addresses and lengths in sectors stay below this value, so that their number of bytes fits into 64 bits.
pub const JOURNAL_LBA_END: u64 = 1 << 55;
/// Version of the journal's format.
pub const JOURNAL_VERSION: u32 = 1;

const _: () = assert!(JOURNAL_BLOCK_BYTES as u64 == JOURNAL_ALIGN.bytes().0);
const _: () = assert!(JOURNAL_RING_MIN.0 >= 3 * entry_sectors(JOURNAL_PAYLOAD_MAX).0 + JOURNAL_ALIGN.0);
const _: () = assert!(
    JOURNAL_BYTES_MIN.sectors_floor().0 >= JOURNAL_RING_START.0 + JOURNAL_RING_MIN.0 + JOURNAL_ALIGN.0,
    "a new journal on the smallest device has the shortest ring at least"
);
