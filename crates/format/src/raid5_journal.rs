//! Recognises the journal of md's raid5-cache, so that the error can say why the set is refused.
//!
//! A journal member has a superblock with the role [`Journal`](crate::DeviceRole::Journal); its data area is a log of 4 KiB
//! blocks. While the journal holds acknowledged writes, an array must never be started from its other members alone.

use crate::little_endian;

/// The first four bytes of every meta block, little-endian.
pub const RAID5_JOURNAL_MAGIC: u32 = 0x6433_c509;
const VERSION_AT: usize = 8;
const VERSION: u8 = 1;

/// Do these bytes begin with a meta block of a raid5 journal: the magic number, and version 1 at byte 8?
#[must_use]
pub fn is_raid5_journal_block(bytes: &[u8]) -> bool {
    bytes.len() > VERSION_AT && little_endian::u32_at(bytes, 0) == RAID5_JOURNAL_MAGIC && bytes[VERSION_AT] == VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_magic_and_version_together_are_a_journal_block() {
        let mut bytes = [0x09, 0xc5, 0x33, 0x64, 0, 0, 0, 0, 1];
        assert!(is_raid5_journal_block(&bytes));
        assert!(!is_raid5_journal_block(&bytes[..8]));
        bytes[8] = 2;
        assert!(!is_raid5_journal_block(&bytes));
        assert!(!is_raid5_journal_block(&[]));
    }
}
