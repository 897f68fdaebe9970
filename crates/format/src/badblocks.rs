//! The bad-block log: ranges of a drive that could not be read or written and have not been repaired.
//!
//! ```text
//!  63                                10 9        0
//!  [ first sector of the drive         | length   ]    0xffff_ffff_ffff_ffff: the log ends here
//! ```
//!
//! Sectors count from the start of the drive, not from the start of the member's data area. Both numbers are in units
//! of `1 << shift` sectors. The entries are not sorted. The log must only be read if
//! [`FeatureMap::BAD_BLOCKS`](crate::FeatureMap::BAD_BLOCKS) is set, because md does not initialise the area of an
//! empty log.
//!
//! Source: kernel `Documentation/admin-guide/md.rst` for the semantics. The origin of the sectors was measured: an
//! unreadable drive sector 12345 under a member with `data_offset` 2048 is logged by md as 12344, length 8.

use crate::little_endian;
use crate::superblock_checks::BAD_BLOCK_LOG_MAX;
use core::fmt;
use openraid_units::{DriveLba, Sectors};

/// Maximum number of entries in a log: one page of 4 KiB.
pub const BAD_BLOCKS_MAX: usize = 512;
/// Maximum number of units that one entry covers; md never writes more.
pub const BAD_BLOCK_LENGTH_MAX: u64 = 512;

const ENTRY_BYTES: usize = 8;
const LENGTH_BITS: u32 = 10;
const LENGTH_MASK: u64 = (1 << LENGTH_BITS) - 1;
const END: u64 = u64::MAX;
const SHIFT_MAX: u8 = 12;
const _: () = assert!(BAD_BLOCKS_MAX as u64 * ENTRY_BYTES as u64 == BAD_BLOCK_LOG_MAX.bytes().0);

/// A range of a drive that is known to be bad.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct BadBlockRange {
    /// First bad sector of the drive.
    pub start: DriveLba,
    /// Number of bad sectors.
    pub len: Sectors,
}

/// The reason why a bad-block log cannot be used. The whole member cannot be trusted then, because its bad sectors are
/// unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadBlockError {
    /// An entry has length 0 or extends past the end of the drive.
    BadEntry {
        /// Index of the entry.
        index: usize,
        /// Its 64 bits.
        entry: u64,
    },
    /// The log has too many bytes, or not a whole number of entries.
    BadLength(usize),
    /// The unit is larger than md's unit can be.
    BadShift(u8),
    /// The log has no free entry for another range.
    Full,
    /// An entry cannot express the range: it is empty, not in whole units, or its address is too high.
    Unwritable(BadBlockRange),
}

impl fmt::Display for BadBlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BadEntry { index, entry } => write!(
                f,
                "damaged bad-block log: entry {index} ({entry:016x}) is empty or lies outside the drive; \
                 replace this member, or read it as it is by force"
            ),
            Self::BadLength(bytes) => write!(f, "{bytes} B is not a possible length of a bad-block log"),
            Self::BadShift(shift) => write!(f, "damaged bad-block log: a unit of 2^{shift} sectors"),
            Self::Full => write!(f, "the bad-block log is full ({BAD_BLOCKS_MAX} entries): replace this member"),
            Self::Unwritable(BadBlockRange { start, len }) => {
                write!(f, "{len} from sector {} cannot be entered in a bad-block log", start.0)
            }
        }
    }
}
impl core::error::Error for BadBlockError {}

/// The entries of one bad-block log, in their order on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadBlockTable {
    ranges: [BadBlockRange; BAD_BLOCKS_MAX],
    len: usize,
}

impl Default for BadBlockTable {
    fn default() -> Self {
        Self::new()
    }
}

impl BadBlockTable {
    /// An empty log.
    #[must_use]
    pub const fn new() -> Self {
        Self { ranges: [BadBlockRange { start: DriveLba(0), len: Sectors(0) }; BAD_BLOCKS_MAX], len: 0 }
    }

