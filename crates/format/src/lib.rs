//! Encodes and decodes all bytes that openraid shares with Linux md (superblocks 1.0, 1.1 and 1.2, the write-intent
//! bitmap, the bad-block log and the partial parity log) and the structures of openraid's own journal. Recognises the
//! signatures of other software.
//!
//! Everything here is a pure function of bytes. The crate does no I/O, keeps no state, allocates nothing and never
//! trusts its input: any byte string gives a typed value or an error that names the fault. `docs/on-disk.md` has
//! drawings of all structures.
//!
//! All numbers on disk are little-endian. All sectors have 512 bytes, whatever the block size of the drive.

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

mod badblocks;
mod bitmap;
mod crc32c;
mod feature;
mod foreign;
mod identity;
mod journal;
mod layout_words;
mod level;
mod little_endian;
mod lockless;
mod member_identity;
mod new_member;
mod ppl;
mod raid5_journal;
mod reshape_view;
mod role;
mod superblock;
mod superblock_0_90;
mod superblock_checks;

pub use badblocks::{BadBlockError, BadBlockRange, BadBlockTable, BAD_BLOCKS_MAX, BAD_BLOCK_LENGTH_MAX};
pub use bitmap::{
    chunk_for as bitmap_chunk_for, events_are_acceptable as bitmap_events_are_acceptable, sync_size, BitmapError,
    BitmapGeometry, BitmapHeader, BitmapState, BitmapVersion, BITMAP_CHUNK_DEFAULT, BITMAP_DAEMON_SLEEP_DEFAULT,
    BITMAP_HEADER_BYTES, BITMAP_MAGIC, BITMAP_WRITE_BEHIND_MAX,
};
pub use crc32c::{crc32c, crc32c_of_both};
pub use feature::{DeviceFlags, FeatureMap};
pub use foreign::{detect as detect_foreign, Finding, Findings, ForeignKind, ReadStretch, FOREIGN_HEAD, FOREIGN_TAIL};
pub use identity::{SetName, SetNameError, Timestamp, Uuid, UuidError};
pub use journal::{
    choose_journal_mirror, entry_sectors as journal_entry_sectors, journal_superblock_lba, scan_ring, EntryFault,
    EntryHeader, EntryKind, JournalArray, JournalArrayState, JournalEntry, JournalError, JournalRecord, JournalRing,
    JournalScan, JournalSuperblock, LogPlace, NewestCopy, RingSector, ScanNeed, ScanOutcome, SuperblockCopy,
    JOURNAL_ALIGN, JOURNAL_ARRAYS_MAX, JOURNAL_BLOCK_BYTES, JOURNAL_BYTES_MIN, JOURNAL_LBA_END, JOURNAL_MIRRORS_MAX,
    JOURNAL_NUMBER_END, JOURNAL_PAYLOAD_MAX, JOURNAL_RECORDS_MAX, JOURNAL_RING_MIN, JOURNAL_RING_START,
    JOURNAL_VERSION,
};
pub use layout_words::{default_layout, layout_from_word, level_from_word, named_layouts, LayoutWord, NamedLayout};
pub use level::{FarSets, MdLevel, Raid0Layout, Raid10Layout};
pub use lockless::{ChunkState, LocklessCounts, LocklessHeader, LOCKLESS_STATES_AT};
pub use member_identity::MemberIdentity;
pub use new_member::{
    role_table_len, MemberFields, MemberPlacement, NewSet, PlacementError, PlacementRequest, ROUNDING,
};
pub use ppl::{
    ppl_signature, scan_ppl, PplEntry, PplError, PplHeader, PplLog, PPL_AREA, PPL_ENTRIES_MAX, PPL_HEADER_BYTES,
    PPL_HEADER_SECTORS, PPL_PAYLOAD_MAX,
};
pub use raid5_journal::{is_raid5_journal_block, RAID5_JOURNAL_MAGIC};
pub use reshape_view::{ChangeBegin, ReshapeDirection, ReshapeFault, ReshapeView, ShapeFields};
pub use role::{DeviceRole, RoleTable, ROLES_MAX};
pub use superblock::{
    superblock_lba, BadBlockPlace, JournalReached, MinorVersion, PplPlace, Reshape, Superblock, Unassigned,
    SUPERBLOCK_BYTES_MAX, SUPERBLOCK_MAGIC,
};
pub use superblock_0_90::{md0_lba, Md0Error};
pub use superblock_checks::{MetadataArea, SuperblockError};