    /// The bad ranges.
    #[must_use]
    pub fn ranges(&self) -> &[BadBlockRange] {
        &self.ranges[..self.len]
    }

    /// Adds a range. A range that is longer than one entry can express takes several entries.
    ///
    /// # Errors
    /// [`BadBlockError::Full`] if the range does not fit; the log is then unchanged. [`BadBlockError::Unwritable`] for
    /// a range that is empty or does not end below sector 2^54.
    pub fn push(&mut self, range: BadBlockRange) -> Result<(), BadBlockError> {
        let end = range.start.get().checked_add(range.len.get()).filter(|&end| end <= END >> LENGTH_BITS);
        if range.len.is_zero() || end.is_none() {
            return Err(BadBlockError::Unwritable(range));
        }
        let pieces = range.len.get().div_ceil(BAD_BLOCK_LENGTH_MAX);
        if pieces > (BAD_BLOCKS_MAX - self.len) as u64 {
            return Err(BadBlockError::Full);
        }
        let BadBlockRange { mut start, mut len } = range;
        while !len.is_zero() {
            let piece = Sectors(len.get().min(BAD_BLOCK_LENGTH_MAX));
            self.ranges[self.len] = BadBlockRange { start, len: piece };
            self.len += 1;
            start += piece;
            len -= piece;
        }
        Ok(())
    }

    /// Decodes the log of a drive of `drive_size`, with the shift of [`crate::BadBlockPlace::shift`] in the superblock.
    ///
    /// # Errors
    /// The first invalid entry; see [`BadBlockError`].
    pub fn decode(bytes: &[u8], shift: u8, drive_size: Sectors) -> Result<Self, BadBlockError> {
        if bytes.len() > BAD_BLOCKS_MAX * ENTRY_BYTES || !bytes.len().is_multiple_of(ENTRY_BYTES) {
            return Err(BadBlockError::BadLength(bytes.len()));
        }
        if shift > SHIFT_MAX {
            return Err(BadBlockError::BadShift(shift));
        }
        let mut table = Self::new();
        let entries = bytes.chunks_exact(ENTRY_BYTES).map(|bytes| little_endian::u64_at(bytes, 0));
        for (index, entry) in entries.enumerate().take_while(|&(_, entry)| entry != END) {
            let unit = 1u64 << shift;
            let len = (entry & LENGTH_MASK) * unit;
            let start = (entry >> LENGTH_BITS).checked_mul(unit);
            let end = start.and_then(|start| start.checked_add(len)).filter(|&end| end <= drive_size.get());
            let Some(start) = start.filter(|_| end.is_some() && len > 0) else {
                return Err(BadBlockError::BadEntry { index, entry });
            };
            table.ranges[table.len] = BadBlockRange { start: DriveLba(start), len: Sectors(len) };
            table.len += 1;
        }
        Ok(table)
    }

    /// Encodes the whole log, including unused entries. `shift` is the shift in the superblock.
    ///
    /// # Errors
    /// [`BadBlockError::Full`] if `out` has fewer entries than the table. [`BadBlockError::Unwritable`] for a range
    /// that is not in whole units of `1 << shift` sectors.
    ///
    /// # Panics
    /// `out` is not a whole number of entries of a log.
    pub fn encode(&self, shift: u8, out: &mut [u8]) -> Result<(), BadBlockError> {
        assert!(out.len() <= BAD_BLOCKS_MAX * ENTRY_BYTES && out.len().is_multiple_of(ENTRY_BYTES));
        assert!(shift <= SHIFT_MAX, "a superblock with this shift is never accepted");
        if self.len > out.len() / ENTRY_BYTES {
            return Err(BadBlockError::Full);
        }
        out.fill(0xff);
        let unit = Sectors(1 << shift);
        for (slot, range) in out.chunks_exact_mut(ENTRY_BYTES).zip(self.ranges()) {
            let in_units = (range.start.offset() % unit).is_zero() && (range.len % unit).is_zero();
            let len = range.len / unit;
            if !in_units || len > LENGTH_MASK {
                return Err(BadBlockError::Unwritable(*range));
            }
            let entry = (range.start.offset() / unit) << LENGTH_BITS | len;
            little_endian::put(slot, 0, &entry.to_le_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVE: Sectors = Sectors(1 << 30);

    fn range(start: u64, len: u64) -> BadBlockRange {
        BadBlockRange { start: DriveLba(start), len: Sectors(len) }
    }

    #[test]
    fn an_entry_is_the_sector_above_ten_bits_of_length() {
        let mut table = BadBlockTable::new();
        table.push(range(4096, 8)).unwrap();
        table.push(range(20_000, 600)).unwrap();
        let mut bytes = [0; 4096];
        table.encode(0, &mut bytes).unwrap();
        assert_eq!(little_endian::u64_at(&bytes, 0), 4096 << 10 | 8);
        assert_eq!(little_endian::u64_at(&bytes, 8), 20_000 << 10 | 512);
        assert_eq!(little_endian::u64_at(&bytes, 16), 20_512 << 10 | 88);
        assert!(bytes[24..].iter().all(|&byte| byte == 0xff));
        assert_eq!(BadBlockTable::decode(&bytes, 0, DRIVE), Ok(table));
    }

    #[test]
    fn units_of_several_sectors_are_scaled_both_ways() {
        let mut table = BadBlockTable::new();
        table.push(range(4096, 8)).unwrap();
        let mut bytes = [0; 512];
        table.encode(3, &mut bytes).unwrap();
        assert_eq!(little_endian::u64_at(&bytes, 0), 512 << 10 | 1);
        assert_eq!(BadBlockTable::decode(&bytes, 3, DRIVE), Ok(table.clone()));
        table.push(range(3, 1)).unwrap();
        assert_eq!(table.encode(3, &mut bytes), Err(BadBlockError::Unwritable(range(3, 1))));
    }

    #[test]
    fn a_full_log_takes_no_part_of_a_range() {
        let mut table = BadBlockTable::new();
        table.push(range(0, BAD_BLOCK_LENGTH_MAX * 511)).unwrap();
        assert_eq!(table.push(range(1 << 20, 513)), Err(BadBlockError::Full));
        assert_eq!(table.ranges().len(), 511);
        table.push(range(1 << 20, 512)).unwrap();
        let mut bytes = [0; 4096];
        table.encode(0, &mut bytes).unwrap();
        assert_eq!(BadBlockTable::decode(&bytes, 0, DRIVE).map(|it| it.ranges().len()), Ok(BAD_BLOCKS_MAX));
        assert_eq!(table.encode(0, &mut bytes[..4088]), Err(BadBlockError::Full));
    }

    #[test]
    fn absurd_entries_are_errors() {
        for (entry, shift) in [(0u64, 0), (5 << 10, 0), (1 << 40 | 1, 0), (u64::MAX - 1, 0), (u64::MAX - 1, 12)] {
            let result = BadBlockTable::decode(&entry.to_le_bytes(), shift, DRIVE);
            assert_eq!(result, Err(BadBlockError::BadEntry { index: 0, entry }));
        }
        assert_eq!(BadBlockTable::decode(&[0; 7], 0, DRIVE), Err(BadBlockError::BadLength(7)));
        assert_eq!(BadBlockTable::decode(&[0; 4104], 0, DRIVE), Err(BadBlockError::BadLength(4104)));
        assert_eq!(BadBlockTable::decode(&[], 13, DRIVE), Err(BadBlockError::BadShift(13)));
        assert_eq!(BadBlockTable::new().push(range(u64::MAX, 1)), Err(BadBlockError::Unwritable(range(u64::MAX, 1))));
    }
}
